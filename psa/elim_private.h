/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Joining tables, the inner loop of variable elimination. */
#ifndef PSA_ELIM_PRIVATE_H
#define PSA_ELIM_PRIVATE_H

#include "psa/space_private.h"

/* A table in heap memory: rows over the scope, each with a weight. */
typedef struct {
    uint32_t n_scope;
    int32_t scope[64];
    size_t n_rows;
    int32_t *row;
    psa__count *weight;
} psa__table;

void psa__table_fini(psa__table *table);
/* Heap copy of a factor. */
CS_MUST_USE cs_status psa__table_copy(psa__build *build, const psa__factor *factor,
                                      psa__table *out);
/* left JOIN right on their shared nets; weights multiply. O(rows in + rows out).  Refuses, naming
 * the constraint `origin`, when the result is too large. */
CS_MUST_USE cs_status psa__table_join(psa__build *build, const psa__table *left,
                                      const psa__factor *right, int32_t origin, psa__table *out);
cs_status psa__count_overflow(psa__build *build);
/* Mixed-radix strides over `n` nets (first fastest); the product of their cards, 0 when it is over
 * 2^62. */
uint64_t psa__strides(const psa_space *space, const int32_t *net, size_t n, uint64_t *stride);

#endif
