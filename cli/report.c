/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * report: studies as one page to look at. */
#include "cli/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The studies of a page. */
typedef struct {
    search_study **study;
    report_source *source;
    size_t n;
} studies;

static double info_number(const search_study *study, const char *key)
{
    const char *text = search_study_info(study, key);
    char *end = NULL;
    const double value = text != NULL ? strtod(text, &end) : NAN;

    return end != NULL && end != text ? value : NAN;
}

/* The whole of a file as JSON; NULL when that cannot be had. */
static cs_json *read_json(const char *path)
{
    FILE *file = fopen(path, "r");
    cs_json *value = NULL;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    if (file == NULL)
        return NULL;
    n = getdelim(&text, &size, '\0', file);
    fclose(file);
    if (n > 0 && cs_json_parse(text, (size_t)n, &value, NULL) != CS_OK)
        value = NULL;
    free(text);
    return value;
}

/* The bound that `run` wrote beside the study, in run.json; only of the same inputs. */
static void bound_beside(const char *study_path, const search_study *study, report_source *source)
{
    const char *slash = strrchr(study_path, '/'), *hash = NULL;
    const int folder = slash != NULL ? (int)(slash - study_path) + 1 : 0;
    char path[4096];
    cs_json *run;

    if (snprintf(path, sizeof path, "%.*srun.json", folder, study_path) >= (int)sizeof path)
        return;
    run = read_json(path);
    if (run != NULL && cs_json_get_string(cs_json_get(run, "inputs_hash"), &hash) &&
        strcmp(hash, search_study_info(study, "hash")) == 0) {
        (void)cs_json_get_real(cs_json_get(run, "bound"), &source->bound);
        (void)cs_json_get_real(cs_json_get(run, "gap"), &source->gap);
    }
    cs_json_destroy(run);
}

static cs_status open_studies(const cli_list *files, studies *s, cs_error *err)
{
    cs_status status = CS_OK;

    s->study = calloc(files->n, sizeof *s->study);
    s->source = calloc(files->n, sizeof *s->source);
    if (s->study == NULL || s->source == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    for (size_t i = 0; i < files->n; i++) {
        CS_TRY(search_study_open(files->item[i], &s->study[i], err));
        s->n++;
        s->source[i] = (report_source){
            .study = s->study[i],
            .path = files->item[i],
            .bound = info_number(s->study[i], "bound"),
            .gap = info_number(s->study[i], "gap"),
        };
        if (isnan(s->source[i].bound))
            bound_beside(files->item[i], s->study[i], &s->source[i]);
    }
done:
    return status;
}

static void studies_fini(studies *s)
{
    for (size_t i = 0; i < s->n; i++)
        search_study_close(s->study[i]);
    free(s->study);
    free(s->source);
}

cs_status cli_write_report(const report_page *page, const char *path, uint64_t *bytes,
                           cs_error *err)
{
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};
    long end;

    CS_TRY(cli_file_open(path, &file, err));
    CS_TRY(report_html(page, file.file, err));
    end = ftell(file.file);
    *bytes = end > 0 ? (uint64_t)end : 0;
    CS_TRY(cli_file_commit(&file, err));
done:
    cli_file_discard(&file);
    return status;
}

cs_status cli_write_comparison(const search_compare_result *result, const char *runs,
                               const char *path, cs_error *err)
{
    report_comparison comparison = {result, fopen(runs, "r")};
    cs_status status = CS_OK;
    cli_file file = {.file = NULL};

    if (comparison.runs == NULL)
        return cs_fail(err, CS_EIO, "%s: cannot be read", runs);
    CS_TRY(cli_file_open(path, &file, err));
    CS_TRY(report_html_compare(&comparison, file.file, err));
    CS_TRY(cli_file_commit(&file, err));
done:
    cli_file_discard(&file);
    fclose(comparison.runs);
    return status;
}

static cs_status say(const cli_context *cli, const studies *s, const char *path, uint64_t bytes,
                     cs_error *err)
{
    uint64_t n = 0;
    char trials[64], size[64];

    for (size_t i = 0; i < s->n; i++)
        n += search_study_n_trials(s->study[i]);
    if (cli->args.format == REPORT_JSON) {
        cs_json *object = report_header_json("report", search_study_problem(s->study[0]));
        cs_json_set(object, "report", cs_json_string(path));
        cs_json_set(object, "bytes", cs_json_int((int64_t)bytes));
        cs_json_set(object, "studies", cs_json_int((int64_t)s->n));
        cs_json_set(object, "trials", cs_json_int((int64_t)n));
        return cli_print_json(cli, object, err);
    }
    if (cli->args.format == REPORT_CSV)
        fprintf(cli->out, "report,bytes,studies,trials\n%s,%llu,%zu,%llu\n", path,
                (unsigned long long)bytes, s->n, (unsigned long long)n);
    else if (!cli->args.quiet)
        fprintf(cli->out, "%s: %s trials of %zu %s, %s\n", path, report_count(n, trials), s->n,
                s->n == 1 ? "study" : "studies", report_quantity((double)bytes, CS_BYTES, size));
    return CS_OK;
}

static cs_status run_report(cli_context *cli, cs_error *err)
{
    const char *path = cli->args.out != NULL ? cli->args.out : "report.html";
    studies s = {.n = 0};
    cs_status status = CS_OK;
    uint64_t bytes = 0;

    CS_TRY(open_studies(&cli->args.files, &s, err));
    const report_page page = {
        .source = s.source, .n = s.n, .front = cli->args.objectives, .explained = 3};
    CS_TRY(cli_write_report(&page, path, &bytes, err));
    CS_TRY(say(cli, &s, path, bytes, err));
done:
    studies_fini(&s);
    return status;
}

static const report_column dictionary[] = {
    {"report", "", REPORT_TEXT, CS_DIMENSIONLESS, "file that was written"},
    {"bytes", "", REPORT_INTEGER, CS_BYTES, "its size"},
    {"studies", "", REPORT_INTEGER, CS_DIMENSIONLESS, "studies it shows"},
    {"trials", "", REPORT_INTEGER, CS_DIMENSIONLESS, "trials of all studies"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

const cli_command cli_report = {
    .name = "report",
    .summary = "studies as one page to look at, which opens without a network",
    .usage = "STUDY.db [MORE.db]... [-o report.html] [--objectives A,B]",
    .example = "cosmic-search report results/quickstart/study.db -o report.html",
    .options = "out objectives",
    .min_files = 1,
    .max_files = 12,
    .dictionary = dictionary,
    .run = run_report,
};
