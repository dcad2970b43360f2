/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a PSA file; behind a zero byte, as its system file.  What is accepted must hold
 * together: samples satisfy every constraint, ranks come back, repair gives valid points. */
#include "tests/fuzz/fuzz.h"
#include "tests/psa_fixture.h"

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void use_point(const psa_schema *schema, const psa_space *space, cs_rng *rng, int32_t *point)
{
    size_t n = psa_space_n_vars(space), pinned = (size_t)cs_rng_below(rng, n);
    int32_t copy[1024];
    fx_config config;
    cs_error err;

    psa_space_decode(space, point, &config);
    expect(psa_schema_check(schema, &config, &err) == CS_OK);
    expect(psa_space_valid(space, point));
    psa_space_unrank(space, psa_space_rank(space, point), copy);
    expect(memcmp(copy, point, n * sizeof *point) == 0);
    point[pinned] = (int32_t)cs_rng_below(rng, (uint64_t)psa_space_card(space, pinned));
    (void)psa_space_repair(space, rng, pinned, point);
    expect(psa_space_valid(space, point));
}

static void use_space(const psa_schema *schema, const psa_space *space)
{
    cs_rng *rng = cs_rng_create(1, 2, 3);
    int32_t point[1024];

    for (int i = 0; rng != NULL && i < 20; i++)
        if (psa_space_sample(space, rng, point) == CS_OK)
            use_point(schema, space, rng, point);
    cs_rng_destroy(rng);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const psa_fact facts[] = {{"model.heads", 96}, {"model.layers", 96}};
    const uint8_t *cut = memchr(data, 0, size);
    psa_text text = {"fuzz.yaml", (const char *)data, size, FX_SYSTEM, sizeof FX_SYSTEM - 1};
    psa_schema *schema = NULL;
    psa_space *space = NULL;
    cs_error err;
    bool bound = true;

    if (cut != NULL) {
        text.psa_length = (size_t)(cut - data);
        text.system = (const char *)cut + 1;
        text.system_length = size - text.psa_length - 1;
    }
    if (psa_schema_parse(&text, &fx_tables, &schema, &err) != CS_OK)
        return 0;
    for (size_t w = 0; w < psa_schema_n_workloads(schema); w++)
        bound = bound && psa_schema_bind(schema, w, facts, CS_COUNT(facts), &err) == CS_OK;
    if (bound && psa_space_create(schema, &space, &err) == CS_OK)
        use_space(schema, space);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
    return 0;
}

static const struct {
    const char *psa, *system;
} seeds[] = {
    {FX_SPACE_A, FX_SYSTEM},
    {FX_SPACE_B, FX_SYSTEM_B},
    {FX_SPACE_C, FX_SYSTEM_C},
    {FX_SMALL, FX_SYSTEM},
    {"psa: 1\nname: all\naggregate: max\nuneven_stages: true\nmemory_limit: off\n" FX_WORKLOAD
     "knobs: {workload.dp: {divisors: 12}, compute.peak: [1 TFLOP/s, 2 TFLOP/s]}\n"
     "constraints:\n  - latency <= 2 ms and network_cost < 5 k$\n"
     "  - \"if(network.topology[1] == 'ring', log2(workload.dp), 2 ^ 3) % 2 < 1\"\n"
     "objectives: {a: {minimize: \"latency * sum(network.bandwidth)\"}, r: {maximize: "
     "paper_reward}}\nstarts: [{workload.dp: 3, network.npus: [4, 8]}]\n",
     FX_SYSTEM "  placement: bca\ncompute: {capacity: 80 GiB}\nprices: libra\n"},
};

size_t fuzz_seeds(void)
{
    return CS_COUNT(seeds);
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    size_t psa = strlen(seeds[k].psa) + 1, system = strlen(seeds[k].system);

    if (psa + system > capacity)
        return 0;
    memcpy(bytes, seeds[k].psa, psa);
    memcpy(bytes + psa, seeds[k].system, system);
    return psa + system;
}
