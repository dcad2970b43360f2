/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data of the page: what is thinned and what never is, exact columns, the same bytes twice. */
#include "report/html_private.h"

#include <unistd.h>

#include "tests/test.h"

enum { TRIALS = 300 };

typedef struct {
    search_problem problem;
    search_study *study;
    char folder[64], path[96];
} fixture;

static int setup(void **state)
{
    const search_problem_options options = {.psa_path = "configs/psa/gpt3-13b-system1.yaml"};
    fixture *f = calloc(1, sizeof *f);
    search_outcome outcome = {.n_least = 0};
    search_options run = {.evaluations = TRIALS, .seed = 3, .jobs = 1};
    cs_error err = {.text = ""};

    snprintf(f->folder, sizeof f->folder, "/tmp/report-html-XXXXXX");
    if (mkdtemp(f->folder) == NULL)
        fail_msg("no temporary folder");
    snprintf(f->path, sizeof f->path, "%s/study.db", f->folder);
    run.study_path = f->path;
    if (search_problem_load(&options, &f->problem, &err) != CS_OK ||
        agent_find("random", &run.agent, &err) != CS_OK ||
        search_run(&f->problem, &run, &outcome, &err) != CS_OK ||
        search_study_open(f->path, &f->study, &err) != CS_OK)
        fail_msg("%s", err.text);
    search_outcome_fini(&outcome);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = {"study.db", "study.db-wal", "study.db-shm"};
    fixture *f = *state;
    char path[128];

    search_study_close(f->study);
    search_problem_fini(&f->problem);
    for (size_t i = 0; i < CS_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", f->folder, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(f->folder);
    free(f);
    return 0;
}

static void read_all(const report_source *source, html__rows *rows, html__marks *marks)
{
    cs_error err = {.text = ""};

    if (html__rows_read(source, rows, &err) != CS_OK ||
        html__marks_find(rows, "latency,peak_memory", marks, &err) != CS_OK)
        fail_msg("%s", err.text);
}

/* Every fifth row at most, but all of the best, the improvements and the fronts. */
static void test_thinning_keeps_best_and_fronts(void **state)
{
    const fixture *f = *state;
    const report_source source = {.study = f->study, .path = f->path, .bound = NAN, .gap = NAN};
    html__rows rows;
    html__marks marks;
    size_t shown = 0, needed = 0;

    read_all(&source, &rows, &marks);
    assert_int_equal(rows.n, TRIALS);
    assert_int_equal(html__rows_thin(&rows, &marks, 0, NULL), CS_OK);
    needed = rows.n_shown;
    free(rows.shown);
    free(rows.row);
    rows.n_shown = 0;
    assert_int_equal(html__rows_thin(&rows, &marks, TRIALS / 2, NULL), CS_OK);
    assert_true(needed < TRIALS / 2);
    assert_int_equal(rows.n_shown, TRIALS / 2);
    for (size_t i = 0; i < marks.n_top; i++)
        assert_true(rows.shown[marks.top[i]]);
    for (size_t i = 0; i < marks.n_improvements; i++)
        assert_true(rows.shown[marks.improvement[i]]);
    for (size_t p = 0; p < marks.n_fronts; p++)
        for (size_t i = 0; i < marks.front[p].n; i++)
            assert_true(rows.shown[marks.front[p].row[i]]);
    for (size_t i = 0; i < marks.asked.n; i++)
        assert_true(rows.shown[marks.asked_row[i]]);
    for (size_t i = 0; i < rows.n; i++) {
        assert_int_equal(rows.row[i], shown);
        shown += rows.shown[i];
    }
    html__rows_fini(&rows);
    html__marks_fini(&marks);
}

static void test_best_is_that_of_the_search(void **state)
{
    const fixture *f = *state;
    const report_source source = {.study = f->study, .path = f->path, .bound = NAN, .gap = NAN};
    html__rows rows;
    html__marks marks;

    read_all(&source, &rows, &marks);
    assert_true(marks.n_top > 1 && marks.n_improvements > 0);
    assert_int_equal(marks.n_nearest, 0);
    assert_true(rows.key[marks.top[0]] == rows.key[marks.improvement[marks.n_improvements - 1]]);
    for (size_t i = 1; i < marks.n_top; i++)
        assert_true(rows.key[marks.top[i - 1]] <= rows.key[marks.top[i]]);
    for (size_t i = 0; i < rows.n; i++)
        assert_true(rows.key[marks.top[0]] <= rows.key[i]);
    html__rows_fini(&rows);
    html__marks_fini(&marks);
}

static char *write_page(const report_page *page)
{
    cs_error err = {.text = ""};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (report_html(page, out, &err) != CS_OK)
        fail_msg("%s", err.text);
    fclose(out);
    return text;
}

static size_t occurrences(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        n++;
    return n;
}

/* A path that would be markup; three script elements: data, charts, page. */
static void test_page_is_the_same_twice_and_escapes(void **state)
{
    const fixture *f = *state;
    const report_source source = {.study = f->study,
                                  .path = "</script><img src=x onerror=alert(1)>",
                                  .bound = NAN,
                                  .gap = NAN};
    const report_page page = {.source = &source, .n = 1, .explained = 1};
    char *first = write_page(&page), *second = write_page(&page);

    assert_string_equal(first, second);
    assert_int_equal(occurrences(first, "</script"), 3);
    assert_int_equal(occurrences(first, "<img"), 0);
    assert_non_null(strstr(first, "\\u003c/script\\u003e\\u003cimg src=x onerror=alert(1)"));
    assert_null(strstr(first, "@DATA@"));
    free(first);
    free(second);
}

static void test_small_pages_say_how_many_they_show(void **state)
{
    const fixture *f = *state;
    const report_source source = {.study = f->study, .path = f->path, .bound = NAN, .gap = NAN};
    const report_page page = {.source = &source, .n = 1, .most_bytes = 1};
    char *text = write_page(&page);

    assert_non_null(strstr(text, "\"counts\":{\"trials\":300,\"shown\":"));
    assert_null(strstr(text, "\"counts\":{\"trials\":300,\"shown\":300"));
    free(text);
}

static void test_no_study_is_refused(void **state)
{
    const report_page page = {.n = 0};
    cs_error err = {.text = ""};

    (void)state;
    assert_int_equal(report_html(&page, stderr, &err), CS_EINVAL);
    assert_string_equal(err.text, "a report needs a study");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thinning_keeps_best_and_fronts),
        cmocka_unit_test(test_best_is_that_of_the_search),
        cmocka_unit_test(test_page_is_the_same_twice_and_escapes),
        cmocka_unit_test(test_small_pages_say_how_many_they_show),
        cmocka_unit_test(test_no_study_is_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
