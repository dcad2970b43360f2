/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `trace info`: totals, traffic by collective and group, lines for people, oddities. */
#include "tests/wl_trace_test.h"

static bool has_line(const char *const *line, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(line[i], text) != NULL)
            return true;
    return false;
}

static wl_trace_info *summarize(const wl_trace *trace, cs_arena *arena)
{
    wl_trace_info *info = NULL;
    cs_error err = {{0}};

    if (wl_trace_summarize(trace, arena, &info, &err) != CS_OK)
        fail_msg("%s", err.text);
    return info;
}

/* Two ranks, each 5 us and, behind it, 7 us of compute, an all-reduce of 1,000 bytes, one of no
 * bytes, an all-gather of 64; rank 0 sends 32 bytes to rank 1. */
static void small_job(void)
{
    for (int rank = 0; rank < 2; rank++) {
        wl_et_writer *w = start(rank == 0 ? "job.0.et" : "job.1.et");

        put_comp(w, 1, 0, 5);
        put_comp(w, 2, 1, 7);
        put_coll(w, 3, WL_CHAKRA_ALL_REDUCE, 1000, NULL);
        put_coll(w, 4, WL_CHAKRA_ALL_REDUCE, 0, NULL);
        put_coll(w, 5, WL_CHAKRA_ALL_GATHER, 64, NULL);
        put_message(w, rank == 0 ? WL_NODE_SEND : WL_NODE_RECV, 6, 0, 1, 9, 32);
        finish(w);
    }
}

static void test_totals_and_traffic_of_a_small_job(void **state)
{
    static const struct {
        const char *kind;
        uint64_t count, bytes;
    } expect[] = {
        {"ALL_REDUCE", 4, 2000}, {"ALL_GATHER", 2, 128}, {"SEND", 1, 32}, {"RECV", 1, 32}};
    cs_arena *arena = cs_arena_create(0);
    const wl_trace_info *info;
    wl_trace *trace;

    (void)state;
    make_folder();
    small_job();
    trace = load_made("job");
    info = summarize(trace, arena);
    assert_int_equal(info->total.nodes, 12);
    assert_int_equal(info->total.data_edges, 2);
    assert_int_equal(info->total.comp_duration_ps, 24000000);
    assert_int_equal(info->total.comp_longest_path_ps, 12000000);
    assert_int_equal(info->total.coll_bytes, 2128);
    assert_int_equal(info->total.send_bytes, 32);
    assert_int_equal(info->total.recv_bytes, 32);
    assert_int_equal(info->n_traffic, CS_COUNT(expect));
    for (size_t i = 0; i < CS_COUNT(expect); i++) {
        size_t k = 0;

        while (k < info->n_traffic && strcmp(info->traffic[k].kind, expect[i].kind) != 0)
            k++;
        assert_in_range(k, 0, info->n_traffic - 1);
        assert_int_equal(info->traffic[k].count, expect[i].count);
        assert_int_equal(info->traffic[k].bytes, expect[i].bytes);
        assert_int_equal(info->traffic[k].ranks, 2);
    }
    assert_true(info->file_bytes > 0);
    assert_true(has_line(info->line, info->n_lines, "2 of 2"));
    assert_true(has_line(info->line, info->n_lines, "24.000 us in all, 12.000 us on the longest"));
    assert_true(has_line(info->line, info->n_lines, "group all (2 ranks): 4 x, 2000 bytes"));
    assert_true(has_line(info->oddity, info->n_oddities, "2 communication nodes of 0 bytes"));
    wl_trace_destroy(trace);
    cs_arena_destroy(arena);
    remove_folder();
}

/* Six ranks in twelve declared groups, each of two neighbours: too many for a line each.  Every
 * group reduces 10 bytes on both of its ranks, in the order of the groups on every rank. */
static void test_many_groups_are_joined_by_size(void **state)
{
    enum { RANKS = 6, GROUPS = 12 };
    cs_arena *arena = cs_arena_create(0);
    char text[1024] = "{";
    const wl_trace_info *info;
    wl_trace *trace;

    (void)state;
    make_folder();
    for (int g = 0; g < GROUPS; g++) {
        const size_t n = strlen(text), pair = (size_t)g % (RANKS / 2);

        snprintf(text + n, sizeof text - n, "%s\"g%d\": [%zu, %zu]", g > 0 ? ", " : "", g, 2 * pair,
                 2 * pair + 1);
    }
    strcat(text, "}");
    write_string("job.json", text);
    for (int rank = 0; rank < RANKS; rank++) {
        char name[16];
        wl_et_writer *w;
        uint64_t id = 1;

        snprintf(name, sizeof name, "job.%d.et", rank);
        w = start(name);
        for (int g = rank / 2; g < GROUPS; g += RANKS / 2) {
            snprintf(name, sizeof name, "g%d", g);
            put_coll(w, id++, WL_CHAKRA_ALL_REDUCE, 10, name);
        }
        finish(w);
    }
    trace = load_made("job");
    info = summarize(trace, arena);
    assert_int_equal(info->n_traffic, GROUPS);
    assert_int_equal(info->total.coll_bytes, GROUPS * 2 * 10);
    assert_true(has_line(info->line, info->n_lines, "12 groups of 2 ranks: 24 x, 240 bytes"));
    assert_true(has_line(info->line, info->n_lines, "0 data, 0 control (none)"));
    assert_true(has_line(info->oddity, info->n_oddities, "no dependencies at all"));
    wl_trace_destroy(trace);
    cs_arena_destroy(arena);
    remove_folder();
}

/* Nodes that say little: no CPU flag, no duration, no type of the collective. */
static void test_oddities_are_counted(void **state)
{
    static const int64_t size = 8;
    const wl_et_attr attr = {"comm_size", "", WL_ARM_INT64, 1, &size};
    cs_arena *arena = cs_arena_create(0), *small = cs_arena_create(64);
    const wl_trace_info *info;
    wl_trace_info *none = NULL;
    wl_et_writer *w;
    wl_trace *trace;
    cs_error err;

    (void)state;
    make_folder();
    w = start("job.0.et");
    put_attrs(w, WL_NODE_COMP, 1, NULL, 0);
    put_attrs(w, WL_NODE_COMP, 2, NULL, 0);
    put_attrs(w, WL_NODE_COLL, 3, &attr, 1);
    finish(w);
    trace = load_made("job");
    info = summarize(trace, arena);
    assert_string_equal(info->traffic[0].kind, "COMM_COLL");
    assert_true(has_line(info->oddity, info->n_oddities, "no node says whether"));
    assert_true(has_line(info->oddity, info->n_oddities, "2 compute nodes have neither"));
    assert_true(has_line(info->oddity, info->n_oddities, "schema 0.0.4"));
    assert_int_equal(wl_trace_summarize(trace, small, &none, &err), CS_ENOMEM);
    wl_trace_destroy(trace);
    cs_arena_destroy(small);
    cs_arena_destroy(arena);
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_totals_and_traffic_of_a_small_job),
        cmocka_unit_test(test_many_groups_are_joined_by_size),
        cmocka_unit_test(test_oddities_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
