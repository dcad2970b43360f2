/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * run: searches a PSA, keeps the study, shows the result. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a run works with, released together. */
typedef struct {
    search_problem problem;
    search_outcome outcome;
    cli_place place;
    sim_config baseline_config, best_config, same_config;
    search_trial baseline;
    sim_scratch *scratch;
    cli_progress line;
} run_state;

/* The default is local search; without it, what the registry has. */
static const char *default_agent(void)
{
    static const char *const wanted[] = {"local", "genetic"};

    for (size_t w = 0; w < CS_COUNT(wanted); w++)
        for (size_t i = 0; agent_types[i] != NULL; i++)
            if (strcmp(agent_types[i]->name, wanted[w]) == 0)
                return wanted[w];
    return agent_types[0]->name;
}

static cs_status check_agent(const cli_args *args, search_options *options, cs_error *err)
{
    double param[AGENT_MAX_PARAMS];
    cs_status status = CS_OK;

    CS_TRY(agent_find(args->agent != NULL ? args->agent : default_agent(), &options->agent, err));
    CS_TRY(agent_params(options->agent, args->params.item, args->params.n, param, err));
done:
    return status;
}

static search_options options_of(const cli_context *cli, run_state *run)
{
    const cli_args *args = &cli->args;

    return (search_options){.params = args->params.item,
                            .n_params = args->params.n,
                            .evaluations = (uint64_t)args->evaluations,
                            .timeout_s = args->timeout_s,
                            .seed = (uint64_t)args->seed,
                            .jobs = (int)args->jobs,
                            .resume = args->resume,
                            .warm_start = args->warm_start,
                            .stop = cli->stop,
                            .progress = cli_progress_show,
                            .progress_context = &run->line};
}

static cs_status evaluate_baseline(run_state *run, cs_error *err)
{
    run->scratch = sim_scratch_create(run->problem.model);
    if (run->scratch == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the simulator");
    psa_schema_baseline(run->problem.schema, &run->baseline_config);
    search_evaluate_config(&run->problem, &run->baseline_config, run->scratch, &run->baseline);
    return CS_OK;
}

/* ---- the last screen ---- */

static void print_share(const run_state *run, FILE *out)
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

static void print_next(const cli_context *cli, const run_state *run, FILE *out)
{
    const char *study = run->place.study;

    fprintf(out,
            "\nNext:\n"
            "  cosmic-search explain %s --top 2\n"
            "  cosmic-search front %s\n"
            "  cosmic-search run %s --objective %s\n",
            study, study, cli->args.files.item[0], another_objective(&run->problem));
}

static void print_counts(const cli_context *cli, const run_state *run, FILE *out)
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

static cs_status print_screen(const cli_context *cli, run_state *run, cs_error *err)
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

/* ---- JSON and CSV ---- */

static cs_json *trial_or_null(const run_state *run, bool present, const search_trial *trial,
                              const sim_config *config)
{
    return present ? report_trial_json(&run->problem, trial, config) : cs_json_null();
}

static void set_study(cs_json *object, const cli_context *cli, const run_state *run)
{
    cs_json_set(object, "psa", cs_json_string(cli->args.files.item[0]));
    cs_json_set(object, "study", cs_json_string(run->place.study));
    cs_json_set(object, "seed", cs_json_int(cli->args.seed));
}

static const char *agent_name(const cli_context *cli, const search_options *options)
{
    return cli->args.agent_command != NULL ? cli->args.agent_command : options->agent->name;
}

static cs_json *outcome_json(const cli_context *cli, const run_state *run,
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

/* ---- files beside the study ---- */

typedef struct {
    report_trials *trials;
    cs_error *err;
    cs_status status;
} trial_sink;

static bool add_trial(void *context, const search_trial *trial)
{
    trial_sink *sink = context;

    sink->status = report_trials_add(sink->trials, trial, sink->err);
    return sink->status == CS_OK;
}

cs_status cli_write_trials(const search_study *study, const char *command, report_format format,
                           FILE *out, cs_error *err)
{
    trial_sink sink = {.err = err, .status = CS_OK};
    cs_status status = CS_OK;

    CS_TRY(
        report_trials_open(search_study_problem(study), command, format, out, &sink.trials, err));
    CS_TRY(search_study_each(study, add_trial, &sink, err));
    CS_TRY(sink.status);
    CS_TRY(report_trials_close(sink.trials, err));
done:
    report_trials_destroy(sink.trials);
    return status;
}

static cs_status write_csv(const run_state *run, cs_error *err)
{
    char *path = cli_place_file(&run->place, "trials.csv");
    search_study *study = NULL;
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    if (path == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(search_study_open(run->place.study, &study, err));
    CS_TRY(cli_file_open(path, &file, err));
    CS_TRY(cli_write_trials(study, "trials", REPORT_CSV, file.file, err));
    CS_TRY(cli_file_commit(&file, err));
done:
    cli_file_discard(&file);
    search_study_close(study);
    free(path);
    return status;
}

static cs_status write_json(const cli_context *cli, const run_state *run,
                            const search_options *options, cs_error *err)
{
    char *path = cli_place_file(&run->place, "run.json");
    cs_json *object = outcome_json(cli, run, options);
    char *text = cs_json_dump(object, true);
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    cs_json_destroy(object);
    if (path == NULL || text == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    CS_TRY(cli_file_open(path, &file, err));
    fprintf(file.file, "%s\n", text);
    CS_TRY(cli_file_commit(&file, err));
done:
    cli_file_discard(&file);
    free(text);
    free(path);
    return status;
}

/* ---- no feasible design ---- */

static void print_rejections(const run_state *run, FILE *out)
{
    const search_problem *problem = &run->problem;
    const unsigned __int128 raw = psa_space_raw_points(problem->space);
    unsigned __int128 kept;
    char text[64];
    bool implied;

    fputs("\nPoints each constraint removes from the raw space:\n", out);
    for (size_t i = 0; i < psa_schema_n_constraints(problem->schema); i++) {
        const char *rule = psa_schema_constraint_text(problem->schema, i, &implied);
        if (psa_space_points_under(problem->space, i, &kept, NULL) == CS_OK)
            fprintf(out, "  %32s  %s%s\n", report_count(raw - kept, text), rule,
                    implied ? " (implied)" : "");
    }
}

/* Why one design is invalid, with its numbers: the first value of every knob. */
static void print_example(const run_state *run, FILE *out)
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

static cs_status print_least(const run_state *run, FILE *out, cs_error *err)
{
    const search_outcome *o = &run->outcome;
    sim_config config[3];
    report_design design[3];
    char title[3][32];

    if (o->n_least == 0)
        return CS_OK;
    for (size_t i = 0; i < o->n_least; i++) {
        psa_space_decode(run->problem.space, o->least[i].point, &config[i]);
        snprintf(title[i], sizeof title[i], "least violating %zu", i + 1);
        design[i] = (report_design){title[i], &config[i], &o->least[i]};
        fprintf(out, "%s: %s\n", title[i], o->least[i].reason);
    }
    fputc('\n', out);
    return report_designs(&run->problem, design, o->n_least, out, err);
}

static cs_status report_infeasible(cli_context *cli, const run_state *run,
                                   const search_options *options, cs_error *err)
{
    cs_status status = CS_OK;

    if (cli->args.format == REPORT_JSON) {
        CS_TRY(cli_print_json(cli, outcome_json(cli, run, options), err));
    } else {
        print_counts(cli, run, cli->out);
        CS_TRY(print_least(run, cli->out, err));
        print_share(run, cli->out);
        print_rejections(run, cli->out);
    }
    status = cs_fail(err, CS_EINFEASIBLE, "no feasible design among %llu evaluated",
                     (unsigned long long)run->outcome.unique);
done:
    return status;
}

static cs_status report_no_valid_point(const cli_context *cli, const run_state *run, cs_error *err)
{
    if (cli->args.format == REPORT_TABLE) {
        print_rejections(run, cli->out);
        print_example(run, cli->out);
    }
    return cs_fail(err, CS_EINFEASIBLE,
                   "%s: no valid point: the constraints exclude all of the space",
                   cli->args.files.item[0]);
}

/* ---- the command ---- */

static cs_status print_result(cli_context *cli, run_state *run, const search_options *options,
                              cs_error *err)
{
    search_study *study = NULL;
    cs_status status = CS_OK;

    if (!run->outcome.has_best)
        return run->outcome.stop == SEARCH_SIGNAL ? CS_OK
                                                  : report_infeasible(cli, run, options, err);
    if (cli->args.format == REPORT_JSON)
        return cli_print_json(cli, outcome_json(cli, run, options), err);
    if (cli->args.format == REPORT_TABLE)
        return print_screen(cli, run, err);
    CS_TRY(search_study_open(run->place.study, &study, err));
    CS_TRY(cli_write_trials(study, "trials", REPORT_CSV, cli->out, err));
done:
    search_study_close(study);
    return status;
}

static cs_status search_and_print(cli_context *cli, run_state *run, search_options *options,
                                  cs_error *err)
{
    cs_status status = CS_OK;

    options->study_path = run->place.study;
    cli_progress_start(&run->line, cli);
    status = cli->args.agent_command != NULL
                 ? cli_run_external(cli, &run->problem, options, &run->outcome, err)
                 : search_run(&run->problem, options, &run->outcome, err);
    cli_progress_end(&run->line);
    CS_TRY(status);
    if (run->outcome.has_best)
        psa_space_decode(run->problem.space, run->outcome.best.point, &run->best_config);
    if (run->outcome.has_best_at_bandwidth)
        psa_space_decode(run->problem.space, run->outcome.best_at_bandwidth.point,
                         &run->same_config);
    if (run->place.dir != NULL) {
        CS_TRY(write_csv(run, err));
        CS_TRY(write_json(cli, run, options, err));
    }
    CS_TRY(print_result(cli, run, options, err));
    if (run->outcome.stop == SEARCH_SIGNAL)
        status =
            cs_fail(err, CS_ESTOPPED, "stopped by a signal after %llu evaluations; %s is valid",
                    (unsigned long long)run->outcome.unique, run->place.study);
done:
    return status;
}

static cs_status run_run(cli_context *cli, cs_error *err)
{
    run_state *run = calloc(1, sizeof *run);
    cs_status status = CS_OK;
    search_options options;

    if (run == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    options = options_of(cli, run);
    CS_TRY(check_agent(&cli->args, &options, err));
    CS_TRY(cli_load_problem(cli, &run->problem, err));
    if (psa_space_valid_points(run->problem.space) == 0)
        CS_TRY(report_no_valid_point(cli, run, err));
    CS_TRY(evaluate_baseline(run, err));
    CS_TRY(cli_place_make(cli, psa_schema_name(run->problem.schema), &run->place, err));
    CS_TRY(search_and_print(cli, run, &options, err));
done:
    search_outcome_fini(&run->outcome);
    cli_place_fini(&run->place);
    sim_scratch_destroy(run->scratch);
    search_problem_fini(&run->problem);
    free(run);
    return status;
}

static const report_column dictionary[] = {
    {"version", "", REPORT_TEXT, CS_DIMENSIONLESS, "version of the program"},
    {"inputs_hash", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "hash of PSA, system, device and model files and of --stack, --fix"},
    {"study", "", REPORT_TEXT, CS_DIMENSIONLESS, "study file"},
    {"raw_points", "", REPORT_TEXT, CS_DIMENSIONLESS, "product of all value counts (decimal)"},
    {"valid_points", "", REPORT_TEXT, CS_DIMENSIONLESS, "points that keep every constraint"},
    {"evaluations", "", REPORT_INTEGER, CS_DIMENSIONLESS, "designs evaluated, all of them unique"},
    {"unique", "", REPORT_INTEGER, CS_DIMENSIONLESS, "the same"},
    {"cache_hits", "", REPORT_INTEGER, CS_DIMENSIONLESS, "proposals that were known already"},
    {"infeasible", "", REPORT_INTEGER, CS_DIMENSIONLESS, "designs over a limit"},
    {"failed", "", REPORT_INTEGER, CS_DIMENSIONLESS, "designs the simulator could not do"},
    {"stop", "", REPORT_TEXT, CS_DIMENSIONLESS, "why the search ended"},
    {"wall_s", "", REPORT_REAL, CS_SECONDS, "duration of the search"},
    {"agent_s", "", REPORT_REAL, CS_SECONDS, "of it inside the agent"},
    {"evaluations_per_s", "", REPORT_REAL, CS_DIMENSIONLESS, "evaluations per second"},
    {"bound", "", REPORT_REAL, CS_DIMENSIONLESS, "proven bound of the objective, or null"},
    {"gap", "", REPORT_REAL, CS_DIMENSIONLESS, "(best - bound) / best, or null"},
    {"baseline", "", REPORT_TEXT, CS_DIMENSIONLESS, "the system's own design, as a trial"},
    {"best", "", REPORT_TEXT, CS_DIMENSIONLESS, "best feasible design, as a trial"},
    {"best_at_baseline_bandwidth", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "best with no more bandwidth than the baseline"},
    {"least_violating", "", REPORT_TEXT, CS_DIMENSIONLESS, "when nothing is feasible"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

const cli_command cli_run = {
    .name = "run",
    .summary = "search a PSA file for its best design",
    .usage = "PSA [--agent A] [--evaluations N] [--seed S] [--stack S,..] [--fix K=V]...",
    .example = "cosmic-search run configs/psa/gpt3-175b-system3.yaml --evaluations 2000 --seed 1",
    .options = "agent agent-command param evaluations timeout seed jobs study resume objective "
               "stack fix warm-start out timing",
    .min_files = 1,
    .max_files = 1,
    .dictionary = dictionary,
    .trial_keys = true,
    .run = run_run,
};
