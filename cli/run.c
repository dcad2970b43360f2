/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * run: searches a PSA, keeps the study, shows the result. */
#include "cli/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static search_options options_of(const cli_context *cli, cli_run_state *run)
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

static cs_status evaluate_baseline(cli_run_state *run, cs_error *err)
{
    run->scratch = sim_scratch_create(run->problem.model);
    if (run->scratch == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the simulator");
    psa_schema_baseline(run->problem.schema, &run->baseline_config);
    return search_evaluate_config(&run->problem, &run->baseline_config, run->scratch,
                                  &run->baseline) == CS_OK
               ? CS_OK
               : cs_fail(err, CS_ENOMEM, "out of memory for the simulator");
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

static cs_status write_csv(const cli_run_state *run, cs_error *err)
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

static cs_status write_json(const cli_context *cli, const cli_run_state *run,
                            const search_options *options, cs_error *err)
{
    char *path = cli_place_file(&run->place, "run.json");
    cs_json *object = cli_run_json(cli, run, options);
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

/* ---- the command ---- */

static cs_status print_result(cli_context *cli, cli_run_state *run, const search_options *options,
                              cs_error *err)
{
    search_study *study = NULL;
    cs_status status = CS_OK;

    if (!run->outcome.has_best)
        return run->outcome.stop == SEARCH_SIGNAL ? CS_OK
                                                  : cli_run_infeasible(cli, run, options, err);
    if (cli->args.format == REPORT_JSON)
        return cli_print_json(cli, cli_run_json(cli, run, options), err);
    if (cli->args.format == REPORT_TABLE)
        return cli_run_screen(cli, run, err);
    CS_TRY(search_study_open(run->place.study, &study, err));
    CS_TRY(cli_write_trials(study, "trials", REPORT_CSV, cli->out, err));
done:
    search_study_close(study);
    return status;
}

static cs_status search_and_print(cli_context *cli, cli_run_state *run, search_options *options,
                                  cs_error *err)
{
    cs_status status = CS_OK;

    options->study_path = run->place.study;
    if (!cli->args.quiet)
        fprintf(stderr, "%s on %d threads\n", psa_schema_name(run->problem.schema),
                options->jobs > 0 ? options->jobs : search_default_jobs());
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
    cli_run_state *run = calloc(1, sizeof *run);
    cs_status status = CS_OK;
    search_options options;

    if (run == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    options = options_of(cli, run);
    CS_TRY(check_agent(&cli->args, &options, err));
    CS_TRY(cli_load_problem(cli, &run->problem, err));
    if (psa_space_valid_points(run->problem.space) == 0)
        CS_TRY(cli_run_no_valid_point(cli, run, err));
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
