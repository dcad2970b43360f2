/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Names, numbers as text, hashes and checked 128-bit arithmetic. */
#include "common/common.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NAME = 64 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Levenshtein distance, case folded (Wagner and Fischer, JACM 21(1), 1974), one row at a time. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    size_t row[LONGEST_NAME + 1];

    if (n > LONGEST_NAME || m > LONGEST_NAME)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            size_t cost = min3(row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1));
            diagonal = row[j];
            row[j] = cost;
        }
    }
    return row[m];
}

const char *cs_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    size_t best = strlen(word) / 2 + 1; /* half of the letters wrong is no slip any more */

    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(word, names[i]);
        if (distance <= best && (nearest == NULL || distance < best)) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

uint64_t cs_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 1099511628211ULL;
    return hash;
}

const char *cs_u128_text(unsigned __int128 value, char text[40])
{
    char digits[40];
    size_t n = 0;

    do {
        digits[n++] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value != 0);
    for (size_t i = 0; i < n; i++)
        text[i] = digits[n - 1 - i];
    text[n] = '\0';
    return text;
}

const char *cs_double_text(double value, char text[32])
{
    const double whole = fabs(value);

    /* %g would write 40 as "4e+01". */
    if (whole < 1e15 && whole == floor(whole)) {
        (void)snprintf(text, 32, "%.0f", value);
        return text;
    }
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(text, 32, "%.*g", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

bool cs_u128_mul(unsigned __int128 a, unsigned __int128 b, unsigned __int128 *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool cs_u128_add(unsigned __int128 a, unsigned __int128 b, unsigned __int128 *out)
{
    return !__builtin_add_overflow(a, b, out);
}
