/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * network.yml and system.json of an export, in ASTRA-sim's units: GB/s of 2^30 bytes on one
 * directed link, ns a hop, TFLOP/s. */
#include "sim/export_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* Links over which an NPU spreads its egress into a dimension. */
static double links(int32_t topology, int64_t n)
{
    if (topology == SIM_FULLY_CONNECTED)
        return n > 1 ? (double)(n - 1) : 1;
    return topology == SIM_RING && n > 2 ? 2 : 1;
}

static const char *topology_name(int32_t topology)
{
    static const char *const names[] = {
        [SIM_RING] = "Ring", [SIM_FULLY_CONNECTED] = "FullyConnected", [SIM_SWITCH] = "Switch"};

    return topology == SIM_MESH ? NULL : names[topology];
}

static cs_status check_network(const sim_network *net, cs_error *err)
{
    for (size_t d = 0; d < net->n_dims; d++) {
        const sim_dim *dim = &net->dim[d];

        if (topology_name(dim->topology) == NULL)
            return cs_fail(err, CS_EINVAL,
                           "export: dimension %zu is a %s, which ASTRA-sim's network.yml does not "
                           "know",
                           d + 1, sim_topology_names[dim->topology]);
        if (dim->oversubscription > 1 || dim->in_network_reduction)
            return cs_fail(err, CS_EINVAL,
                           "export: dimension %zu has %s, which ASTRA-sim's network.yml does not "
                           "know",
                           d + 1,
                           dim->oversubscription > 1 ? "an oversubscribed switch"
                                                     : "in-network reduction");
    }
    return CS_OK;
}

/* "key: [ a, b ]" with one value a dimension. */
static void write_list(FILE *f, const char *key, const sim_network *net,
                       void (*value)(FILE *f, const sim_dim *dim))
{
    fprintf(f, "%s: [ ", key);
    for (size_t d = 0; d < net->n_dims; d++) {
        if (d > 0)
            fprintf(f, ", ");
        value(f, &net->dim[d]);
    }
    fprintf(f, " ]\n");
}

static void put_topology(FILE *f, const sim_dim *dim)
{
    fprintf(f, "%s", topology_name(dim->topology));
}

static void put_npus(FILE *f, const sim_dim *dim)
{
    fprintf(f, "%lld", (long long)dim->n);
}

static void put_real(FILE *f, double value)
{
    char text[32];

    cs_double_text(value, text);
    fprintf(f, "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

static void put_bandwidth(FILE *f, const sim_dim *dim)
{
    put_real(f, dim->bandwidth_bytes_per_s / links(dim->topology, dim->n) / GIB);
}

static void put_latency(FILE *f, const sim_dim *dim)
{
    put_real(f, round(dim->latency_s * 1e15) * 1e-6); /* to the femtosecond */
}

static void write_network(FILE *f, const sim_export *x)
{
    write_list(f, "topology", &x->network, put_topology);
    write_list(f, "npus_count", &x->network, put_npus);
    write_list(f, "bandwidth", &x->network, put_bandwidth);
    write_list(f, "latency", &x->network, put_latency);
}

/* ASTRA-sim runs trees for every phase of a tree and has no halving-doubling all-to-all. */
static const char *algorithm_name(wl_collective type, int32_t algorithm)
{
    if (algorithm == SIM_ALGO_HALVING_DOUBLING)
        return type == WL_ALL_TO_ALL ? "direct" : "halvingDoubling";
    if (algorithm == SIM_ALGO_DOUBLE_BINARY_TREE)
        return type == WL_ALL_REDUCE   ? "doubleBinaryTree"
               : type == WL_ALL_TO_ALL ? "direct"
                                       : "ring";
    return algorithm == SIM_ALGO_DIRECT ? "direct" : "ring";
}

static void write_algorithms(FILE *f, const char *key, wl_collective type, const sim_network *net)
{
    fprintf(f, "  \"%s-implementation\": [", key);
    for (size_t d = 0; d < net->n_dims; d++)
        fprintf(f, "%s\"%s\"", d > 0 ? ", " : "", algorithm_name(type, net->dim[d].algorithm));
    fprintf(f, "],\n");
}

static void write_system(FILE *f, const sim_export *x)
{
    const sim_network *net = &x->network;

    fprintf(f, "{\n  \"scheduling-policy\": \"FIFO\",\n");
    fprintf(f, "  \"endpoint-delay\": %lld,\n", (long long)(net->endpoint_delay_s * 1e9 + 0.5));
    fprintf(f, "  \"active-chunks-per-dimension\": 1,\n");
    fprintf(f, "  \"preferred-dataset-splits\": %lld,\n", (long long)net->chunks);
    write_algorithms(f, "all-reduce", WL_ALL_REDUCE, net);
    write_algorithms(f, "all-gather", WL_ALL_GATHER, net);
    write_algorithms(f, "reduce-scatter", WL_REDUCE_SCATTER, net);
    write_algorithms(f, "all-to-all", WL_ALL_TO_ALL, net);
    fprintf(f, "  \"collective-optimization\": \"%s\",\n",
            net->multi_dim == SIM_HIERARCHICAL ? "localBWAware" : "baseline");
    fprintf(f, "  \"roofline-enabled\": 1,\n  \"peak-perf\": ");
    put_real(f, x->peak / 1e12);
    /* Memory is in the nodes' operations already, and reductions are free as in the block engine.
     */
    fprintf(f, ",\n  \"local-mem-bw\": 1000000000000.0\n}\n");
}

static cs_status write_file(const sim_export *x, const char *folder, const char *name,
                            void (*write)(FILE *f, const sim_export *x), cs_error *err)
{
    char path[4096], temporary[4104];
    FILE *f;
    bool ok;

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return cs_fail(err, CS_EINVAL, "%s: the path is too long", folder);
    snprintf(temporary, sizeof temporary, "%s.part", path);
    f = fopen(temporary, "w");
    if (f == NULL)
        return cs_fail(err, CS_EIO, "%s: %s", path, strerror(errno));
    write(f, x);
    ok = ferror(f) == 0;
    ok = fclose(f) == 0 && ok;
    if (!ok || rename(temporary, path) != 0) {
        remove(temporary);
        return cs_fail(err, CS_EIO, "%s: cannot write: %s", path, strerror(errno));
    }
    return CS_OK;
}

cs_status sim__export_files(const sim_export *x, const char *folder, cs_error *err)
{
    cs_status status;

    CS_TRY(check_network(&x->network, err));
    CS_TRY(write_file(x, folder, "network.yml", write_network, err));
    CS_TRY(write_file(x, folder, "system.json", write_system, err));
done:
    return status;
}
