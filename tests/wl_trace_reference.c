/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Real traces: facts of every rank as independent readers counted them, malformed files by class
 * and place, and read -> write -> read as the identity.  Without the reference data the tests say
 * how much they skipped. */
#include "tests/wl_trace_test.h"

#define CHAKRA REFERENCE "chakra/"
enum { MAX_COLUMNS = 24 };

/* ---- tables ---- */

typedef struct {
    char *column[MAX_COLUMNS];
    int n;
} row;

/* Cuts a line at tabs, in place; empty columns stay. */
static row cut(char *line)
{
    row r = {{0}, 0};

    line[strcspn(line, "\r\n")] = 0;
    for (char *p = line; p != NULL && r.n < MAX_COLUMNS;) {
        r.column[r.n++] = p;
        p = strchr(p, '\t');
        if (p != NULL)
            *p++ = 0;
    }
    return r;
}

static FILE *open_table(const char *name)
{
    char path[256];
    FILE *f;
    int c;

    snprintf(path, sizeof path, CHAKRA "%s", name);
    f = fopen(path, "r");
    assert_non_null(f);
    while ((c = fgetc(f)) != EOF && c != '\n') /* the header */
        ;
    return f;
}

static void skipped(const char *what)
{
    printf("skipped: %s (no reference data beside the repository)\n", what);
    skip();
}

/* "COMP=7 RECV=14" lists exactly the counts above 0. */
static void assert_counts(const row *r, const char *list, const uint64_t *count,
                          const char *const *name, int n)
{
    char copy[512], *word;
    uint64_t total = 0, listed = 0;

    for (int k = 0; k < n; k++)
        total += count[k];
    snprintf(copy, sizeof copy, "%s", list);
    for (word = strtok(copy, " "); word != NULL; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        uint64_t expect = strtoull(equals + 1, NULL, 10);
        int k = 0;

        *equals = 0;
        while (k < n && strcmp(name[k], word) != 0)
            k++;
        if (k == n || count[k] != expect)
            fail_msg("%s rank %s: %s is %llu, expected %llu", r->column[0], r->column[1], word,
                     k < n ? (unsigned long long)count[k] : 0, (unsigned long long)expect);
        listed += expect;
    }
    assert_int_equal(listed, total);
}

static void assert_number(const row *r, int column, const char *what, uint64_t actual)
{
    uint64_t expect = strtoull(r->column[column], NULL, 10);

    if (actual != expect)
        fail_msg("%s rank %s: %s is %llu, expected %llu", r->column[0], r->column[1], what,
                 (unsigned long long)actual, (unsigned long long)expect);
}

/* ---- ORACLE.tsv ---- */

static const char *const short_types[] = {"INVALID", "METADATA", "MEM_LOAD", "MEM_STORE",
                                          "COMP",    "SEND",     "RECV",     "COLL"};

static void check_rank(const row *r, const wl_rank_facts *f)
{
    const char *comms[WL_N_CHAKRA_COMMS + 1];

    memcpy(comms, wl_chakra_comm_names, WL_N_CHAKRA_COMMS * sizeof *comms);
    comms[WL_N_CHAKRA_COMMS] = "None";
    assert_number(r, 2, "nodes", f->nodes);
    assert_counts(r, r->column[3], f->by_type, short_types, WL_N_NODE_TYPES);
    assert_number(r, 4, "data edges", f->data_edges);
    assert_number(r, 5, "control edges", f->ctrl_edges);
    assert_number(r, 6, "missing data references", f->data_refs_missing);
    assert_number(r, 7, "missing control references", f->ctrl_refs_missing);
    assert_number(r, 8, "control references to oneself", f->self_ctrl);
    assert_number(r, 9, "CPU nodes", f->cpu_nodes);
    assert_number(r, 10, "compute us", (uint64_t)f->comp_duration_ps / 1000000);
    assert_number(r, 11, "longest path us", (uint64_t)f->comp_longest_path_ps / 1000000);
    assert_number(r, 12, "cyclic", f->data_cyclic);
    assert_number(r, 13, "operations", f->num_ops);
    assert_counts(r, r->column[14], f->coll_count, comms, WL_N_CHAKRA_COMMS + 1);
    assert_number(r, 15, "collective bytes", f->coll_bytes);
    assert_number(r, 16, "sent bytes", f->send_bytes);
    assert_number(r, 17, "received bytes", f->recv_bytes);
}

static void test_every_rank_has_the_facts_of_the_oracle(void **state)
{
    char line[4096], loaded[256] = "", path[512];
    wl_trace *trace = NULL;
    int rows = 0;
    FILE *f;

    (void)state;
    if (!have_reference())
        skipped("258 ranks");
    f = open_table("ORACLE.tsv");
    while (fgets(line, sizeof line, f) != NULL) {
        row r = cut(line);
        uint32_t rank = (uint32_t)strtoul(r.column[1], NULL, 10), i = 0;

        if (strcmp(loaded, r.column[0]) != 0) {
            wl_trace_destroy(trace);
            snprintf(loaded, sizeof loaded, "%s", r.column[0]);
            snprintf(path, sizeof path, CHAKRA "%s", loaded);
            trace = load(path, NULL);
        }
        while (i < trace->n_ranks && trace->rank[i].rank != rank)
            i++;
        assert_true(i < trace->n_ranks);
        check_rank(&r, &trace->rank[i].facts);
        rows++;
    }
    wl_trace_destroy(trace);
    fclose(f);
    assert_true(rows > 0);
}

static uint32_t count_ranks(const char *list)
{
    unsigned first, last;
    uint32_t n = 1;

    if (sscanf(list, "%u..%u", &first, &last) == 2)
        return last - first + 1;
    for (; *list != 0; list++)
        n += *list == ',';
    return n;
}

/* A set that an independent run could complete has no errors; one that got stuck has. */
static void test_sets_complete_as_the_oracle_says(void **state)
{
    char line[4096], path[512];
    FILE *f;

    (void)state;
    if (!have_reference())
        skipped("23 sets");
    f = open_table("ORACLE_SETS.tsv");
    while (fgets(line, sizeof line, f) != NULL) {
        row r = cut(line);
        wl_trace *trace;

        snprintf(path, sizeof path, CHAKRA "%s", r.column[0]);
        trace = load(path, NULL);
        assert_int_equal(trace->n_ranks, count_ranks(r.column[1]));
        assert_number(&r, 4, "nodes of the set", trace->n_nodes);
        if ((trace->n_errors == 0) != (strcmp(r.column[2], "yes") == 0))
            fail_msg("%s: %zu errors, expected complete = %s", r.column[0], trace->n_errors,
                     r.column[2]);
        wl_trace_destroy(trace);
    }
    fclose(f);
}

/* ---- MANIFEST.tsv ---- */

static void check_manifest_set(const row *r)
{
    char path[512], *slash;
    unsigned low, high;
    wl_trace *trace;
    wl_rank_facts total = {0};

    snprintf(path, sizeof path, CHAKRA "%s", r->column[1]);
    slash = strrchr(path, '/');
    *slash = 0;
    trace = load(path, NULL);
    assert_int_equal(trace->n_ranks, strtoul(r->column[8], NULL, 10));
    if (sscanf(r->column[9], "%u..%u", &low, &high) != 2)
        low = high = (unsigned)strtoul(r->column[9], NULL, 10);
    for (uint32_t i = 0; i < trace->n_ranks; i++) {
        assert_in_range(trace->rank[i].n, low, high);
        assert_int_equal(trace->rank[i].metadata, strcmp(r->column[6], "yes") == 0);
        assert_string_equal(wl_schema_names[trace->rank[i].schema], r->column[5]);
        assert_string_equal(trace->rank[i].schema_text, r->column[7]);
        for (int t = 0; t < WL_N_NODE_TYPES; t++)
            total.by_type[t] += trace->rank[i].facts.by_type[t];
    }
    /* The two-node file of 2023: the manifest lists what a reader of 0.0.4 would see. */
    if (strstr(r->column[1], "ambiguous") != NULL)
        assert_int_equal(total.by_type[WL_NODE_COMP], 2);
    else
        assert_counts(r, r->column[10], total.by_type, wl_node_type_names, WL_N_NODE_TYPES);
    wl_trace_destroy(trace);
}

static void test_files_decode_as_the_manifest_says(void **state)
{
    char line[4096];
    int sets = 0;
    FILE *f;

    (void)state;
    if (!have_reference())
        skipped("25 sets");
    f = open_table("MANIFEST.tsv");
    while (fgets(line, sizeof line, f) != NULL) {
        row r = cut(line);

        if (strcmp(r.column[5], "text") == 0)
            continue;
        check_manifest_set(&r);
        sets++;
    }
    fclose(f);
    assert_true(sets > 0);
}

/* ---- bad/ ---- */

static void check_bad(const row *r)
{
    char path[512], word[64];
    cs_error err = {{0}}, strict_err = {{0}};
    bool error = strncmp(r->column[2], "error", 5) == 0;
    bool warning = strcmp(r->column[2], "warning") == 0;
    cs_status status, strict;

    snprintf(path, sizeof path, CHAKRA "bad/%s", r->column[0]);
    status = judge(path, false, &err);
    strict = judge(path, true, &strict_err);
    if (status != (error ? CS_ETRACE : CS_OK) || strict != (error || warning ? CS_ETRACE : CS_OK))
        fail_msg("%s: %s, but status %d, strict %d: %s", r->column[0], r->column[2], status, strict,
                 strict_err.text);
    if (!error && !warning)
        return;
    snprintf(word, sizeof word, "%s: ", r->column[1]);
    if (strstr(strict_err.text, word) == NULL)
        fail_msg("%s: class %s is not in: %s", r->column[0], r->column[1], strict_err.text);
    snprintf(word, sizeof word, "offset %s:", r->column[3]);
    if (r->column[3][0] != 0 && strstr(strict_err.text, word) == NULL)
        fail_msg("%s: '%s' is not in: %s", r->column[0], word, strict_err.text);
}

static void test_bad_files_are_judged_as_expected(void **state)
{
    char line[4096];
    FILE *f;

    (void)state;
    if (!have_reference())
        skipped("41 malformed or odd inputs");
    f = open_table("bad/EXPECTED.tsv");
    while (fgets(line, sizeof line, f) != NULL) {
        row r = cut(line);

        check_bad(&r);
    }
    fclose(f);
}

/* ---- identity ---- */

/* Bytes of one value of an arm. */
static size_t value_bytes(uint8_t arm)
{
    switch ((arm - 1) / 2 * 2 + 1) {
    case WL_ARM_DOUBLE:
    case WL_ARM_INT64:
    case WL_ARM_UINT64:
    case WL_ARM_SINT64:
    case WL_ARM_FIXED64:
    case WL_ARM_SFIXED64:
        return 8;
    default:
        return 4;
    }
}

static void assert_same_attr(const wl_et_attr *a, const wl_et_attr *b)
{
    uint8_t scalar = WL_ARM_IS_LIST(a->arm) ? (uint8_t)(a->arm - 1) : a->arm;

    assert_string_equal(a->name, b->name);
    assert_string_equal(a->doc, b->doc);
    assert_int_equal(a->arm, b->arm);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        if (scalar == WL_ARM_STRING) {
            assert_string_equal(((const char *const *)a->values)[i],
                                ((const char *const *)b->values)[i]);
        } else if (scalar == WL_ARM_BYTES) {
            const wl_bytes *x = a->values, *y = b->values;

            assert_int_equal(x[i].n, y[i].n);
            assert_memory_equal(x[i].data, y[i].data, x[i].n);
        }
    }
    if (a->n > 0 && scalar != WL_ARM_STRING && scalar != WL_ARM_BYTES)
        assert_memory_equal(a->values, b->values, a->n * value_bytes(scalar));
}

static void assert_same_io(const wl_et_io *a, const wl_et_io *b)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a == NULL)
        return;
    assert_string_equal(a->values, b->values);
    assert_string_equal(a->shapes, b->shapes);
    assert_string_equal(a->types, b->types);
}

static void assert_same_node(const wl_et_node *a, const wl_et_node *b)
{
    assert_int_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->start_micros, b->start_micros);
    assert_int_equal(a->duration_micros, b->duration_micros);
    assert_int_equal(a->n_ctrl, b->n_ctrl);
    assert_int_equal(a->n_data, b->n_data);
    if (a->n_ctrl > 0)
        assert_memory_equal(a->ctrl_deps, b->ctrl_deps, a->n_ctrl * sizeof *a->ctrl_deps);
    if (a->n_data > 0)
        assert_memory_equal(a->data_deps, b->data_deps, a->n_data * sizeof *a->data_deps);
    assert_same_io(a->inputs, b->inputs);
    assert_same_io(a->outputs, b->outputs);
    assert_int_equal(a->n_unknown, b->n_unknown);
    assert_int_equal(a->n_attrs, b->n_attrs);
    for (size_t i = 0; i < a->n_attrs; i++)
        assert_same_attr(&a->attr[i], &b->attr[i]);
}

static wl_et_reader *open_reader(const char *path)
{
    wl_et_reader *reader = NULL;
    cs_error err = {{0}};

    if (wl_et_reader_open(path, WL_SCHEMA_AUTO, &reader, &err) != CS_OK)
        fail_msg("%s", err.text);
    return reader;
}

static void copy_file(const char *from, const char *to)
{
    wl_et_reader *reader = open_reader(from);
    wl_et_writer *writer = NULL;
    const wl_et_node *node;

    assert_int_equal(wl_et_writer_open(to, wl_et_reader_metadata(reader), &writer, NULL), CS_OK);
    for (;;) {
        assert_int_equal(wl_et_reader_next(reader, &node, NULL), CS_OK);
        if (node == NULL)
            break;
        assert_int_equal(wl_et_writer_put(writer, node, NULL), CS_OK);
    }
    assert_int_equal(wl_et_writer_close(writer, NULL), CS_OK);
    wl_et_reader_close(reader);
}

static void compare_files(const char *a, const char *b)
{
    wl_et_reader *x = open_reader(a), *y = open_reader(b);
    const wl_et_metadata *m = wl_et_reader_metadata(x), *n = wl_et_reader_metadata(y);
    const wl_et_node *p, *q;

    assert_non_null(n);
    if (m != NULL) {
        assert_string_equal(m->version, n->version);
        assert_int_equal(m->n_attrs, n->n_attrs);
        for (size_t i = 0; i < m->n_attrs; i++)
            assert_same_attr(&m->attr[i], &n->attr[i]);
    }
    do {
        assert_int_equal(wl_et_reader_next(x, &p, NULL), CS_OK);
        assert_int_equal(wl_et_reader_next(y, &q, NULL), CS_OK);
        assert_int_equal(p == NULL, q == NULL);
        if (p != NULL)
            assert_same_node(p, q);
    } while (p != NULL);
    wl_et_reader_close(x);
    wl_et_reader_close(y);
}

static int copy_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[1024];
    int n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length < 4 || strcmp(entry->d_name + length - 3, ".et") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        copy_file(path, in_folder("copy.0.et"));
        compare_files(path, in_folder("copy.0.et"));
        n++;
    }
    closedir(dir);
    return n;
}

static void test_read_write_read_is_the_identity(void **state)
{
    static const char *const sets[] = {
        "micro/all_reduce_8",           "micro/gen_metadata_all_types",
        "custom/ring_allreduce_8",      "p2p/pp4",
        "transformer/dense_dp2tp2pp2",  "transformer/archgym_64",
        "real/resnet_ddp_chakra0",      "real/two_groups_2",
        "real/rocm_allreduce_320",      "tacos/mesh_3x3_c2",
        "textconv/resnet50_dp_nov2023",
    };
    char folder[512];

    (void)state;
    if (!have_reference())
        skipped("11 sets");
    make_folder();
    for (size_t i = 0; i < CS_COUNT(sets); i++) {
        snprintf(folder, sizeof folder, CHAKRA "%s", sets[i]);
        assert_true(copy_folder(folder) > 0);
    }
    remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_has_the_facts_of_the_oracle),
        cmocka_unit_test(test_sets_complete_as_the_oracle_says),
        cmocka_unit_test(test_files_decode_as_the_manifest_says),
        cmocka_unit_test(test_bad_files_are_judged_as_expected),
        cmocka_unit_test(test_read_write_read_is_the_identity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
