/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From command-line words to a problem and a configuration. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* Splits "a,b" items of --stack into single names held in *storage (the caller frees it). */
static cs_status split_stacks(const cli_list *list, const char **names, size_t *n, char **storage,
                              cs_error *err)
{
    size_t size = 1;
    char *at;

    *n = 0;
    for (size_t i = 0; i < list->n; i++)
        size += strlen(list->item[i]) + 1;
    *storage = at = calloc(size, 1);
    if (at == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    for (size_t i = 0; i < list->n; i++) {
        char *rest = NULL;
        memcpy(at, list->item[i], strlen(list->item[i]) + 1);
        char *next = at + strlen(list->item[i]) + 1;
        for (char *name = strtok_r(at, ",", &rest); name != NULL;
             name = strtok_r(NULL, ",", &rest)) {
            if (*n == CLI_MAX_LIST)
                return cs_fail(err, CS_EINVAL, "more than %d stacks", CLI_MAX_LIST);
            names[(*n)++] = name;
        }
        at = next;
    }
    if (list->n > 0 && *n == 0)
        return cs_fail(err, CS_EINVAL, "--stack: expected workload, collective, network, compute");
    return CS_OK;
}

/* Prints the schema's warnings from number `from` on. */
static void print_warnings(const cli_context *cli, const psa_schema *schema, size_t from)
{
    for (size_t i = from; i < psa_schema_n_warnings(schema) && !cli->args.quiet; i++)
        fprintf(stderr, "cosmic-search: warning: %s\n", psa_schema_warning(schema, i));
}

cs_status cli_load_problem(const cli_context *cli, search_problem *problem, cs_error *err)
{
    const char *stacks[CLI_MAX_LIST];
    search_problem_options options = {.psa_path = cli->args.files.item[0],
                                      .fixes = cli->args.fixes.item,
                                      .n_fixes = cli->args.fixes.n,
                                      .objectives = cli->args.objectives};
    char *storage = NULL;
    cs_status status = CS_OK;

    CS_TRY(split_stacks(&cli->args.stacks, stacks, &options.n_stacks, &storage, err));
    options.stacks = options.n_stacks > 0 ? stacks : NULL;
    CS_TRY(search_problem_load(&options, problem, err));
    print_warnings(cli, problem->schema, 0);
done:
    free(storage);
    return status;
}

cs_status cli_configure(const cli_context *cli, const search_problem *problem, sim_config *config,
                        cs_error *err)
{
    cs_status status = CS_OK;
    const size_t known = psa_schema_n_warnings(problem->schema);

    psa_schema_baseline(problem->schema, config);
    for (size_t i = 0; i < cli->args.sets.n; i++) {
        CS_TRY(psa_schema_assign(problem->schema, cli->args.sets.item[i], config, err));
        CS_TRY(psa_schema_question(problem->schema, cli->args.sets.item[i], err));
    }
    print_warnings(cli, problem->schema, known);
    CS_TRY(psa_schema_check(problem->schema, config, err));
done:
    return status;
}
