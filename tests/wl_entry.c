/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/wl_test.h"

static cs_status parse(const char *text, wl_workload *out, cs_error *err)
{
    cs_doc *doc = NULL;
    cs_status status = cs_doc_parse(text, strlen(text), "psa.yaml", &doc, err);

    if (status == CS_OK)
        status = wl_workload_parse(doc, cs_doc_root(doc), NULL, out, err);
    cs_doc_destroy(doc);
    return status;
}

static void test_entries_are_read(void **state)
{
    static const struct {
        const char *text;
        wl_workload expect;
    } cases[] = {
        {"{model: m.yaml, global_batch: 2048, sequence: 2048}",
         {.mode = WL_TRAIN, .global_batch = 2048, .sequence = 2048, .output = 1, .weight = 1}},
        {"{model: m.yaml, mode: prefill, global_batch: 8, sequence: 3000, weight: 2.5}",
         {.mode = WL_PREFILL, .global_batch = 8, .sequence = 3000, .output = 1, .weight = 2.5}},
        {"{model: m.yaml, mode: decode, global_batch: 8, context: 3500, output: 1000}",
         {.mode = WL_DECODE,
          .global_batch = 8,
          .sequence = 1,
          .context = 3500,
          .output = 1000,
          .weight = 1}},
        {"{model: m.yaml, mode: serve, global_batch: 8, sequence: 3000, output: 1000, npus: 64, "
         "requests_per_s: 2.5}",
         {.mode = WL_SERVE,
          .global_batch = 8,
          .sequence = 3000,
          .output = 1000,
          .npus = 64,
          .requests_per_s = 2.5,
          .weight = 1}},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const wl_workload *e = &cases[i].expect;
        wl_workload w = {0};
        cs_error err = {{0}};

        assert_int_equal(parse(cases[i].text, &w, &err), CS_OK);
        assert_int_equal(w.mode, e->mode);
        assert_true(w.global_batch == e->global_batch && w.sequence == e->sequence &&
                    w.context == e->context && w.output == e->output && w.weight == e->weight);
        assert_true(w.npus == e->npus && w.requests_per_s == e->requests_per_s);
    }
}

static void test_wrong_entries_are_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{global_batch: 8, sequnce: 4}", "psa.yaml:1:19: "},
        {"{global_batch: 8, sequnce: 4}", "sequence"},
        {"{sequence: 4}", "mode train needs the key 'global_batch'"},
        {"{global_batch: 8}", "mode train needs the key 'sequence'"},
        {"{mode: decode, global_batch: 8}", "mode decode needs the key 'context'"},
        {"{mode: trian, global_batch: 8, sequence: 4}", "train"},
        {"{global_batch: 0, sequence: 4}", "psa.yaml:1:16: "},
        {"{global_batch: 8 GB, sequence: 4}", "psa.yaml:1:16: "},
        {"{global_batch: 8, sequence: 4, weight: -1}", "a weight of 0 or more"},
        {"{mode: serve, global_batch: 8}", "mode serve needs the key 'sequence'"},
        {"{global_batch: 8, sequence: 4, requests_per_s: 2}", "requests_per_s needs mode: serve"},
        {"{mode: serve, global_batch: 8, sequence: 4, requests_per_s: 0}", "more than 0 requests"},
        {"{global_batch: 8, sequence: 4, npus: 0}", "psa.yaml:1:38: "},
        {"[1, 2]", "psa.yaml:1:1: "},
    };

    (void)state;
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        wl_workload w;
        cs_error err = {{0}};

        assert_int_not_equal(parse(cases[i].text, &w, &err), CS_OK);
        if (strstr(err.text, cases[i].message) == NULL)
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_are_read),
        cmocka_unit_test(test_wrong_entries_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
