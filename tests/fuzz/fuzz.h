/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a fuzz target provides: the entry that libFuzzer calls, and seeds for the driver. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Number of built-in seeds, and seed k written into `bytes`; returns its length. */
size_t fuzz_seeds(void);
size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity);

/* A text as a seed. */
static inline size_t fuzz_text(const char *text, uint8_t *bytes, size_t capacity)
{
    const size_t n = strlen(text) < capacity ? strlen(text) : capacity;

    memcpy(bytes, text, n);
    return n;
}

#endif
