/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chains: partial sums and products as variables.  Values are computed forward, then those that
 * cannot satisfy the bound are dropped backward, and only then are the tables built. */
#include "psa/network_private.h"

#include <stdlib.h>

/* Partial results of step i: combinations of the values so far with those of operand i. */
typedef struct {
    psa__step s;
    psa__indexed results;
    bool *alive;
} link;

static bool whole_holds(const psa__chain *c, double value)
{
    double pair[2] = {value, c->bound}, turned[2] = {c->bound, value};

    return psa__apply(c->compare, 2, c->swapped ? turned : pair) != 0;
}

/* Values of the link before, of which those that lead to a living one live. */
static bool *live_before(const link *here, size_t n_before)
{
    bool *alive = calloc(n_before + 1, sizeof *alive);

    for (size_t r = 0; alive != NULL && r < here->s.n_rows; r++)
        if (here->results.index[r] >= 0 && here->alive[here->results.index[r]])
            alive[r % n_before] = true;
    return alive;
}

static cs_status run_link(psa__build *build, const psa__chain *c, const link *before, size_t i,
                          link *here)
{
    cs_status status;
    const double *left = before == NULL ? NULL : before->results.value;
    size_t n_left = before == NULL ? psa__operand_card(build, &c->arg[0]) : before->results.n;
    size_t n_right = psa__operand_card(build, &c->arg[i]);
    double pair[2];

    if ((double)n_left * (double)n_right > PSA__MAX_ROWS)
        return psa__table_too_large(build, c->origin);
    CS_TRY(psa__count_work(build, n_left * n_right, c->origin));
    here->s.op = c->op;
    here->s.origin = c->origin;
    here->s.n = 2;
    here->s.arg[1] = c->arg[i];
    here->s.n_rows = n_left * n_right;
    here->s.result = malloc((here->s.n_rows + 1) * sizeof *here->s.result);
    if (here->s.result == NULL)
        return psa__no_memory(build);
    for (size_t r = 0; r < here->s.n_rows; r++) {
        pair[0] =
            left == NULL ? psa__operand_value(build, &c->arg[0], r % n_left) : left[r % n_left];
        pair[1] = psa__operand_value(build, &c->arg[i], r / n_left);
        here->s.result[r] = psa__apply(c->op, 2, pair);
    }
    CS_TRY(psa__index_results(build, &here->s, &here->results));
done:
    return status;
}

/* Backward pass: which partial results can still satisfy the bound. */
static cs_status mark_alive(psa__build *build, const psa__chain *c, link *list)
{
    size_t last = c->n - 2;

    list[last].alive = calloc(list[last].results.n + 1, sizeof(bool));
    if (list[last].alive == NULL)
        return psa__no_memory(build);
    for (size_t k = 0; k < list[last].results.n; k++)
        list[last].alive[k] = !c->bounded || whole_holds(c, list[last].results.value[k]);
    for (size_t i = last; i-- > 0;) {
        list[i].alive = live_before(&list[i + 1], list[i].results.n);
        if (list[i].alive == NULL)
            return psa__no_memory(build);
    }
    return CS_OK;
}

/* The partial results that live get new numbers, so the next link's rows are rebuilt over them. */
static void compact(const link *before, link *here)
{
    size_t kept = 0, n_right = here->s.n_rows / (before->results.n == 0 ? 1 : before->results.n);

    for (size_t right = 0; right < n_right; right++)
        for (size_t k = 0; k < before->results.n; k++)
            if (before->alive[k])
                here->results.index[kept++] = here->results.index[right * before->results.n + k];
    here->s.n_rows = kept;
}

static cs_status emit_chain(psa__build *build, const psa__chain *c, link *list, int32_t *out)
{
    cs_status status = CS_OK;
    psa__operand previous = c->arg[0];

    for (size_t i = 0; i < c->n - 1; i++) {
        link *here = &list[i];
        bool last = i == c->n - 2;
        here->s.arg[0] = previous;
        if (i > 0)
            compact(&list[i - 1], here);
        if (last && c->bounded) {
            bool *keep = malloc(here->s.n_rows + 1);
            if (keep == NULL)
                return psa__no_memory(build);
            for (size_t r = 0; r < here->s.n_rows; r++)
                keep[r] = here->results.index[r] >= 0 && here->alive[here->results.index[r]];
            status = psa__emit_rows(build, &here->s, keep, -1, NULL);
            free(keep);
            return status;
        }
        CS_TRY(psa__emit_function(build, &here->s, &here->results, here->alive, out));
        previous = (psa__operand){.net = *out};
        if (build->space->net[*out].card == 0) {
            build->unsatisfiable = true;
            return CS_OK;
        }
    }
done:
    return status;
}

cs_status psa__run_chain(psa__build *build, const psa__chain *c, int32_t *out)
{
    cs_status status = CS_OK;
    link *list = calloc(c->n, sizeof *list);

    if (list == NULL)
        return psa__no_memory(build);
    for (size_t i = 0; i + 1 < c->n; i++)
        CS_TRY(run_link(build, c, i == 0 ? NULL : &list[i - 1], i + 1, &list[i]));
    CS_TRY(mark_alive(build, c, list));
    CS_TRY(emit_chain(build, c, list, out));
done:
    for (size_t i = 0; i + 1 < c->n; i++) {
        psa__indexed_fini(&list[i].results);
        free(list[i].alive);
        free(list[i].s.result);
    }
    free(list);
    return status;
}
