/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as network.yml and, behind a zero byte, system.json of ASTRA-sim; on a small machine
 * every collective is run. */
#include "sim/astra.h"
#include "tests/fuzz/files.h"

static void run(const sim_astra *astra)
{
    sim_network network;
    sim_astra_result result;
    cs_error err;

    (void)!sim_astra_as_network(astra, &network, &err);
    for (int type = 0; type < SIM_ASTRA_N_TYPES; type++) {
        sim_astra_op op = {.type = (wl_collective)type, .bytes = 1 << 16};
        op.splits = astra->system.splits > 8 ? 8 : 0;
        (void)!sim_astra_collective(astra, &op, &result, NULL, &err);
        op.backend = SIM_ASTRA_AWARE;
        (void)!sim_astra_collective(astra, &op, &result, NULL, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_files *files = cs_files_create();
    const uint8_t *cut = memchr(data, 0, size);
    const size_t n = cut == NULL ? size : (size_t)(cut - data);
    static sim_astra astra;
    cs_error err;

    fuzz_put(files, "network.yml", data, n);
    fuzz_put(files, "system.json", cut == NULL ? data : cut + 1, cut == NULL ? 0 : size - n - 1);
    cs_files_stand_in(files);
    if (sim_astra_load("network.yml", "system.json", &astra, &err) == CS_OK) {
        if (astra.network.npus <= 64)
            run(&astra);
    }
    cs_files_stand_in(NULL);
    cs_files_destroy(files);
    return 0;
}

#define SYSTEM(kind, more)                                                                         \
    "{\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 10, \"active-chunks-per-dimension\": "  \
    "1,"                                                                                           \
    " \"preferred-dataset-splits\": 4, \"all-reduce-implementation\": [" kind "],"                 \
    " \"all-gather-implementation\": [" kind "], \"reduce-scatter-implementation\": [" kind "],"   \
    " \"all-to-all-implementation\": [" kind "]" more "}"

static const struct {
    const char *network, *system;
} seeds[] = {
    {"topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n",
     SYSTEM("\"ring\"", "")},
    {"topology: [ Ring, Switch ]\nnpus_count: [ 4, 4 ]\nbandwidth: [ 50.0, 25 ]\n"
     "latency: [ 500.0, 700 ]\n",
     SYSTEM("\"oneRing\", \"halvingDoubling\"",
            ", \"collective-optimization\": \"localBWAware\", \"local-mem-bw\": 1600,"
            " \"roofline-enabled\": 1, \"peak-perf\": 900")},
    {"topology: [ FullyConnected, Ring ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 25 ]\n"
     "latency: [ 500.0, 700 ]\n",
     SYSTEM("\"direct4\", \"doubleBinaryTree\"", "")},
};

size_t fuzz_seeds(void)
{
    return CS_COUNT(seeds);
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    const size_t network = strlen(seeds[k].network) + 1, system = strlen(seeds[k].system);

    if (network + system > capacity)
        return 0;
    memcpy(bytes, seeds[k].network, network);
    memcpy(bytes + network, seeds[k].system, system);
    return network + system;
}
