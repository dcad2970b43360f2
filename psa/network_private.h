/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Taking conditions apart: steps tabulate one operator, chains are partial results. */
#ifndef PSA_NETWORK_PRIVATE_H
#define PSA_NETWORK_PRIVATE_H

#include "psa/space_private.h"

/* An operand of a step: a net, or a constant (net < 0). */
typedef struct {
    int32_t net;
    double constant;
} psa__operand;

/* One operator over a few operands. */
typedef struct {
    psa__op op;
    const psa__program *program; /* instead of op: the operands are raws */
    size_t n;
    psa__operand arg[PSA__MAX_TUPLE];
    int32_t raw[PSA__MAX_TUPLE];
    int32_t origin;
    size_t n_rows;
    double *result; /* by mixed radix, first operand fastest */
} psa__step;

/* An associative operator over many operands. */
typedef struct {
    psa__op op;
    int32_t origin;
    size_t n;
    psa__operand *arg;
    /* what must hold for the whole: `whole compare bound`, or nothing */
    bool bounded, swapped;
    psa__op compare;
    double bound;
} psa__chain;

size_t psa__operand_card(const psa__build *build, const psa__operand *arg);
double psa__operand_value(const psa__build *build, const psa__operand *arg, size_t index);
/* Table of the rows that `keep` marks; `index` (or NULL) gives the value of one more column. */
CS_MUST_USE cs_status psa__emit_rows(psa__build *build, const psa__step *step, const bool *keep,
                                     int32_t out, const int32_t *index);
/* Results of a step as indices into their distinct values. */
typedef struct {
    double *value; /* ascending, then maybe one that is not a number */
    size_t n;
    int32_t *index; /* by row of the step */
} psa__indexed;
CS_MUST_USE cs_status psa__index_results(psa__build *build, const psa__step *step,
                                         psa__indexed *out);
void psa__indexed_fini(psa__indexed *indexed);
/* New net that is the function of the step's operands; `alive` (or NULL) says which values may
 * occur.  Renumbers the indices. */
CS_MUST_USE cs_status psa__emit_function(psa__build *build, const psa__step *step,
                                         psa__indexed *results, const bool *alive, int32_t *out);
/* The rows where a condition holds become a table. */
CS_MUST_USE cs_status psa__require_step(psa__build *build, psa__step *step);
/* The step's result becomes a net. */
CS_MUST_USE cs_status psa__function_of(psa__build *build, psa__step *step, int32_t *out);
/* The chain becomes a net, or a set of tables when it is bounded (*out is then untouched). */
CS_MUST_USE cs_status psa__run_chain(psa__build *build, const psa__chain *chain, int32_t *out);
/* Adds to the combinations evaluated so far; refuses over the limit, naming the constraint. */
CS_MUST_USE cs_status psa__count_work(psa__build *build, size_t n, int32_t origin);
cs_status psa__table_too_large(psa__build *build, int32_t origin);
cs_status psa__too_many_nets(psa__build *build, int32_t origin);

#endif
