/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Compact bytes of points and results for the study. */
#include "search/search_private.h"

#include <string.h>

size_t search__pack_point(const int32_t *point, size_t n_vars, unsigned char *bytes)
{
    size_t n = 0;

    for (size_t v = 0; v < n_vars; v++) {
        uint32_t x = (uint32_t)point[v];
        while (x >= 0x80) {
            bytes[n++] = (unsigned char)(x | 0x80);
            x >>= 7;
        }
        bytes[n++] = (unsigned char)x;
    }
    return n;
}

bool search__unpack_point(const unsigned char *bytes, size_t n, int32_t *point, size_t n_vars)
{
    size_t at = 0;

    for (size_t v = 0; v < n_vars; v++) {
        uint64_t x = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (at == n || shift > 28)
                return false;
            x |= (uint64_t)(bytes[at] & 0x7f) << shift;
            if (bytes[at++] < 0x80)
                break;
        }
        point[v] = (int32_t)(uint32_t)x;
    }
    return at == n;
}

size_t search__pack_result(const sim_result *result, unsigned char *bytes)
{
    enum { MAP = (SEARCH__RESULT_WORDS + 7) / 8 };
    uint64_t word[SEARCH__RESULT_WORDS] = {0};
    size_t n = MAP;

    memcpy(word, result, sizeof *result);
    memset(bytes, 0, MAP);
    for (size_t i = 0; i < SEARCH__RESULT_WORDS; i++) {
        if (word[i] == 0)
            continue;
        bytes[i / 8] = (unsigned char)(bytes[i / 8] | 1u << i % 8);
        memcpy(bytes + n, &word[i], sizeof word[i]);
        n += sizeof word[i];
    }
    return n;
}

bool search__unpack_result(const unsigned char *bytes, size_t n, sim_result *result)
{
    enum { MAP = (SEARCH__RESULT_WORDS + 7) / 8 };
    uint64_t word[SEARCH__RESULT_WORDS] = {0};
    size_t at = MAP;

    if (n < MAP)
        return false;
    for (size_t i = 0; i < SEARCH__RESULT_WORDS; i++) {
        if ((bytes[i / 8] >> i % 8 & 1) == 0)
            continue;
        if (n - at < sizeof word[i])
            return false;
        memcpy(&word[i], bytes + at, sizeof word[i]);
        at += sizeof word[i];
    }
    memcpy(result, word, sizeof *result);
    return at == n;
}
