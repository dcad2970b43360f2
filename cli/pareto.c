/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * pareto: searches the trade-off between objectives and leaves study, front and page. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points that --exact evaluates at most: about a quarter of an hour on one core. */
#define MOST_EXACT 10000000u

typedef struct {
    search_problem problem;
    search_outcome outcome;
    cli_place place;
    cli_progress line;
    search_study *study;
    report_front front;
    uint64_t report_bytes;
} pareto;

static cs_status load(cli_context *cli, pareto *p, cs_error *err)
{
    cs_status status = CS_OK;

    if (cli->args.objectives == NULL)
        cli->args.objectives = "latency,network_cost";
    CS_TRY(cli_load_problem(cli, &p->problem, err));
    if (p->problem.n_objectives < 2)
        CS_TRY(cs_fail(err, CS_EINVAL, "--objectives %s: a front needs two or more",
                       cli->args.objectives));
    if (psa_space_valid_points(p->problem.space) == 0)
        CS_TRY(cs_fail(err, CS_EINFEASIBLE,
                       "%s: no valid point: the constraints exclude all of the space",
                       cli->args.files.item[0]));
done:
    return status;
}

/* The whole space in order, or the agent made for fronts. */
static cs_status choose_agent(const cli_context *cli, const pareto *p, search_options *options,
                              cs_error *err)
{
    const unsigned __int128 points = psa_space_valid_points(p->problem.space);
    const char *name = cli->args.agent;
    cs_status status = CS_OK;
    char text[64];

    if (cli->args.exact && name != NULL)
        return cs_fail(err, CS_EINVAL, "--exact looks at every design: --agent has no use then");
    if (cli->args.exact && points > MOST_EXACT)
        return cs_fail(err, CS_EINVAL,
                       "--exact: the space has %s valid points, and at most %u are enumerated; "
                       "narrow it by --stack or --fix",
                       report_count(points, text), MOST_EXACT);
    CS_TRY(agent_find(cli->args.exact ? "exhaustive"
                      : name != NULL  ? name
                                      : "nsga2",
                      &options->agent, err));
    if (cli->args.exact)
        options->evaluations = (uint64_t)points;
done:
    return status;
}

static search_options options_of(const cli_context *cli, pareto *p)
{
    const cli_args *args = &cli->args;

    return (search_options){
        .params = args->params.item,
        .n_params = args->params.n,
        .evaluations = (uint64_t)args->evaluations,
        .timeout_s = args->timeout_s,
        .seed = (uint64_t)args->seed,
        .jobs = (int)args->jobs,
        .resume = args->resume,
        .stop = cli->stop,
        .progress = cli_progress_show,
        .progress_context = &p->line,
    };
}

static cs_status run_search(const cli_context *cli, pareto *p, search_options *options,
                            cs_error *err)
{
    options->study_path = p->place.study;
    cli_progress_start(&p->line, cli);
    const cs_status status = search_run(&p->problem, options, &p->outcome, err);
    cli_progress_end(&p->line);
    return status;
}

/* ---- files ---- */

static cs_status write_front(const pareto *p, const char *name, report_format format, cs_error *err)
{
    char *path = cli_place_file(&p->place, name);
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    if (path == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(cli_file_open(path, &file, err));
    CS_TRY(report_front_write(&p->front, "pareto", format, file.file, err));
    CS_TRY(cli_file_commit(&file, err));
done:
    cli_file_discard(&file);
    free(path);
    return status;
}

static cs_status write_report(pareto *p, cs_error *err)
{
    char *path = cli_place_file(&p->place, "report.html");
    const report_source source = {
        .study = p->study, .path = p->place.study, .bound = NAN, .gap = NAN};
    const report_page page = {
        .source = &source, .n = 1, .front = p->problem.objectives, .explained = 3};
    cs_status status = CS_OK;

    if (path == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(cli_write_report(&page, path, &p->report_bytes, err));
done:
    free(path);
    return status;
}

static cs_status write_files(pareto *p, cs_error *err)
{
    cs_status status = CS_OK;

    if (p->place.dir == NULL)
        return CS_OK;
    CS_TRY(write_front(p, "front.csv", REPORT_CSV, err));
    CS_TRY(write_front(p, "front.json", REPORT_JSON, err));
    CS_TRY(write_report(p, err));
done:
    return status;
}

/* ---- output ---- */

/* Whether every valid design was looked at. */
static bool is_whole(const pareto *p)
{
    return p->outcome.unique >= psa_space_valid_points(p->problem.space);
}

static cs_status print_json(const cli_context *cli, const pareto *p, cs_error *err)
{
    cs_json *object = report_front_json(&p->front, "pareto");

    cs_json_set(object, "study", cs_json_string(p->place.study));
    cs_json_set(object, "evaluations", cs_json_int((int64_t)p->outcome.unique));
    cs_json_set(object, "infeasible", cs_json_int((int64_t)p->outcome.infeasible));
    cs_json_set(object, "failed", cs_json_int((int64_t)p->outcome.failed));
    cs_json_set(object, "stop", cs_json_string(search_stop_names[p->outcome.stop]));
    cs_json_set(object, "exact", cs_json_bool(is_whole(p)));
    return cli_print_json(cli, object, err);
}

static cs_status print_people(const cli_context *cli, const pareto *p, cs_error *err)
{
    const search_outcome *o = &p->outcome;
    cs_status status = CS_OK;

    fprintf(cli->out,
            "%s: %llu designs evaluated (%llu infeasible, %llu failed); ended: %s.  %zu on the "
            "front%s:\n\n",
            psa_schema_name(p->problem.schema), (unsigned long long)o->unique,
            (unsigned long long)o->infeasible, (unsigned long long)o->failed,
            search_stop_names[o->stop], p->front.n,
            is_whole(p) ? ", which is that of the whole space" : "");
    CS_TRY(report_front_write(&p->front, "pareto", REPORT_TABLE, cli->out, err));
    if (p->place.dir != NULL && !cli->args.quiet)
        fprintf(cli->out, "\nWritten: %s/ (study.db, front.csv, front.json, report.html)\n",
                p->place.dir);
done:
    return status;
}

static cs_status print(const cli_context *cli, const pareto *p, cs_error *err)
{
    if (cli->args.format == REPORT_JSON)
        return print_json(cli, p, err);
    if (cli->args.format == REPORT_CSV)
        return report_front_write(&p->front, "pareto", REPORT_CSV, cli->out, err);
    return print_people(cli, p, err);
}

static cs_status run_pareto(cli_context *cli, cs_error *err)
{
    pareto *p = calloc(1, sizeof *p);
    cs_status status = CS_OK;
    search_options options;

    if (p == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(load(cli, p, err));
    options = options_of(cli, p);
    CS_TRY(choose_agent(cli, p, &options, err));
    CS_TRY(cli_place_make(cli, psa_schema_name(p->problem.schema), &p->place, err));
    CS_TRY(run_search(cli, p, &options, err));
    CS_TRY(search_study_open(p->place.study, &p->study, err));
    CS_TRY(report_front_collect(p->study, p->problem.objectives, &p->front, err));
    CS_TRY(write_files(p, err));
    if (p->front.n == 0 && p->outcome.stop != SEARCH_SIGNAL)
        CS_TRY(cs_fail(err, CS_EINFEASIBLE,
                       "no feasible design with a value for each of %s among %llu evaluated",
                       p->problem.objectives, (unsigned long long)p->outcome.unique));
    CS_TRY(print(cli, p, err));
    if (p->outcome.stop == SEARCH_SIGNAL)
        status =
            cs_fail(err, CS_ESTOPPED, "stopped by a signal after %llu evaluations; %s is valid",
                    (unsigned long long)p->outcome.unique, p->place.study);
done:
    if (p != NULL) {
        report_front_fini(&p->front);
        search_study_close(p->study);
        search_outcome_fini(&p->outcome);
        cli_place_fini(&p->place);
        search_problem_fini(&p->problem);
        free(p);
    }
    return status;
}

static const report_column dictionary[] = {
    {"criteria", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "what the front is drawn over; of each trial: its values"},
    {"knee_trial", "", REPORT_INTEGER, CS_DIMENSIONLESS,
     "the trial nearest to the best of all criteria, each scaled between its ends (logarithms)"},
    {"knee", "", REPORT_TEXT, CS_DIMENSIONLESS, "whether the trial is the knee"},
    {"changes_from_previous", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "knobs that differ from the trial before it on the front"},
    {"exact", "", REPORT_TEXT, CS_DIMENSIONLESS, "whether every valid design was looked at"},
    {"evaluations", "", REPORT_INTEGER, CS_DIMENSIONLESS, "designs evaluated, all of them unique"},
    {"infeasible", "", REPORT_INTEGER, CS_DIMENSIONLESS, "designs over a limit"},
    {"failed", "", REPORT_INTEGER, CS_DIMENSIONLESS, "designs the simulator could not do"},
    {"stop", "", REPORT_TEXT, CS_DIMENSIONLESS, "why the search ended"},
    {"study", "", REPORT_TEXT, CS_DIMENSIONLESS, "study file"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

const cli_command cli_pareto = {
    .name = "pareto",
    .summary = "searches the trade-off between objectives; leaves study, front and report",
    .usage = "PSA [--objectives A,B] [--exact] [--evaluations N] [--seed S] [--out DIR]",
    .example = "cosmic-search pareto configs/psa/gpt3-175b-system3.yaml --objectives "
               "latency,network_cost --evaluations 5000",
    .options = "objectives exact agent param evaluations timeout seed jobs study resume stack fix "
               "out",
    .min_files = 1,
    .max_files = 1,
    .dictionary = dictionary,
    .trial_keys = true,
    .run = run_pareto,
};
