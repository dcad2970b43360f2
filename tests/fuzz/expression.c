/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any line as an expression: an objective, a derived value and a constraint of a small PSA.  Seeds
 * are the quoted texts of the shipped PSA files and the grammar's corners. */
#include "tests/fuzz/files.h"
#include "tests/psa_fixture.h"

enum { LONGEST = 1 << 14 };

/* The text in single quotes of YAML; false when it is too long. */
static bool quote(const uint8_t *data, size_t size, char *text)
{
    size_t n = 0;

    text[n++] = '\'';
    for (size_t i = 0; i < size; i++) {
        if (n + 3 >= LONGEST)
            return false;
        if (data[i] == '\'')
            text[n++] = '\'';
        text[n++] = (char)data[i];
    }
    text[n++] = '\'';
    text[n] = '\0';
    return true;
}

static void use(const char *psa)
{
    static const fx_result result = {
        .latency = 2e-3, .memory = 12e9, .cost = 5000, .rate = 1000, .energy = 3};
    static const psa_fact facts[] = {{"model.heads", 96}, {"model.layers", 96}};
    psa_text text = {"fuzz.yaml", psa, strlen(psa), FX_SYSTEM, sizeof FX_SYSTEM - 1};
    psa_schema *schema = NULL;
    psa_space *space = NULL;
    fx_config config;
    cs_error err;

    if (psa_schema_parse(&text, &fx_tables, &schema, &err) != CS_OK)
        return;
    psa_schema_baseline(schema, &config);
    (void)psa_schema_objective(schema, 0, &config, &result);
    if (psa_schema_bind(schema, 0, facts, CS_COUNT(facts), &err) == CS_OK &&
        psa_space_create(schema, &space, &err) == CS_OK)
        (void)!psa_schema_check(schema, &config, &err);
    psa_space_destroy(space);
    psa_schema_destroy(schema);
}

#define HEAD                                                                                       \
    "psa: 1\nname: t\nworkloads:\n  - {model: m.yaml, global_batch: 64}\n"                         \
    "knobs: {workload.dp: [1, 2, 4, 8, 16, 32], workload.tp: [1, 2, 4]}\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const forms[] = {
        HEAD "objectives: {x: {minimize: %s}}\n",
        HEAD "constraints: [%s]\nobjectives: {x: {minimize: latency}}\n",
        HEAD "derived: {d: %s}\nobjectives: {x: {minimize: d}}\n",
    };
    static char quoted[LONGEST], psa[LONGEST + 512];

    if (!quote(data, size, quoted))
        return 0;
    for (size_t i = 0; i < CS_COUNT(forms); i++) {
        (void)snprintf(psa, sizeof psa, forms[i], quoted);
        use(psa);
    }
    return 0;
}

/* ---- seeds ---- */

static const char *const corners[] = {
    "1 + 2 * (3 - 4) / 5 % 6 ^ -7",
    "if(network.topology[1] == \"ring\" and not workload.dp > 2 or true, 1e3, .5)",
    "latency * sum(network.bandwidth * network.npus) / 1 GB/s",
    "count(network.npus > 4) + max(network.npus, 10, 3) - network.npus[dimensions]",
    "log2(workload.dp) + sqrt(16) + abs(-3) + ceil(0.2) + floor(1.9)",
    "any(network.npus >= 8) and all(network.bandwidth < 1 TB/s)",
    "workload.dp * workload.tp == product(network.npus)",
    "peak_memory / 1 GiB + network_cost / 1 k$ + paper_reward",
    "((((((((((((((((1))))))))))))))))",
};

static size_t quoted_texts(size_t k, uint8_t *bytes, size_t capacity)
{
    static uint8_t file[1 << 16];
    size_t seen = 0;

    for (size_t f = 0; f < fuzz_count("configs/psa/*.yaml"); f++) {
        const size_t n = fuzz_read("configs/psa/*.yaml", f, file, sizeof file);
        const uint8_t *at = file, *end;
        while ((at = memchr(at, '"', n - (size_t)(at - file))) != NULL &&
               (end = memchr(at + 1, '"', n - (size_t)(at + 1 - file))) != NULL) {
            const size_t length = (size_t)(end - at - 1);
            if (seen++ == k && length <= capacity) {
                memcpy(bytes, at + 1, length);
                return length;
            }
            at = end + 1;
        }
    }
    return k == SIZE_MAX ? seen : 0;
}

size_t fuzz_seeds(void)
{
    return CS_COUNT(corners) + quoted_texts(SIZE_MAX, NULL, 0);
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    if (k >= CS_COUNT(corners))
        return quoted_texts(k - CS_COUNT(corners), bytes, capacity);
    return fuzz_text(corners[k], bytes, capacity);
}
