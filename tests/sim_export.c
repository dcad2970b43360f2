/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Designs written as traces and read back: the cluster engine, with a stream a dimension, takes the
 * time of the block engine. */
#include "sim/cluster.h"
#include "sim/export.h"
#include "tests/test.h"
#include "workloads/trace.h"

#include <dirent.h>
#include <unistd.h>

enum { MOST_VARS = 64 };
static char folder[64];

static void remove_files(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[512];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        remove(path);
    }
    if (dir != NULL)
        closedir(dir);
}

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

/* ---- a space of designs on 64 NPUs ---- */

static const char *const space_text =
    "psa: 1\nname: export\n"
    "workloads:\n"
    "  - {model: %s/configs/models/llama3-8b.yaml, mode: train, global_batch: 32, "
    "sequence: 2048, weight: 1}\n"
    "system: %s/configs/systems/cosmic-system1.yaml\n"
    "memory_limit: off\n"
    "knobs:\n"
    "  workload.dp: {powers_of_two: [1, 32]}\n"
    "  workload.tp: {powers_of_two: [1, 16]}\n"
    "  workload.sp: {powers_of_two: [1, 4]}\n"
    "  workload.pp: {values: [1, 2, 4]}\n"
    "  workload.sharding: {values: [none, optimizer, gradients, weights]}\n"
    "  workload.micro_batch: {powers_of_two: [1, 4]}\n"
    "  workload.recompute: {values: [none, selective, full]}\n"
    "  workload.schedule: {values: [1f1b, gpipe], when: \"workload.pp > 1\"}\n"
    "  collective.algorithm: {values: [ring, direct, halving_doubling], per: dimension}\n"
    "  collective.chunks: {values: [1, 2, 4]}\n"
    "  collective.multi_dim: {values: [baseline, hierarchical]}\n"
    "  network.topology: {values: [ring, switch, fully_connected], per: dimension}\n"
    "  network.npus: {values: [2, 4, 8], per: dimension}\n"
    "  network.bandwidth: {range: [50 GB/s, 500 GB/s], step: 50 GB/s, per: dimension}\n"
    "  placement: {values: [\"tp sp ep dp pp\", \"dp tp sp ep pp\"]}\n"
    "constraints:\n  - product(network.npus) == 64\n"
    "objectives:\n  latency: {minimize: latency}\n";

typedef struct {
    psa_schema *schema;
    sim_model *model;
    psa_space *space;
    sim_scratch *scratch;
} problem;

static void load_problem(problem *p)
{
    char cwd[1024], text[4096];
    cs_error err = {{0}};
    FILE *f;

    assert_non_null(getcwd(cwd, sizeof cwd));
    snprintf(text, sizeof text, space_text, cwd, cwd);
    f = fopen(in_folder("export.yaml"), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    if (psa_schema_load(in_folder("export.yaml"), sim_tables(), &p->schema, &err) != CS_OK ||
        sim_model_create(p->schema, &p->model, &err) != CS_OK ||
        psa_space_create(p->schema, &p->space, &err) != CS_OK)
        fail_msg("%s", err.text);
    p->scratch = sim_scratch_create(p->model);
    assert_non_null(p->scratch);
}

static void drop_problem(problem *p)
{
    sim_scratch_destroy(p->scratch);
    psa_space_destroy(p->space);
    sim_model_destroy(p->model);
    psa_schema_destroy(p->schema);
}

/* ---- there and back ---- */

static void describe(const problem *p, const int32_t *point, char *text, size_t size)
{
    size_t used = 0;
    char value[64];

    for (size_t k = 0; k < psa_space_n_knobs(p->space) && used < size; k++) {
        bool active;
        int32_t index = psa_space_knob_index(p->space, point, k, &active);

        if (active)
            used += (size_t)snprintf(text + used, size - used, "%s=%s ",
                                     psa_space_knob_name(p->space, k),
                                     psa_space_knob_value(p->space, k, index, value));
    }
}

static int64_t simulate_exported(wl_trace *trace)
{
    sim_astra *astra = calloc(1, sizeof *astra);
    sim_network net;
    sim_cluster_options options = {.network = &net, .streams_by_dimension = true};
    sim_cluster_result result = {.n_ranks = 0};
    cs_error err = {{0}};
    int64_t ns;

    assert_non_null(astra);
    if (sim_astra_load(in_folder("network.yml"), in_folder("system.json"), astra, &err) != CS_OK ||
        sim_astra_as_network(astra, &net, &err) != CS_OK ||
        sim_cluster_run(trace, &options, &result, &err) != CS_OK)
        fail_msg("%s", err.text);
    ns = result.max_ns;
    sim_cluster_result_fini(&result);
    free(astra);
    return ns;
}

/* Exports, reads back, simulates; the relative difference of the two times. */
static double round_trip(const problem *p, const sim_config *config, sim_granularity granularity,
                         uint32_t *nodes)
{
    const sim_export_options options = {.granularity = granularity};
    sim_export *export = NULL;
    sim_result result;
    wl_trace *trace = NULL;
    cs_error err = {{0}};
    int64_t ns;

    if (sim_evaluate(p->model, config, p->scratch, &result, &err) != CS_OK ||
        sim_export_create(p->model, config, p->scratch, &options, &export, &err) != CS_OK ||
        sim_export_write(export, folder, &err) != CS_OK)
        fail_msg("%s", err.text);
    if (wl_trace_load(in_folder("trace"), NULL, &trace, &err) != CS_OK ||
        wl_trace_verdict(trace, true, &err) != CS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(trace->job_ranks, 64);
    assert_int_equal(trace->n_nodes, sim_export_measure(export).nodes);
    *nodes = trace->n_nodes;
    ns = simulate_exported(trace);
    sim_export_destroy(export);
    wl_trace_destroy(trace);
    return (double)ns * 1e-9 / result.latency_s - 1;
}

static void set_up(problem *p)
{
    memset(p, 0, sizeof *p);
    strcpy(folder, "/tmp/sim_export_XXXXXX");
    assert_non_null(mkdtemp(folder));
    load_problem(p);
    assert_true(psa_space_n_vars(p->space) <= MOST_VARS);
}

static void tear_down(problem *p)
{
    drop_problem(p);
    remove_files();
    rmdir(folder);
}

/* Any design of the space, with sharding, gathers, pipelines, groups of several dimensions. */
static void test_random_designs_take_the_time_of_the_block_engine(void **state)
{
    enum { DESIGNS = 8 };
    problem p;
    cs_rng *rng = cs_rng_create(7, 0, 0);
    sim_config config;
    int32_t point[MOST_VARS];
    char text[1024];

    (void)state;
    set_up(&p);
    for (int i = 0; i < DESIGNS; i++) {
        double off;
        uint32_t nodes;

        assert_int_equal(psa_space_sample(p.space, rng, point), CS_OK);
        psa_space_decode(p.space, point, &config);
        off = round_trip(&p, &config, SIM_EXPORT_FUSED, &nodes);
        describe(&p, point, text, sizeof text);
        if (!(fabs(off) <= 0.01))
            fail_msg("off by %+.3f %%, %u nodes: %s", 100 * off, nodes, text);
        remove_files();
    }
    tear_down(&p);
    cs_rng_destroy(rng);
}

static void assign(const problem *p, const char *const *sets, sim_config *config)
{
    cs_error err = {{0}};

    psa_schema_baseline(p->schema, config);
    for (; *sets != NULL; sets++)
        if (psa_schema_assign(p->schema, *sets, config, &err) != CS_OK)
            fail_msg("%s", err.text);
    if (psa_schema_check(p->schema, config, &err) != CS_OK)
        fail_msg("%s", err.text);
}

/* One micro-batch over slow links: all is communication, in one order.  The last reduction comes
 * after those of earlier passes although it has dimensions of its own to itself; a transfer between
 * stages comes after the reductions before it. */
static void test_communication_keeps_its_order(void **state)
{
    static const char *const sets[][13] = {
        {"workload.dp=32", "workload.tp=1", "workload.sp=1", "workload.pp=2",
         "workload.sharding=weights", "workload.micro_batch=1", "workload.recompute=none",
         "network.npus=4,4,2,2", "network.bandwidth=50GB/s,500GB/s,200GB/s,500GB/s",
         "network.topology=ring,ring,ring,ring", "collective.algorithm=ring,ring,ring,ring", NULL},
        {"workload.dp=32", "workload.tp=1", "workload.sp=1", "workload.pp=2",
         "workload.sharding=none", "workload.micro_batch=1", "collective.multi_dim=hierarchical",
         "network.npus=2,4,2,4", "network.bandwidth=100GB/s,50GB/s,200GB/s,50GB/s",
         "network.topology=ring,ring,switch,fully_connected",
         "collective.algorithm=direct,halving_doubling,ring,ring", NULL}};
    problem p;

    (void)state;
    set_up(&p);
    for (size_t i = 0; i < CS_COUNT(sets); i++) {
        sim_config config;
        uint32_t nodes;

        assign(&p, sets[i], &config);
        assert_true(fabs(round_trip(&p, &config, SIM_EXPORT_FUSED, &nodes)) <= 1e-4);
        remove_files();
    }
    tear_down(&p);
}

static void configure(const problem *p, sim_config *config)
{
    static const char *const sets[] = {"workload.dp=4",
                                       "workload.tp=4",
                                       "workload.sp=1",
                                       "workload.pp=4",
                                       "workload.sharding=weights",
                                       "workload.micro_batch=1",
                                       "workload.recompute=none",
                                       "network.npus=4,4,4,1",
                                       "collective.chunks=2",
                                       "placement=tp sp ep dp pp",
                                       NULL};

    assign(p, sets, config);
}

/* Fused compute takes the same time with fewer nodes; the files run under model astra too. */
static void test_granularity_and_model_astra(void **state)
{
    problem p;
    sim_config config;
    uint32_t fused, single;
    wl_trace *trace = NULL;
    sim_astra *astra = calloc(1, sizeof *astra);
    sim_cluster_options options = {.astra = astra};
    sim_cluster_result result = {.n_ranks = 0};
    cs_error err = {{0}};

    (void)state;
    assert_non_null(astra);
    set_up(&p);
    configure(&p, &config);
    assert_true(fabs(round_trip(&p, &config, SIM_EXPORT_OP, &single)) <= 0.01);
    assert_true(fabs(round_trip(&p, &config, SIM_EXPORT_FUSED, &fused)) <= 0.01);
    assert_true(fused < single);
    if (wl_trace_load(in_folder("trace"), NULL, &trace, &err) != CS_OK ||
        sim_astra_load(in_folder("network.yml"), in_folder("system.json"), astra, &err) != CS_OK ||
        sim_cluster_run(trace, &options, &result, &err) != CS_OK)
        fail_msg("%s", err.text);
    assert_true(result.collectives > 0 && result.messages > 0);
    assert_int_equal(result.unreceived, 0);
    sim_cluster_result_fini(&result);
    wl_trace_destroy(trace);
    free(astra);
    tear_down(&p);
}

static void test_what_has_no_form_is_refused(void **state)
{
    static const struct {
        const char *set, *word;
    } cases[] = {{"collective.scheduling=fifo", "program"},
                 {"network.topology[1]=mesh", "mesh"},
                 {"compute.tp_overlap=1", "tp_overlap"},
                 {"workload.overlap=false", "workload.overlap"},
                 {"workload.slow_stage=1", "slow_stage"}};
    problem p;

    (void)state;
    set_up(&p);
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        const sim_export_options options = {.workload = 0};
        sim_export *export = NULL;
        sim_config config;
        cs_error err = {{0}};
        cs_status status;

        configure(&p, &config);
        assert_int_equal(psa_schema_assign(p.schema, cases[i].set, &config, &err), CS_OK);
        status = sim_export_create(p.model, &config, p.scratch, &options, &export, &err);
        if (status == CS_OK)
            status = sim_export_write(export, folder, &err);
        assert_int_equal(status, CS_EINVAL);
        if (strstr(err.text, cases[i].word) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].word, err.text);
        sim_export_destroy(export);
    }
    tear_down(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_designs_take_the_time_of_the_block_engine),
        cmocka_unit_test(test_communication_keeps_its_order),
        cmocka_unit_test(test_granularity_and_model_astra),
        cmocka_unit_test(test_what_has_no_form_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
