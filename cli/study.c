/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * trials, best, front: what a study holds. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static cs_status run_trials(cli_context *cli, cs_error *err)
{
    search_study *study = NULL;
    cs_status status = CS_OK;

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    CS_TRY(cli_write_trials(study, "trials", (report_format)cli->args.format, cli->out, err));
done:
    search_study_close(study);
    return status;
}

static cs_status print_kept(const cli_context *cli, const cli_kept *k, const char *command,
                            cs_error *err)
{
    report_trials *trials = NULL;
    cs_status status = CS_OK;

    CS_TRY(report_trials_open(k->problem, command, (report_format)cli->args.format, cli->out,
                              &trials, err));
    for (size_t i = 0; i < k->n; i++)
        CS_TRY(report_trials_add(trials, &k->trial[i], err));
    CS_TRY(report_trials_close(trials, err));
done:
    report_trials_destroy(trials);
    return status;
}

/* ---- best ---- */

static cs_status print_one(const cli_context *cli, const cli_kept *k, cs_error *err)
{
    cs_status status = CS_OK;
    sim_config config;
    report_design design = {"best", &config, &k->trial[0]};
    char sentence[512];

    psa_space_decode(k->problem->space, k->trial[0].point, &config);
    if (cli->args.format == REPORT_JSON) {
        cs_json *object = report_header_json("best", k->problem);
        cs_json_merge(object, report_trial_json(k->problem, &k->trial[0], &config));
        return cli_print_json(cli, object, err);
    }
    fprintf(cli->out, "trial %llu\n", (unsigned long long)k->trial[0].id);
    CS_TRY(report_designs(k->problem, &design, 1, cli->out, err));
    fputc('\n', cli->out);
    CS_TRY(report_breakdown(k->problem, &design, cli->out, err));
    report_limit_sentence(k->problem, &design, sentence, sizeof sentence);
    fprintf(cli->out, "\n%s\n", sentence);
done:
    return status;
}

static cs_status run_best(cli_context *cli, cs_error *err)
{
    cli_kept best = {.n = 0};
    search_study *study = NULL;
    cs_status status = CS_OK;

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    CS_TRY(cli_best_trials(study, (size_t)cli->args.top, &best, err));
    if (cli->args.top == 1 && cli->args.format != REPORT_CSV)
        CS_TRY(print_one(cli, &best, err));
    else
        CS_TRY(print_kept(cli, &best, "best", err));
done:
    cli_kept_fini(&best);
    search_study_close(study);
    return status;
}

/* ---- front ---- */

/* What the front is drawn over: an objective of the PSA, or a result by name; all minimized. */
typedef struct {
    size_t objective; /* SIZE_MAX: a result */
    size_t offset;    /* of the result */
    bool maximize;
} criterion;

#define MAX_CRITERIA 4

typedef struct {
    cli_kept kept;
    criterion criterion[MAX_CRITERIA];
    size_t n;
} front;

static cs_status find_criterion(const search_problem *problem, const char *name, criterion *out,
                                cs_error *err)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);
    const char *names[256];
    const char *near;
    size_t n = 0;

    for (size_t i = 0; i < psa_schema_n_objectives(problem->schema) && n < 200; i++) {
        names[n++] = psa_schema_objective_name(problem->schema, i);
        if (strcmp(names[n - 1], name) == 0) {
            *out = (criterion){i, 0, psa_schema_objective_maximize(problem->schema, i)};
            return CS_OK;
        }
    }
    for (size_t i = 0; i < tables->n_results && n < CS_COUNT(names); i++) {
        names[n++] = tables->results[i].name;
        if (strcmp(tables->results[i].name, name) == 0) {
            *out = (criterion){SIZE_MAX, tables->results[i].offset, false};
            out->maximize = strncmp(name, "tokens", 6) == 0 || strcmp(name, "mfu") == 0;
            return CS_OK;
        }
    }
    near = cs_nearest(name, names, n);
    return cs_fail(err, CS_EINVAL, "--objectives: %s is neither an objective nor a result%s%s%s",
                   name, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?" : "");
}

static cs_status find_criteria(const char *names, front *f, cs_error *err)
{
    cs_status status = CS_OK;
    char *copy, *rest = NULL;

    copy = strdup(names);
    if (copy == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (f->n == MAX_CRITERIA)
            CS_TRY(cs_fail(err, CS_EINVAL, "--objectives: at most %d", MAX_CRITERIA));
        CS_TRY(find_criterion(f->kept.problem, name, &f->criterion[f->n], err));
        f->n++;
    }
    if (f->n == 0)
        CS_TRY(cs_fail(err, CS_EINVAL, "--objectives: no name given"));
    f->kept.n_values = f->n;
done:
    free(copy);
    return status;
}

static double criterion_value(const front *f, const criterion *c, const search_trial *trial)
{
    sim_config config;
    double value;

    if (c->objective == SIZE_MAX) {
        memcpy(&value, (const char *)&trial->result + c->offset, sizeof value);
    } else {
        psa_space_decode(f->kept.problem->space, trial->point, &config);
        value =
            psa_schema_objective(f->kept.problem->schema, c->objective, &config, &trial->result);
    }
    return c->maximize ? -value : value;
}

/* Whether a is nowhere worse than b; of equal ones the first stays. */
static bool covers(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

static void drop_covered(front *f, const double *value)
{
    cli_kept *k = &f->kept;
    size_t left = 0;

    for (size_t i = 0; i < k->n; i++) {
        if (covers(value, &k->value[i * f->n], f->n)) {
            cli_kept_drop(k, i);
            continue;
        }
        k->trial[left] = k->trial[i];
        memmove(&k->value[left * f->n], &k->value[i * f->n], f->n * sizeof *value);
        left++;
    }
    k->n = left;
}

static bool add_to_front(void *context, const search_trial *trial)
{
    front *f = context;
    double value[MAX_CRITERIA];

    if (trial->status != SEARCH_FEASIBLE)
        return true;
    for (size_t i = 0; i < f->n; i++) {
        value[i] = criterion_value(f, &f->criterion[i], trial);
        if (!isfinite(value[i]))
            return true; /* a design without a price is on no front of prices */
    }
    for (size_t i = 0; i < f->kept.n; i++)
        if (covers(&f->kept.value[i * f->n], value, f->n))
            return true;
    drop_covered(f, value);
    if (!cli_keep(&f->kept, trial))
        return false;
    memcpy(&f->kept.value[(f->kept.n - 1) * f->n], value, f->n * sizeof *value);
    return true;
}

static int compare_latency(const void *a, const void *b)
{
    const search_trial *x = a, *y = b;

    if (x->result.latency_s != y->result.latency_s)
        return x->result.latency_s < y->result.latency_s ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static cs_status collect_front(const search_study *study, const char *names, front *f,
                               cs_error *err)
{
    cs_status status = CS_OK;

    cli_kept_fini(&f->kept);
    memset(f, 0, sizeof *f);
    f->kept.problem = search_study_problem(study);
    f->kept.n_vars = psa_space_n_vars(f->kept.problem->space);
    CS_TRY(find_criteria(names, f, err));
    CS_TRY(search_study_each(study, add_to_front, f, err));
    if (f->kept.failed)
        status = cs_fail(err, CS_ENOMEM, "out of memory");
done:
    return status;
}

static cs_status run_front(cli_context *cli, cs_error *err)
{
    const char *names = cli->args.objectives;
    search_study *study = NULL;
    cs_status status = CS_OK;
    front f = {.n = 0};

    CS_TRY(search_study_open(cli->args.files.item[0], &study, err));
    CS_TRY(collect_front(study, names != NULL ? names : "latency,network_cost", &f, err));
    if (f.kept.n == 0 && names == NULL) /* a network without a price */
        CS_TRY(collect_front(study, "latency,peak_memory", &f, err));
    if (f.kept.n == 0)
        CS_TRY(cs_fail(err, CS_EINFEASIBLE,
                       "%s: no feasible design with a value for each of --objectives among %llu "
                       "trials",
                       cli->args.files.item[0], (unsigned long long)search_study_n_trials(study)));
    qsort(f.kept.trial, f.kept.n, sizeof *f.kept.trial, compare_latency);
    CS_TRY(print_kept(cli, &f.kept, "front", err));
done:
    cli_kept_fini(&f.kept);
    search_study_close(study);
    return status;
}

const cli_command cli_trials = {
    .name = "trials",
    .summary = "every design a study evaluated",
    .usage = "STUDY.db",
    .example = "cosmic-search trials results/quickstart/study.db -f csv",
    .options = "",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_trials,
};

const cli_command cli_best = {
    .name = "best",
    .summary = "the best designs of a study",
    .usage = "STUDY.db [--top N]",
    .example = "cosmic-search best results/quickstart/study.db",
    .options = "top",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_best,
};

const cli_command cli_front = {
    .name = "front",
    .summary = "designs of a study that no other beats in every objective",
    .usage = "STUDY.db [--objectives A,B]",
    .example = "cosmic-search front results/quickstart/study.db --objectives latency,network_cost",
    .options = "objectives",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_front,
};
