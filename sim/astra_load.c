/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * ASTRA-sim's input files as they are.  ASTRA-sim itself ignores what it does not know; here such
 * keys become warnings, and what it would crash on becomes an error with its position. */
#include "sim/astra_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds that keep every product in range. */
#define MAX_BANDWIDTH 1e9 /* GiB/s */
#define MAX_DELAY_NS  1e12
#define MAX_SPLITS    (1 << 20)

bool sim_astra_algorithm_parse(const char *text, sim_astra_algorithm *out)
{
    static const struct {
        const char *name;
        int32_t algorithm;
        bool windowed;
    } names[] = {{"ring", SIM_ALGO_RING, false},
                 {"direct", SIM_ALGO_DIRECT, true},
                 {"halvingDoubling", SIM_ALGO_HALVING_DOUBLING, false},
                 {"doubleBinaryTree", SIM_ALGO_DOUBLE_BINARY_TREE, false},
                 {"Ring", SIM_ALGO_RING, false},
                 {"Direct", SIM_ALGO_DIRECT, true},
                 {"HalvingDoubling", SIM_ALGO_HALVING_DOUBLING, false}};
    const bool one = strncmp(text, "one", 3) == 0;

    for (size_t i = one ? 4 : 0; i < (one ? CS_COUNT(names) : 4); i++) {
        const char *rest = text + (one ? 3 : 0);
        const size_t length = strlen(names[i].name);
        char *end;
        if (strncmp(rest, names[i].name, length) != 0)
            continue;
        *out = (sim_astra_algorithm){.algorithm = names[i].algorithm, .one = one};
        rest += length;
        if (*rest == '\0')
            return true;
        if (!names[i].windowed || *rest < '1' || *rest > '9')
            return false;
        out->window = strtoll(rest, &end, 10);
        return *end == '\0' && out->window <= SIM_ASTRA_MAX_NPUS;
    }
    return false;
}

bool sim_astra_topology_parse(const char *text, int32_t *out)
{
    static const struct {
        const char *name;
        int32_t topology;
    } names[] = {{"Ring", SIM_RING},     {"FullyConnected", SIM_FULLY_CONNECTED},
                 {"Switch", SIM_SWITCH}, {"ring", SIM_RING},
                 {"switch", SIM_SWITCH}, {"fully_connected", SIM_FULLY_CONNECTED}};

    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (strcmp(text, names[i].name) == 0) {
            *out = names[i].topology;
            return true;
        }
    return false;
}

bool sim_astra_type_parse(const char *text, wl_collective *out)
{
    static const char *const names[SIM_ASTRA_N_TYPES][2] = {{"ALL_REDUCE", "all_reduce"},
                                                            {"REDUCE_SCATTER", "reduce_scatter"},
                                                            {"ALL_GATHER", "all_gather"},
                                                            {"ALL_TO_ALL", "all_to_all"}};

    for (size_t i = 0; i < SIM_ASTRA_N_TYPES; i++)
        if (strcmp(text, names[i][0]) == 0 || strcmp(text, names[i][1]) == 0) {
            *out = (wl_collective)i;
            return true;
        }
    return false;
}

static void warn(sim_astra *astra, const cs_doc *doc, const cs_node *at, const char *key,
                 const char *why)
{
    if (astra->n_warnings == SIM_ASTRA_MAX_WARNINGS)
        return;
    (void)snprintf(astra->warning[astra->n_warnings++], sizeof astra->warning[0],
                   "%s:%d:%d: '%.60s' %s", cs_doc_path(doc), at->line, at->column, key, why);
}

/* ---- network.yml ---- */

static cs_status read_topology(const cs_doc *doc, const cs_node *node, sim_astra_dim *dim,
                               cs_error *err)
{
    const char *text;
    cs_status status;

    CS_TRY(cs_node_string(doc, node, &text, err));
    if (!sim_astra_topology_parse(text, &dim->topology))
        status =
            cs_doc_fail(doc, node, err,
                        "unknown topology '%.40s': expected Ring, FullyConnected or Switch", text);
done:
    return status;
}

static cs_status read_count(const cs_doc *doc, const cs_node *node, sim_astra_dim *dim,
                            cs_error *err)
{
    return cs_node_int(doc, node, 1, SIM_ASTRA_MAX_NPUS, &dim->n, err);
}

static cs_status read_bandwidth(const cs_doc *doc, const cs_node *node, sim_astra_dim *dim,
                                cs_error *err)
{
    cs_status status;

    CS_TRY(cs_node_real(doc, node, &dim->bandwidth_gib_per_s, err));
    if (!(dim->bandwidth_gib_per_s > 0.0 && dim->bandwidth_gib_per_s <= MAX_BANDWIDTH))
        status = cs_doc_fail(doc, node, err, "expected a bandwidth above 0 and up to 1e9 (GiB/s)");
done:
    return status;
}

static cs_status read_latency(const cs_doc *doc, const cs_node *node, sim_astra_dim *dim,
                              cs_error *err)
{
    cs_status status;

    CS_TRY(cs_node_real(doc, node, &dim->latency_ns, err));
    if (!(dim->latency_ns >= 0.0 && dim->latency_ns <= MAX_DELAY_NS))
        status = cs_doc_fail(doc, node, err, "expected a latency from 0 to 1e12 (ns)");
done:
    return status;
}

static const struct {
    const char *key;
    cs_status (*read)(const cs_doc *, const cs_node *, sim_astra_dim *, cs_error *);
} network_keys[] = {{"topology", read_topology},
                    {"npus_count", read_count},
                    {"bandwidth", read_bandwidth},
                    {"latency", read_latency}};

static cs_status read_dimensions(const cs_doc *doc, sim_astra_network *net, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t k = 0; k < CS_COUNT(network_keys); k++) {
        const cs_node *list;
        CS_TRY(cs_node_require(doc, cs_doc_root(doc), network_keys[k].key, &list, err));
        CS_TRY(cs_node_expect(doc, list, CS_DOC_LIST, err));
        if (k == 0)
            net->n_dims = list->n;
        if (list->n != net->n_dims)
            return cs_doc_fail(doc, list, err, "'%s' has %zu entries, 'topology' has %zu",
                               network_keys[k].key, list->n, net->n_dims);
        if (list->n < 1 || list->n > SIM_ASTRA_MAX_DIMS)
            return cs_doc_fail(doc, list, err, "expected 1 to %d dimensions, found %zu",
                               SIM_ASTRA_MAX_DIMS, list->n);
        for (size_t d = 0; d < list->n; d++)
            CS_TRY(network_keys[k].read(doc, list->item[d], &net->dim[d], err));
    }
done:
    return status;
}

/* Keys that no reader of this program understands. */
static bool is_network_key(const char *key)
{
    for (size_t k = 0; k < CS_COUNT(network_keys); k++)
        if (strcmp(key, network_keys[k].key) == 0)
            return true;
    return false;
}

cs_status sim_astra_network_load(const char *path, sim_astra *out, cs_error *err)
{
    cs_status status;
    cs_doc *doc = NULL;
    const cs_node *root;
    sim_astra_network net = {0};

    CS_TRY(cs_doc_load(path, &doc, err));
    CS_TRY(read_dimensions(doc, &net, err));
    net.npus = 1;
    for (size_t d = 0; d < net.n_dims; d++) {
        net.npus *= net.dim[d].n;
        if (net.npus > SIM_ASTRA_MAX_NPUS) {
            status = cs_doc_fail(doc, cs_node_get(cs_doc_root(doc), "npus_count"), err,
                                 "more than %d NPUs", SIM_ASTRA_MAX_NPUS);
            goto done;
        }
    }
    root = cs_doc_root(doc);
    for (size_t i = 0; i < root->n; i++)
        if (!is_network_key(root->key[i]->text))
            warn(out, doc, root->key[i], root->key[i]->text, "has no effect");
    out->network = net;
done:
    cs_doc_destroy(doc);
    return status;
}

/* ---- system.json ---- */

typedef struct {
    const cs_doc *doc;
    const cs_node *key, *value;
    sim_astra *astra;
    cs_error *err;
} entry;

static cs_status read_algorithms(const entry *e, size_t type)
{
    cs_status status;
    sim_astra_system *system = &e->astra->system;

    CS_TRY(cs_node_expect(e->doc, e->value, CS_DOC_LIST, e->err));
    if (e->value->n < 1 || e->value->n > SIM_ASTRA_MAX_DIMS)
        return cs_doc_fail(e->doc, e->value, e->err, "expected one algorithm for each dimension");
    for (size_t d = 0; d < e->value->n; d++) {
        const cs_node *item = e->value->item[d];
        const char *text;
        CS_TRY(cs_node_string(e->doc, item, &text, e->err));
        if (!sim_astra_algorithm_parse(text, &system->algorithm[type][d]))
            return cs_doc_fail(e->doc, item, e->err,
                               "unknown algorithm '%.40s': expected ring, direct, direct<window>, "
                               "halvingDoubling, doubleBinaryTree, oneRing, oneDirect or "
                               "oneHalvingDoubling",
                               text);
    }
    system->n_algorithms[type] = e->value->n;
done:
    return status;
}

static cs_status read_custom(const entry *e, size_t type)
{
    cs_status status;
    const cs_node *item = e->value;
    const char *text;

    if (item->kind == CS_DOC_LIST) {
        if (item->n != 1)
            return cs_doc_fail(e->doc, item, e->err, "expected exactly one custom collective");
        item = item->item[0];
    }
    CS_TRY(cs_node_string(e->doc, item, &text, e->err));
    if (strlen(text) >= sizeof e->astra->system.custom[type])
        return cs_doc_fail(e->doc, item, e->err, "a path of at most %zu bytes is expected",
                           sizeof e->astra->system.custom[type] - 1);
    (void)snprintf(e->astra->system.custom[type], sizeof e->astra->system.custom[type], "%s", text);
done:
    return status;
}

static cs_status read_integer(const entry *e, size_t offset)
{
    int64_t *field = (int64_t *)(void *)((char *)&e->astra->system + offset);
    const bool is_delay = offset == offsetof(sim_astra_system, endpoint_delay_ns);

    return cs_node_int(e->doc, e->value, is_delay ? 0 : 1,
                       is_delay ? (int64_t)MAX_DELAY_NS : MAX_SPLITS, field, e->err);
}

static cs_status read_rate(const entry *e, size_t offset)
{
    double *field = (double *)(void *)((char *)&e->astra->system + offset);
    const bool is_peak = offset == offsetof(sim_astra_system, peak_flops);
    double value = 0.0;
    cs_status status;

    CS_TRY(cs_node_real(e->doc, e->value, &value, e->err));
    if (!(value > 0.0 && value <= 1e15))
        return cs_doc_fail(e->doc, e->value, e->err, "expected a number above 0 and up to 1e15");
    *field = value * (is_peak ? 1e12 : 1e9);
done:
    return status;
}

/* 0, 1, false or true. */
static cs_status read_flag(const entry *e, size_t offset)
{
    bool *field = (bool *)(void *)((char *)&e->astra->system + offset);
    const char *text;
    cs_status status;

    CS_TRY(cs_node_string(e->doc, e->value, &text, e->err));
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return cs_node_bool(e->doc, e->value, field, e->err);
    *field = text[0] == '1';
done:
    return status;
}

static cs_status read_optimization(const entry *e, size_t unused)
{
    static const char *const names[] = {"baseline", "localBWAware"};
    int32_t index = 0;
    cs_status status;

    (void)unused;
    CS_TRY(cs_node_enum(e->doc, e->value, names, CS_COUNT(names), &index, e->err));
    e->astra->system.local_bw_aware = index == 1;
done:
    return status;
}

static cs_status read_policy(const entry *e, size_t unused)
{
    static const char *const names[] = {"LIFO", "FIFO", "EXPLICIT"};
    int32_t index = 0;
    cs_status status;

    (void)unused;
    CS_TRY(cs_node_enum(e->doc, e->value, names, CS_COUNT(names), &index, e->err));
    warn(e->astra, e->doc, e->key, e->key->text,
         "has no effect: an NPU runs one collective at a time");
done:
    return status;
}

static cs_status refuse_bus(const entry *e, size_t unused)
{
    bool on = false;
    const char *text;
    cs_status status;

    (void)unused;
    CS_TRY(cs_node_string(e->doc, e->value, &text, e->err));
    on = strcmp(text, "0") != 0 && strcmp(text, "false") != 0;
    if (on)
        return cs_doc_fail(e->doc, e->value, e->err, "a shared memory bus is not modelled");
done:
    return status;
}

static cs_status ignore(const entry *e, size_t unused)
{
    (void)unused;
    warn(e->astra, e->doc, e->key, e->key->text, "has no effect");
    return CS_OK;
}

#define FIELD(name) offsetof(sim_astra_system, name)
static const struct {
    const char *key;
    cs_status (*read)(const entry *, size_t);
    size_t argument;
} system_keys[] = {{"all-reduce-implementation", read_algorithms, WL_ALL_REDUCE},
                   {"reduce-scatter-implementation", read_algorithms, WL_REDUCE_SCATTER},
                   {"all-gather-implementation", read_algorithms, WL_ALL_GATHER},
                   {"all-to-all-implementation", read_algorithms, WL_ALL_TO_ALL},
                   {"all-reduce-implementation-custom", read_custom, WL_ALL_REDUCE},
                   {"reduce-scatter-implementation-custom", read_custom, WL_REDUCE_SCATTER},
                   {"all-gather-implementation-custom", read_custom, WL_ALL_GATHER},
                   {"all-to-all-implementation-custom", read_custom, WL_ALL_TO_ALL},
                   {"collective-optimization", read_optimization, 0},
                   {"preferred-dataset-splits", read_integer, FIELD(splits)},
                   {"active-chunks-per-dimension", read_integer, FIELD(active_chunks)},
                   {"endpoint-delay", read_integer, FIELD(endpoint_delay_ns)},
                   {"local-mem-bw", read_rate, FIELD(local_mem_bytes_per_s)},
                   {"peak-perf", read_rate, FIELD(peak_flops)},
                   {"roofline-enabled", read_flag, FIELD(roofline)},
                   {"replay-only", read_flag, FIELD(replay_only)},
                   {"scheduling-policy", read_policy, 0},
                   {"model-shared-bus", refuse_bus, 0},
                   {"boost-mode", ignore, 0},
                   {"L", ignore, 0},
                   {"o", ignore, 0},
                   {"g", ignore, 0},
                   {"G", ignore, 0},
                   {"trace-enabled", ignore, 0},
                   {"track-local-mem", ignore, 0},
                   {"local-reduction-delay", ignore, 0}};

static cs_status read_system_entry(const entry *e)
{
    const char *names[CS_COUNT(system_keys)];
    const char *near;
    char why[120];

    for (size_t k = 0; k < CS_COUNT(system_keys); k++) {
        names[k] = system_keys[k].key;
        if (strcmp(e->key->text, names[k]) == 0)
            return system_keys[k].read(e, system_keys[k].argument);
    }
    near = cs_nearest(e->key->text, names, CS_COUNT(names));
    (void)snprintf(why, sizeof why, "has no effect%s%s%s", near == NULL ? "" : "; did you mean '",
                   near == NULL ? "" : near, near == NULL ? "" : "'?");
    warn(e->astra, e->doc, e->key, e->key->text, why);
    return CS_OK;
}

/* Lists must name one algorithm for each dimension, unless one* flattens the machine. */
static cs_status check_lists(const cs_doc *doc, const sim_astra *astra, cs_error *err)
{
    const size_t n_dims = astra->network.n_dims;

    for (size_t type = 0; type < SIM_ASTRA_N_TYPES; type++) {
        const size_t n = astra->system.n_algorithms[type];
        if (n == 0 || n_dims == 0 || n == n_dims || astra->system.algorithm[type][0].one)
            continue;
        return cs_doc_fail(doc, cs_node_get(cs_doc_root(doc), system_keys[type].key), err,
                           "'%s' has %zu entries, the network has %zu dimensions",
                           system_keys[type].key, n, n_dims);
    }
    return CS_OK;
}

cs_status sim_astra_system_load(const char *path, sim_astra *out, cs_error *err)
{
    cs_status status;
    cs_doc *doc = NULL;
    const cs_node *root;

    out->system =
        (sim_astra_system){.active_chunks = 1, .queues_per_dim = 1, .endpoint_delay_ns = 10};
    CS_TRY(cs_doc_load(path, &doc, err));
    root = cs_doc_root(doc);
    CS_TRY(cs_node_expect(doc, root, CS_DOC_MAP, err));
    for (size_t i = 0; i < root->n; i++) {
        const entry e = {doc, root->key[i], root->item[i], out, err};
        CS_TRY(read_system_entry(&e));
    }
    if (out->system.splits == 0) {
        status = cs_doc_fail(doc, root, err, "the key 'preferred-dataset-splits' is missing");
        goto done;
    }
    if (out->system.local_mem_bytes_per_s == 0.0)
        warn(out, doc, root, "local-mem-bw", "is missing: reductions cost nothing");
    CS_TRY(check_lists(doc, out, err));
done:
    cs_doc_destroy(doc);
    return status;
}

cs_status sim_astra_load(const char *network_path, const char *system_path, sim_astra *out,
                         cs_error *err)
{
    cs_status status;

    *out = (sim_astra){0};
    CS_TRY(sim_astra_network_load(network_path, out, err));
    CS_TRY(sim_astra_system_load(system_path, out, err));
done:
    return status;
}
