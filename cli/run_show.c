/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a run shows at its end: the screen, JSON, and why there is no design. */
#include "cli/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the last screen ---- */

static void print_share(const cli_run_state *run, FILE *out)
{
    const unsigned __int128 raw = psa_space_raw_points(run->problem.space);
    const unsigned __int128 valid = psa_space_valid_points(run->problem.space);
    char raw_text[64], valid_text[64];

    fprintf(out, "\nOf %s raw points %s are valid (%.3g %%); only those are proposed.\n",
            report_count(raw, raw_text), report_count(valid, valid_text),
            raw > 0 ? 100.0 * (double)valid / (double)raw : 0.0);
}

/* An objective of the PSA that this run did not search for; its own when there is no other. */
static const char *another_objective(const search_problem *problem)
{
    for (size_t i = 0; i < psa_schema_n_objectives(problem->schema); i++)
        if (i != problem->objective[0])
            return psa_schema_objective_name(problem->schema, i);
    return psa_schema_objective_name(problem->schema, problem->objective[0]);
}

static void print_next(const cli_context *cli, const cli_run_state *run, FILE *out)
{
    const char *study = run->place.study;

    fprintf(out,
            "\nNext:\n"
            "  cosmic-search explain %s --top 2\n"
            "  cosmic-search front %s\n"
            "  cosmic-search run %s --objective %s\n",
            study, study, cli->args.files.item[0], another_objective(&run->problem));
}

static void print_counts(const cli_context *cli, const cli_run_state *run, FILE *out)
{
    const search_outcome *o = &run->outcome;

    fprintf(out,
            "%s: %llu designs evaluated (%llu infeasible, %llu failed, %llu repeats free); ended: "
            "%s.\n",
            psa_schema_name(run->problem.schema), (unsigned long long)o->unique,
            (unsigned long long)o->infeasible, (unsigned long long)o->failed,
            (unsigned long long)o->cache_hits, search_stop_names[o->stop]);
    if (cli->args.timing || cli->args.verbose)
        fprintf(out, "%.2f s, %.0f evaluations/s, %d threads, %.2f s inside the agent.\n",
                o->wall_s, o->evaluations_per_s, o->jobs, o->agent_s);
    if (isfinite(o->bound))
        fprintf(out, "best %.6g | proven bound %.6g | gap %.2f %%\n", o->best.objective[0],
                o->bound, 100.0 * o->gap);
    fputc('\n', out);
}

cs_status cli_run_screen(const cli_context *cli, cli_run_state *run, cs_error *err)
{
    const report_design designs[] = {
        {"baseline", &run->baseline_config, &run->baseline},
        {"best", &run->best_config, &run->outcome.best},
        {"best at baseline's bandwidth", &run->same_config,
         run->outcome.has_best_at_bandwidth ? &run->outcome.best_at_bandwidth : NULL},
    };
    cs_status status = CS_OK;
    char sentence[512];

    print_counts(cli, run, cli->out);
    CS_TRY(report_designs(&run->problem, designs, CS_COUNT(designs), cli->out, err));
    print_share(run, cli->out);
    report_limit_sentence(&run->problem, &designs[1], sentence, sizeof sentence);
    fprintf(cli->out, "%s\n", sentence);
    print_next(cli, run, cli->out);
    if (run->place.dir != NULL && !cli->args.quiet)
        fprintf(cli->out, "\nWritten: %s/ (study.db, trials.csv, run.json)\n", run->place.dir);
done:
    return status;
}

/* ---- JSON ---- */

static cs_json *trial_or_null(const cli_run_state *run, bool present, const search_trial *trial,
                              const sim_config *config)
{
    return present ? report_trial_json(&run->problem, trial, config) : cs_json_null();
}

static void set_study(cs_json *object, const cli_context *cli, const cli_run_state *run)
{
    cs_json_set(object, "psa", cs_json_string(cli->args.files.item[0]));
    cs_json_set(object, "study", cs_json_string(run->place.study));
    cs_json_set(object, "seed", cs_json_int(cli->args.seed));
}

static const char *agent_name(const cli_context *cli, const search_options *options)
{
    return cli->args.agent_command != NULL ? cli->args.agent_command : options->agent->name;
}

cs_json *cli_run_json(const cli_context *cli, const cli_run_state *run,
                      const search_options *options)
{
    const search_outcome *o = &run->outcome;
    cs_json *object = report_header_json("run", &run->problem);
    cs_json *least = cs_json_array();
    char text[40];

    set_study(object, cli, run);
    cs_json_set(object, "agent", cs_json_string(agent_name(cli, options)));
    cs_json_set(object, "raw_points",
                cs_json_string(cs_u128_text(psa_space_raw_points(run->problem.space), text)));
    cs_json_set(object, "valid_points",
                cs_json_string(cs_u128_text(psa_space_valid_points(run->problem.space), text)));
    cs_json_set(object, "evaluations", cs_json_int((int64_t)o->unique));
    cs_json_set(object, "unique", cs_json_int((int64_t)o->unique));
    cs_json_set(object, "proposals", cs_json_int((int64_t)o->proposals));
    cs_json_set(object, "cache_hits", cs_json_int((int64_t)o->cache_hits));
    cs_json_set(object, "infeasible", cs_json_int((int64_t)o->infeasible));
    cs_json_set(object, "failed", cs_json_int((int64_t)o->failed));
    cs_json_set(object, "stop", cs_json_string(search_stop_names[o->stop]));
    cs_json_set(object, "jobs", cs_json_int(o->jobs));
    cs_json_set(object, "wall_s", cs_json_real(o->wall_s));
    cs_json_set(object, "agent_s", cs_json_real(o->agent_s));
    cs_json_set(object, "evaluations_per_s", cs_json_real(o->evaluations_per_s));
    cs_json_set(object, "bound", cs_json_real(o->bound));
    cs_json_set(object, "gap", cs_json_real(o->gap));
    cs_json_set(object, "baseline",
                trial_or_null(run, true, &run->baseline, &run->baseline_config));
    cs_json_set(object, "best", trial_or_null(run, o->has_best, &o->best, &run->best_config));
    cs_json_set(
        object, "best_at_baseline_bandwidth",
        trial_or_null(run, o->has_best_at_bandwidth, &o->best_at_bandwidth, &run->same_config));
    for (size_t i = 0; i < o->n_least; i++)
        cs_json_push(least, report_trial_json(&run->problem, &o->least[i], NULL));
    cs_json_set(object, "least_violating", least);
    return object;
}

/* ---- no feasible design ---- */

static void print_rejections(const cli_run_state *run, FILE *out)
{
    const search_problem *problem = &run->problem;
    const unsigned __int128 raw = psa_space_raw_points(problem->space);
    unsigned __int128 kept;
    char text[64];
    bool implied;

    fputs("\nPoints each constraint removes from the raw space:\n", out);
    for (size_t i = 0; i < psa_schema_n_constraints(problem->schema); i++) {
        const char *rule = psa_schema_constraint_text(problem->schema, i, &implied);
        if (psa_space_points_under(problem->space, i, &kept, NULL) == CS_OK && kept < raw)
            fprintf(out, "  %32s  %s%s\n", report_count(raw - kept, text), rule,
                    implied ? " (implied)" : "");
    }
}

/* Why one design is invalid, with its numbers: the first value of every knob. */
static void print_example(const cli_run_state *run, FILE *out)
{
    const search_problem *problem = &run->problem;
    cs_error err = {.text = ""};
    char assignment[256], value[64];
    sim_config config;

    psa_schema_baseline(problem->schema, &config);
    for (size_t k = 0; k < psa_space_n_knobs(problem->space); k++) {
        snprintf(assignment, sizeof assignment, "%s=%s", psa_space_knob_name(problem->space, k),
                 psa_space_knob_value(problem->space, k, 0, value));
        if (psa_schema_assign(problem->schema, assignment, &config, &err) != CS_OK)
            return;
    }
    if (psa_schema_check(problem->schema, &config, &err) != CS_OK)
        fprintf(out, "\nFor example, with the first value of every knob:\n%s\n", err.text);
}

static cs_status print_least(const cli_run_state *run, FILE *out, cs_error *err)
{
    const search_outcome *o = &run->outcome;
    sim_config config[3];
    report_design design[3];
    char title[3][32], reason[SEARCH_REASON_BYTES];

    if (o->n_least == 0)
        return CS_OK;
    for (size_t i = 0; i < o->n_least; i++) {
        psa_space_decode(run->problem.space, o->least[i].point, &config[i]);
        snprintf(title[i], sizeof title[i], "least violating %zu", i + 1);
        design[i] = (report_design){title[i], &config[i], &o->least[i]};
        fprintf(out, "%s: %s\n", title[i], search_trial_reason(&o->least[i], reason));
    }
    fputc('\n', out);
    return report_designs(&run->problem, design, o->n_least, out, err);
}

cs_status cli_run_infeasible(const cli_context *cli, const cli_run_state *run,
                             const search_options *options, cs_error *err)
{
    cs_status status = CS_OK;

    if (cli->args.format == REPORT_JSON) {
        CS_TRY(cli_print_json(cli, cli_run_json(cli, run, options), err));
    } else {
        print_counts(cli, run, cli->out);
        CS_TRY(print_least(run, cli->out, err));
        print_share(run, cli->out);
        print_rejections(run, cli->out);
    }
    status = cs_fail(err, CS_EINFEASIBLE, "no feasible design among %llu evaluated%s%s",
                     (unsigned long long)run->outcome.unique,
                     run->outcome.failed > 0 ? "; failed: " : "", run->outcome.failure);
done:
    return status;
}

cs_status cli_run_no_valid_point(const cli_context *cli, const cli_run_state *run, cs_error *err)
{
    if (cli->args.format == REPORT_TABLE) {
        print_rejections(run, cli->out);
        print_example(run, cli->out);
    }
    return cs_fail(err, CS_EINFEASIBLE,
                   "%s: no valid point: the constraints exclude all of the space",
                   cli->args.files.item[0]);
}
