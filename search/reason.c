/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Why a design is not feasible, in words.  Most rejected designs do not fit in memory; their text
 * is made from the result when somebody asks for it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/unit.h"
#include "search/search.h"

/* Parts of the memory of a stage by name. */
static const struct {
    const char *name;
    size_t offset;
} memory_parts[] = {
    {"weights", offsetof(wl_memory, weights)},
    {"gradients", offsetof(wl_memory, gradients)},
    {"optimizer", offsetof(wl_memory, optimizer)},
    {"activations", offsetof(wl_memory, activations)},
    {"gathered weights", offsetof(wl_memory, gathered)},
    {"buffers", offsetof(wl_memory, communication)},
    {"logits", offsetof(wl_memory, logits)},
    {"kv cache", offsetof(wl_memory, kv_cache)},
    {"transient", offsetof(wl_memory, transient)},
};

/* Appends the parts of at least 1 %, in the order of the table. */
static void append_parts(const wl_memory *memory, char *text, size_t size)
{
    const char *before = ": ";

    for (size_t i = 0; i < CS_COUNT(memory_parts); i++) {
        double bytes;
        char quantity[48];
        size_t used = strlen(text);

        memcpy(&bytes, (const char *)memory + memory_parts[i].offset, sizeof bytes);
        if (bytes < 0.01 * memory->total)
            continue;
        (void)snprintf(text + used, size - used, "%s%s %s", before, memory_parts[i].name,
                       cs_quantity_text(bytes, CS_BYTES, quantity));
        before = ", ";
    }
}

/* "memory: 1.13 TB of 80 GB, 1.05 TB over on stage 1: weights 141 GB, ..." */
static void out_of_memory(const sim_result *result, char text[SEARCH_REASON_BYTES])
{
    double peak = result->peak_memory_bytes, capacity = peak * exp(-result->memory_excess);
    char need[48], have[48], over[48];

    (void)snprintf(text, SEARCH_REASON_BYTES, "memory: %s of %s, %s over on stage %zu",
                   cs_quantity_text(peak, CS_BYTES, need),
                   cs_quantity_text(capacity, CS_BYTES, have),
                   cs_quantity_text(peak - capacity, CS_BYTES, over), result->memory_stage + 1);
    append_parts(&result->memory, text, SEARCH_REASON_BYTES);
}

const char *search_trial_reason(const search_trial *trial, char text[SEARCH_REASON_BYTES])
{
    if (trial->reason[0] != 0 || trial->status != SEARCH_INFEASIBLE ||
        trial->result.verdict != SIM_OUT_OF_MEMORY)
        return trial->reason;
    out_of_memory(&trial->result, text);
    return text;
}
