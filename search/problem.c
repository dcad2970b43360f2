/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A problem: PSA, models, space and objectives bound together; evaluation of one design. */
#include "search/search_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const search_status_names[] = {"feasible", "infeasible", "failed", "invalid", NULL};
const char *const search_stop_names[] = {"budget", "exhausted", "timeout", "signal",
                                         "gap",    "stalled",   NULL};

static char *joined(const char *const *list, size_t n)
{
    size_t size = 1;

    for (size_t i = 0; i < n; i++)
        size += strlen(list[i]) + 1;
    char *text = calloc(1, size);
    if (text == NULL)
        return NULL;
    for (size_t i = 0, at = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i > 0 ? "\n" : "", list[i]);
    return text;
}

static cs_status add_objective(search_problem *p, const char *name, cs_error *err)
{
    cs_status status = CS_OK;
    size_t index;

    if (p->n_objectives == AGENT_MAX_OBJECTIVES)
        return cs_fail(err, CS_EINVAL, "more than %d objectives", AGENT_MAX_OBJECTIVES);
    CS_TRY(psa_schema_find_objective(p->schema, name, &index, err));
    for (size_t i = 0; i < p->n_objectives; i++)
        if (p->objective[i] == index)
            return cs_fail(err, CS_EINVAL, "objective \"%s\" is named twice", name);
    p->objective[p->n_objectives++] = index;
done:
    return status;
}

static cs_status choose_objectives(search_problem *p, const char *names, cs_error *err)
{
    cs_status status = CS_OK;
    char *copy = NULL, *rest = NULL;

    if (names == NULL) {
        if (psa_schema_n_objectives(p->schema) == 0)
            return cs_fail(err, CS_ESCHEMA, "%s: no objective", p->psa_path);
        p->n_objectives = 1;
        p->objective[0] = 0;
        return CS_OK;
    }
    copy = strdup(names);
    if (copy == NULL)
        return cs_fail(err, CS_ENOMEM, "objectives");
    for (char *word = strtok_r(copy, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest))
        CS_TRY(add_objective(p, word, err));
    if (p->n_objectives == 0)
        status = cs_fail(err, CS_EINVAL, "no objective named in \"%s\"", names);
done:
    free(copy);
    return status;
}

static cs_status record_options(search_problem *p, const search_problem_options *options,
                                cs_error *err)
{
    char *names = NULL;
    cs_status status = CS_OK;

    p->psa_path = strdup(options->psa_path);
    p->stacks = joined(options->stacks, options->stacks == NULL ? 0 : options->n_stacks);
    p->fixes = joined(options->fixes, options->n_fixes);
    names = strdup(options->objectives != NULL ? options->objectives : "");
    p->objectives = names;
    p->files = cs_files_create();
    if (p->psa_path == NULL || p->stacks == NULL || p->fixes == NULL || names == NULL ||
        p->files == NULL)
        status = cs_fail(err, CS_ENOMEM, "problem");
    return status;
}

/* One knob fixed to two values is a slip that the last one would hide. */
static cs_status check_fixes(const search_problem_options *options, cs_error *err)
{
    for (size_t i = 1; i < options->n_fixes; i++) {
        const char *fix = options->fixes[i];
        const size_t name = strcspn(fix, "=");

        for (size_t k = 0; k < i; k++)
            if (strncmp(fix, options->fixes[k], name + 1) == 0 &&
                strcmp(fix, options->fixes[k]) != 0)
                return cs_fail(err, CS_EINVAL, "'%s' contradicts '%s'", fix, options->fixes[k]);
    }
    return CS_OK;
}

static cs_status load_schema(search_problem *p, const search_problem_options *options,
                             cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(psa_schema_load(options->psa_path, sim_tables(), &p->schema, err));
    if (options->stacks != NULL)
        CS_TRY(psa_schema_select_stacks(p->schema, options->stacks, options->n_stacks, err));
    CS_TRY(check_fixes(options, err));
    for (size_t i = 0; i < options->n_fixes; i++)
        CS_TRY(psa_schema_fix(p->schema, options->fixes[i], err));
    CS_TRY(choose_objectives(p, options->objectives, err));
    CS_TRY(sim_model_create(p->schema, &p->model, err));
    CS_TRY(psa_space_create(p->schema, &p->space, err));
done:
    return status;
}

cs_status search_problem_load(const search_problem_options *options, search_problem *out,
                              cs_error *err)
{
    cs_status status = CS_OK;
    search_problem p = {0};

    CS_TRY(record_options(&p, options, err));
    cs_files_record_begin(p.files);
    status = load_schema(&p, options, err);
    cs_files_record_begin(NULL);
    if (status != CS_OK)
        goto done;
    p.hash = cs_files_hash(p.files);
    p.hash = cs_hash(p.hash, p.stacks, strlen(p.stacks) + 1);
    p.hash = cs_hash(p.hash, p.fixes, strlen(p.fixes) + 1);
    *out = p;
    p = (search_problem){0};
done:
    search_problem_fini(&p);
    return status;
}

void search_problem_fini(search_problem *problem)
{
    psa_space_destroy(problem->space);
    sim_model_destroy(problem->model);
    psa_schema_destroy(problem->schema);
    cs_files_destroy(problem->files);
    free(problem->psa_path);
    free(problem->stacks);
    free(problem->fixes);
    free(problem->objectives);
    *problem = (search_problem){0};
}

static void failed(search_trial *trial, const char *why)
{
    trial->status = SEARCH_FAILED;
    (void)snprintf(trial->reason, sizeof trial->reason, "%.150s", why);
    trial->reason[strcspn(trial->reason, "\n")] = 0;
}

static void check_limits(const search_problem *problem, const sim_config *config,
                         search_trial *trial)
{
    size_t which = SIZE_MAX;
    bool implied;
    double violation = psa_schema_limit_violation(problem->schema, config, &trial->result, &which);

    if (!(violation > 0.0) && trial->result.verdict != SIM_OVER_LIMIT)
        return;
    const bool also_memory = trial->status == SEARCH_INFEASIBLE;
    trial->status = SEARCH_INFEASIBLE;
    trial->violation += violation > 0.0 ? violation : 1.0;
    if (!also_memory && which != SIZE_MAX)
        (void)snprintf(trial->reason, sizeof trial->reason, "limit: %.140s",
                       psa_schema_constraint_text(problem->schema, which, &implied));
    else if (!also_memory)
        (void)snprintf(trial->reason, sizeof trial->reason, "over a limit");
}

static void read_objectives(const search_problem *problem, const sim_config *config,
                            search_trial *trial)
{
    for (size_t i = 0; i < problem->n_objectives; i++) {
        double value =
            psa_schema_objective(problem->schema, problem->objective[i], config, &trial->result);
        trial->objective[i] = value;
        if (isfinite(value) || trial->status != SEARCH_FEASIBLE)
            continue;
        char why[128];
        (void)snprintf(why, sizeof why, "objective %.60s has no finite value",
                       psa_schema_objective_name(problem->schema, problem->objective[i]));
        failed(trial, why);
    }
}

/* Verdict, limits and objectives of a result. */
static void judge(const search_problem *problem, const sim_config *config, search_trial *out)
{
    if (out->result.verdict == SIM_OUT_OF_MEMORY) {
        out->status = SEARCH_INFEASIBLE;
        out->violation = out->result.memory_excess;
    }
    check_limits(problem, config, out);
    if (out->status == SEARCH_FEASIBLE &&
        !(isfinite(out->result.latency_s) && out->result.latency_s > 0.0)) {
        failed(out, "the simulator gave no positive finite latency");
        return;
    }
    read_objectives(problem, config, out);
}

static void begin_trial(search_trial *out)
{
    out->status = SEARCH_FEASIBLE;
    out->reason[0] = 0;
    out->violation = 0.0;
    memset(&out->result, 0, sizeof out->result);
    for (size_t i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        out->objective[i] = NAN;
}

typedef cs_status evaluate_fn(const sim_model *model, const sim_config *config,
                              sim_scratch *scratch, sim_result *out, cs_error *err);

static cs_status simulate(const search_problem *problem, const sim_config *config,
                          evaluate_fn *evaluate, sim_scratch *scratch, search_trial *out)
{
    cs_error err = {{0}};
    cs_status status = evaluate(problem->model, config, scratch, &out->result, &err);

    if (status != CS_OK)
        failed(out, err.text[0] != 0 ? err.text : cs_status_text(status));
    return status;
}

/* What a simulation that ended with `status` comes to. */
static cs_status conclude(const search_problem *problem, const sim_config *config, cs_status status,
                          search_trial *out)
{
    if (status == CS_OK)
        judge(problem, config, out);
    return status == CS_ENOMEM ? CS_ENOMEM : CS_OK;
}

cs_status search_evaluate_config(const search_problem *problem, const sim_config *config,
                                 sim_scratch *scratch, search_trial *out)
{
    begin_trial(out);
    return conclude(problem, config, simulate(problem, config, sim_evaluate, scratch, out), out);
}

cs_status search_evaluate(const search_problem *problem, const int32_t *point, sim_scratch *scratch,
                          search_trial *out)
{
    cs_status status;
    sim_config config;

    memset(&config, 0, sizeof config);
    psa_space_decode(problem->space, point, &config);
    begin_trial(out);
    status = simulate(problem, &config, sim_precheck, scratch, out);
    if (status == CS_OK && out->result.verdict == SIM_FEASIBLE)
        status = simulate(problem, &config, sim_evaluate, scratch, out);
    return conclude(problem, &config, status, out);
}

static int less(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

int search_trial_compare(const search_problem *problem, const search_trial *a,
                         const search_trial *b)
{
    const agent_score x = search__score(problem, a), y = search__score(problem, b);
    int order = agent_score_compare(&x, &y);

    if (order == 0)
        order = less(a->result.network_cost_usd, b->result.network_cost_usd);
    if (order == 0)
        order =
            less(a->result.bandwidth_per_npu_bytes_per_s, b->result.bandwidth_per_npu_bytes_per_s);
    if (order == 0)
        order = less(a->result.peak_memory_bytes, b->result.peak_memory_bytes);
    if (order == 0)
        order = (a->id > b->id) - (a->id < b->id);
    return order;
}

agent_score search__score(const search_problem *problem, const search_trial *trial)
{
    static const agent_outcome outcomes[] = {AGENT_FEASIBLE, AGENT_INFEASIBLE, AGENT_FAILED,
                                             AGENT_INVALID};
    agent_score score = {.outcome = outcomes[trial->status], .violation = trial->violation};

    for (size_t i = 0; i < problem->n_objectives; i++)
        score.objective[i] = psa_schema_objective_maximize(problem->schema, problem->objective[i])
                                 ? -trial->objective[i]
                                 : trial->objective[i];
    return score;
}
