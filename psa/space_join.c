/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Joins of sparse tables through sorted keys. */
#include "psa/elim_private.h"

#include <stdlib.h>
#include <string.h>

void psa__table_fini(psa__table *table)
{
    free(table->row);
    free(table->weight);
    memset(table, 0, sizeof *table);
}

uint64_t psa__strides(const psa_space *space, const int32_t *net, size_t n, uint64_t *stride)
{
    uint64_t product = 1;

    for (size_t i = 0; i < n; i++) {
        uint64_t card = (uint64_t)space->net[net[i]].card;
        stride[i] = product;
        if (card != 0 && product > (UINT64_C(1) << 62) / card)
            return 0;
        product *= card == 0 ? 1 : card;
    }
    return product;
}

/* One pass of a radix sort over 8 bits; false when all keys share them. */
static bool radix_pass(const uint64_t *key, const uint32_t *row, size_t n, int shift,
                       uint64_t *key_out, uint32_t *row_out)
{
    size_t count[257] = {0};

    for (size_t i = 0; i < n; i++)
        count[((key[i] >> shift) & 255) + 1]++;
    for (size_t b = 0; b < 256; b++)
        if (count[b + 1] == n)
            return false;
    for (size_t b = 0; b < 256; b++)
        count[b + 1] += count[b];
    for (size_t i = 0; i < n; i++) {
        size_t to = count[(key[i] >> shift) & 255]++;
        key_out[to] = key[i];
        row_out[to] = row[i];
    }
    return true;
}

static void insertion_sort(uint64_t *key, uint32_t *row, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t k = key[i];
        uint32_t r = row[i];
        size_t j = i;
        for (; j > 0 && key[j - 1] > k; j--) {
            key[j] = key[j - 1];
            row[j] = row[j - 1];
        }
        key[j] = k;
        row[j] = r;
    }
}

bool psa__sort_keys(uint64_t *key, uint32_t *row, size_t n)
{
    uint64_t *key_a = key, *key_b;
    uint32_t *row_a = row, *row_b;

    if (n <= 32) {
        insertion_sort(key, row, n);
        return true;
    }
    key_b = malloc(n * sizeof *key_b);
    row_b = malloc(n * sizeof *row_b);
    if (key_b == NULL || row_b == NULL) {
        free(key_b);
        free(row_b);
        return false;
    }
    for (int shift = 0; shift < 64; shift += 8)
        if (radix_pass(key_a, row_a, n, shift, key_b, row_b)) {
            uint64_t *k = key_a;
            uint32_t *r = row_a;
            key_a = key_b;
            key_b = k;
            row_a = row_b;
            row_b = r;
        }
    if (key_a != key) {
        memcpy(key, key_a, n * sizeof *key);
        memcpy(row, row_a, n * sizeof *row);
    }
    free(key_a == key ? key_b : key_a);
    free(row_a == row ? row_b : row_a);
    return true;
}

cs_status psa__table_copy(psa__build *build, const psa__factor *factor, psa__table *out)
{
    memset(out, 0, sizeof *out);
    if (factor->n_scope > CS_COUNT(out->scope))
        return psa__too_large(build, factor->origin, "a table over more than 64 variables");
    out->n_scope = factor->n_scope;
    memcpy(out->scope, factor->scope, factor->n_scope * sizeof *factor->scope);
    out->n_rows = factor->n_rows;
    out->row = malloc((factor->n_rows * factor->n_scope + 1) * sizeof *out->row);
    out->weight = malloc((factor->n_rows + 1) * sizeof *out->weight);
    if (out->row == NULL || out->weight == NULL) {
        psa__table_fini(out);
        return psa__no_memory(build);
    }
    memcpy(out->row, factor->row, factor->n_rows * factor->n_scope * sizeof *out->row);
    for (size_t r = 0; r < factor->n_rows; r++)
        out->weight[r] = factor->weight == NULL ? 1 : factor->weight[r];
    return CS_OK;
}

/* How the columns of two tables meet. */
typedef struct {
    uint32_t n_shared, n_new;
    uint32_t left[64], right[64]; /* shared columns */
    uint32_t fresh[64];           /* columns of right only */
    uint64_t stride[64];
    uint64_t *key; /* of the rows of right, ascending */
    uint32_t *row;
    int32_t origin; /* constraint to name in a refusal */
} meeting;

static cs_status meet(psa__build *build, const psa__table *left, const psa__factor *right,
                      meeting *m)
{
    int32_t shared[64];

    for (uint32_t j = 0; j < right->n_scope; j++) {
        uint32_t i = 0;
        while (i < left->n_scope && left->scope[i] != right->scope[j])
            i++;
        if (i == left->n_scope) {
            m->fresh[m->n_new++] = j;
            continue;
        }
        shared[m->n_shared] = left->scope[i];
        m->left[m->n_shared] = i;
        m->right[m->n_shared++] = j;
    }
    if (left->n_scope + m->n_new > 64 ||
        psa__strides(build->space, shared, m->n_shared, m->stride) == 0)
        return psa__too_large(build, m->origin, "a table that is too wide");
    m->key = malloc((right->n_rows + 1) * sizeof *m->key);
    m->row = malloc((right->n_rows + 1) * sizeof *m->row);
    if (m->key == NULL || m->row == NULL)
        return psa__no_memory(build);
    for (size_t r = 0; r < right->n_rows; r++) {
        m->key[r] = 0;
        m->row[r] = (uint32_t)r;
        for (uint32_t k = 0; k < m->n_shared; k++)
            m->key[r] += (uint64_t)right->row[r * right->n_scope + m->right[k]] * m->stride[k];
    }
    return psa__sort_keys(m->key, m->row, right->n_rows) ? CS_OK : psa__no_memory(build);
}

static size_t first_at(const uint64_t *key, size_t n, uint64_t wanted)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (key[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t key_of(const meeting *m, const int32_t *row)
{
    uint64_t key = 0;

    for (uint32_t k = 0; k < m->n_shared; k++)
        key += (uint64_t)row[m->left[k]] * m->stride[k];
    return key;
}

/* Counts the rows of the result before any is written, so that a join that is too large costs
 * little; *first gets the first partner of each row. */
static cs_status count_rows(psa__build *build, const psa__table *left, size_t n_right,
                            const meeting *m, uint32_t *first, size_t *n)
{
    *n = 0;
    for (size_t r = 0; r < left->n_rows; r++) {
        uint64_t key = key_of(m, left->row + r * left->n_scope);
        size_t at = first_at(m->key, n_right, key), end = at;
        while (end < n_right && m->key[end] == key)
            end++;
        first[r] = (uint32_t)at;
        *n += end - at;
        if (*n > PSA__MAX_ROWS || *n * (left->n_scope + m->n_new) > PSA__MAX_CELLS)
            return psa__too_large(build, m->origin,
                                  "a table of more than 10,000,000 entries; fewer values or a "
                                  "simpler condition would do");
    }
    return CS_OK;
}

static cs_status make_room(psa__build *build, psa__table *out, size_t n)
{
    out->row = malloc((n * out->n_scope + 1) * sizeof *out->row);
    out->weight = malloc((n + 1) * sizeof *out->weight);
    return out->row == NULL || out->weight == NULL ? psa__no_memory(build) : CS_OK;
}

/* All partners of row r of the left table, the first of which is at `i`; false when a count
 * overflows. */
static bool join_row(const psa__table *left, size_t r, const psa__factor *right, const meeting *m,
                     size_t i, psa__table *out)
{
    const int32_t *from = left->row + r * left->n_scope;
    uint64_t key = key_of(m, from);
    uint32_t n_left = out->n_scope - m->n_new;

    for (; i < right->n_rows && m->key[i] == key; i++) {
        const int32_t *other = right->row + (size_t)m->row[i] * right->n_scope;
        int32_t *to = out->row + out->n_rows * out->n_scope;
        memcpy(to, from, n_left * sizeof *to);
        for (uint32_t k = 0; k < m->n_new; k++)
            to[n_left + k] = other[m->fresh[k]];
        if (!cs_u128_mul(left->weight[r], right->weight == NULL ? 1 : right->weight[m->row[i]],
                         &out->weight[out->n_rows]))
            return false;
        out->n_rows++;
    }
    return true;
}

cs_status psa__table_join(psa__build *build, const psa__table *left, const psa__factor *right,
                          int32_t origin, psa__table *out)
{
    cs_status status;
    meeting m = {.origin = origin};
    uint32_t *first = malloc((left->n_rows + 1) * sizeof *first);
    size_t n = 0;

    memset(out, 0, sizeof *out);
    if (first == NULL)
        return psa__no_memory(build);
    CS_TRY(meet(build, left, right, &m));
    out->n_scope = left->n_scope + m.n_new;
    memcpy(out->scope, left->scope, left->n_scope * sizeof *out->scope);
    for (uint32_t k = 0; k < m.n_new; k++)
        out->scope[left->n_scope + k] = right->scope[m.fresh[k]];
    CS_TRY(count_rows(build, left, right->n_rows, &m, first, &n));
    CS_TRY(make_room(build, out, n));
    for (size_t r = 0; r < left->n_rows; r++)
        if (!join_row(left, r, right, &m, first[r], out)) {
            status = psa__count_overflow(build);
            goto done;
        }
done:
    free(first);
    free(m.key);
    free(m.row);
    if (status != CS_OK)
        psa__table_fini(out);
    return status;
}
