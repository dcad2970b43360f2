/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Puts the page together: the template with style, data, charts and script in their places. */
#include "report/html_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BYTES = 12 << 20 };

/* A study with what the page needs of it. */
typedef struct {
    html__rows rows;
    html__marks marks;
} part;

/* A page of studies, or of a comparison. */
typedef struct {
    const report_page *page;
    part *part;
    const report_comparison *comparison; /* NULL: of studies */
    FILE *out;
} writer;

static const html__asset *find_asset(const char *name)
{
    const html__asset *asset = html__assets;

    while (asset->name != NULL && strcmp(asset->name, name) != 0)
        asset++;
    return asset;
}

static void put_asset(FILE *out, const char *name)
{
    const html__asset *asset = find_asset(name);

    if (asset->n > 0)
        fwrite(asset->bytes, 1, asset->n, out);
}

/* Text with the characters that mean something in HTML written as entities. */
static void put_escaped(FILE *out, const char *text)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

    for (; *text != '\0'; text++) {
        size_t e = 0;
        while (e < CS_COUNT(entities) && entities[e].c != *text)
            e++;
        if (e < CS_COUNT(entities))
            fputs(entities[e].entity, out);
        else if ((unsigned char)*text >= 32 || *text == '\n')
            fputc(*text, out);
    }
}

/* ---- the data ---- */

static cs_status put_study(const writer *w, const part *p, cs_error *err)
{
    cs_json *object = cs_json_object();
    cs_status status = CS_OK;

    CS_TRY(html__put_study(&p->rows, &p->marks, w->page->explained, object, err));
    fputs("{\"about\":", w->out);
    status = html__put_json(w->out, object, err);
    object = NULL;
    if (status != CS_OK)
        goto done;
    fputs(",\n\"rows\":", w->out);
    html__put_rows(w->out, &p->rows);
    fputs("}", w->out);
done:
    cs_json_destroy(object);
    return status;
}

/* Why there are no charts, as one line; NULL when there are. */
static cs_json *missing_json(void)
{
    const html__asset *missing = find_asset("missing.txt");
    cs_json *value;
    char *text;

    if (missing->n == 0)
        return cs_json_null();
    text = strndup((const char *)missing->bytes, missing->n);
    value = cs_json_string(text);
    free(text);
    return value;
}

static cs_json *results_json(void)
{
    cs_json *list = cs_json_array();

    for (size_t i = 0; i < HTML_N_RESULTS; i++) {
        const report_result *r = report__find_result(html__results[i]);
        cs_json *one = cs_json_object();
        cs_json_set(one, "key", cs_json_string(r->key));
        cs_json_set(one, "title", cs_json_string(r->title));
        cs_json_set(one, "unit", cs_json_string(cs_dimension_symbol(r->unit)));
        cs_json_set(one, "help", cs_json_string(r->help));
        cs_json_push(list, one);
    }
    return list;
}

static cs_json *head_json(void)
{
    cs_json *head = cs_json_object(), *statuses = cs_json_array();

    for (size_t s = SEARCH_FEASIBLE; s <= SEARCH_INVALID; s++)
        cs_json_push(statuses, cs_json_string(search_status_names[s]));
    cs_json_set(head, "version", cs_json_string(cs_version()));
    cs_json_set(head, "missing", missing_json());
    cs_json_set(head, "metrics", cs_json_int(HTML_N_METRICS));
    cs_json_set(head, "results", results_json());
    return cs_json_set(head, "statuses", statuses);
}

static cs_status put_data(const writer *w, cs_error *err)
{
    const size_t n = w->page != NULL ? w->page->n : 0;
    cs_status status = CS_OK;

    fputs("{\"head\":", w->out);
    CS_TRY(html__put_json(w->out, head_json(), err));
    fputs(",\n\"studies\":[", w->out);
    for (size_t i = 0; i < n; i++) {
        fputs(i > 0 ? ",\n" : "\n", w->out);
        CS_TRY(put_study(w, &w->part[i], err));
    }
    fputc(']', w->out);
    if (w->comparison != NULL) {
        fputs(",\n\"compare\":", w->out);
        CS_TRY(html__put_compare(w->comparison, w->out, err));
    }
    fputc('}', w->out);
done:
    return status;
}

/* ---- the page ---- */

static cs_status put_title(const writer *w, cs_error *err)
{
    (void)err;
    put_escaped(w->out, w->comparison != NULL ? w->comparison->result->name
                                              : psa_schema_name(w->part[0].rows.problem->schema));
    return CS_OK;
}

static cs_status put_style(const writer *w, cs_error *err)
{
    (void)err;
    put_asset(w->out, "style.css");
    return CS_OK;
}

static cs_status put_charts(const writer *w, cs_error *err)
{
    (void)err;
    put_asset(w->out, "charts.js");
    return CS_OK;
}

static cs_status put_script(const writer *w, cs_error *err)
{
    (void)err;
    put_asset(w->out, "page.js");
    return CS_OK;
}

/* What stands at each mark of the template. */
static const struct {
    const char *mark;
    cs_status (*put)(const writer *w, cs_error *err);
} marks[] = {
    {"@TITLE@", put_title},   {"@STYLE@", put_style},   {"@DATA@", put_data},
    {"@CHARTS@", put_charts}, {"@SCRIPT@", put_script},
};

static cs_status put_mark(const writer *w, const char *at, size_t left, size_t *length,
                          cs_error *err)
{
    *length = 0;
    for (size_t m = 0; m < CS_COUNT(marks); m++) {
        const size_t n = strlen(marks[m].mark);
        if (left < n || memcmp(at, marks[m].mark, n) != 0)
            continue;
        *length = n;
        return marks[m].put(w, err);
    }
    return CS_OK;
}

static cs_status put_page(const writer *w, cs_error *err)
{
    const html__asset *template = find_asset("template.html");
    const char *text = (const char *)template->bytes;
    cs_status status = CS_OK;

    for (size_t i = 0; i < template->n;) {
        size_t length = 0;
        if (text[i] == '@')
            CS_TRY(put_mark(w, text + i, template->n - i, &length, err));
        if (length == 0) {
            fputc(text[i], w->out);
            length = 1;
        }
        i += length;
    }
    if (ferror(w->out))
        status = cs_fail(err, CS_EIO, "cannot write the page");
done:
    return status;
}

/* Reads all studies and decides what fits: every study gets the same share of its trials. */
static cs_status read_parts(const report_page *page, part *parts, cs_error *err)
{
    const size_t most = page->most_bytes > 0 ? page->most_bytes : DEFAULT_BYTES;
    cs_status status = CS_OK;
    size_t bytes = 0;

    for (size_t i = 0; i < page->n; i++) {
        CS_TRY(html__rows_read(&page->source[i], &parts[i].rows, err));
        CS_TRY(html__marks_find(&parts[i].rows, page->front, &parts[i].marks, err));
        bytes += parts[i].rows.n * html__row_bytes(&parts[i].rows);
    }
    for (size_t i = 0; i < page->n; i++) {
        const size_t n = parts[i].rows.n;
        const size_t fits = bytes <= most ? n : (size_t)((double)n * (double)most / (double)bytes);
        CS_TRY(html__rows_thin(&parts[i].rows, &parts[i].marks, fits, err));
    }
done:
    return status;
}

cs_status report_html(const report_page *page, FILE *out, cs_error *err)
{
    part *parts = calloc(page->n + 1, sizeof *parts);
    const writer w = {page, parts, NULL, out};
    cs_status status = CS_OK;

    if (parts == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    if (page->n == 0)
        CS_TRY(cs_fail(err, CS_EINVAL, "a report needs a study"));
    CS_TRY(read_parts(page, parts, err));
    CS_TRY(put_page(&w, err));
done:
    for (size_t i = 0; i < page->n; i++) {
        html__rows_fini(&parts[i].rows);
        html__marks_fini(&parts[i].marks);
    }
    free(parts);
    return status;
}

cs_status report_html_compare(const report_comparison *comparison, FILE *out, cs_error *err)
{
    const writer w = {NULL, NULL, comparison, out};

    return put_page(&w, err);
}
