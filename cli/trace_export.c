/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * trace export: a design as Chakra traces with ASTRA-sim's input files. */
#include "cli/commands.h"

#include <string.h>

#include "sim/export.h"

/* The PSA stands after the action's name; the shared loaders look at the first argument. */
static void drop_action(cli_args *args)
{
    for (size_t i = 1; i < args->files.n; i++)
        args->files.item[i - 1] = args->files.item[i];
    args->files.n--;
}

static cs_status print_written(const cli_context *cli, const sim_export_size *size, cs_error *err)
{
    cs_json *object;

    if (cli->args.format != REPORT_JSON) {
        fprintf(cli->out, "%s: %llu ranks, %llu nodes, about %llu bytes\n", cli->args.out,
                (unsigned long long)size->ranks, (unsigned long long)size->nodes,
                (unsigned long long)size->bytes);
        return CS_OK;
    }
    object = report_header_json("trace export", NULL);
    cs_json_set(object, "folder", cs_json_string(cli->args.out));
    cs_json_set(object, "ranks", cs_json_int((int64_t)size->ranks));
    cs_json_set(object, "nodes", cs_json_int((int64_t)size->nodes));
    cs_json_set(object, "bytes", cs_json_int((int64_t)size->bytes));
    return cli_print_json(cli, object, err);
}

cs_status cli_trace_export(cli_context *cli, cs_error *err)
{
    const size_t w = (size_t)cli->args.workload - 1;
    const sim_export_options options = {.workload = w,
                                        .granularity = (sim_granularity)cli->args.granularity};
    search_problem problem = {0};
    cli_place place = {0};
    sim_scratch *scratch = NULL;
    sim_export *design = NULL;
    cs_status status = CS_OK;
    sim_export_size size;
    sim_config config;

    if (cli->args.out == NULL)
        return cs_fail(err, CS_EINVAL, "trace export: --out DIR is missing");
    drop_action(&cli->args);
    CS_TRY(cli_load_problem(cli, &problem, err));
    CS_TRY(cli_configure(cli, &problem, &config, err));
    if (w >= sim_model_n_workloads(problem.model))
        CS_TRY(cs_fail(err, CS_EINVAL, "--workload %zu: the PSA has %zu", w + 1,
                       sim_model_n_workloads(problem.model)));
    scratch = sim_scratch_create(problem.model);
    if (scratch == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory for the simulator"));
    CS_TRY(sim_export_create(problem.model, &config, scratch, &options, &design, err));
    size = sim_export_measure(design);
    CS_TRY(cli_check_size(cli, size.bytes, err));
    CS_TRY(cli_place_folder(cli, "export", &place, err));
    CS_TRY(sim_export_write(design, place.dir, err));
    CS_TRY(print_written(cli, &size, err));
done:
    cli_place_fini(&place);
    sim_export_destroy(design);
    sim_scratch_destroy(scratch);
    search_problem_fini(&problem);
    return status;
}
