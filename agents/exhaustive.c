/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every valid design once, in the fixed order of the space. */
#include "agents/agents_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    agent_setup setup;
    size_t n_vars;
    uint64_t next, n;
} exhaustive_state;

enum { BATCH, LIMIT };
static const agent_param params[] = {
    {"batch", 1024, 1, 65536, "points per ask"},
    {"limit", 1e7, 1, 1e15, "largest space accepted"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    exhaustive_state *st = state;
    const unsigned __int128 n = psa_space_valid_points(setup->space);
    char text[40];

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    if (n > (unsigned __int128)setup->param[LIMIT])
        return cs_fail(err, CS_EINVAL,
                       "exhaustive search of %s valid designs is over its limit of %.0f (--param "
                       "limit=N raises it; --stack and --fix make the space smaller)",
                       cs_u128_text(n, text), setup->param[LIMIT]);
    st->n = (uint64_t)n;
    return CS_OK;
}

static void fini(void *state)
{
    (void)state;
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    exhaustive_state *st = state;

    (void)err;
    if (*n > st->n - st->next)
        *n = (size_t)(st->n - st->next);
    for (size_t i = 0; i < *n; i++)
        psa_space_unrank(st->setup.space, st->next + i, points + i * st->n_vars);
    st->next += *n;
    return CS_OK;
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    (void)state, (void)n, (void)points, (void)score, (void)err;
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    exhaustive_state *st = state;

    AGENT__IO(io, st->next);
    if (st->next > st->n) {
        st->next = st->n;
        io->status = CS_EIO;
    }
}

const agent_type agent__exhaustive = {
    .name = "exhaustive",
    .summary = "every valid design once, up to a limit",
    .state_size = sizeof(exhaustive_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .snapshot = snapshot,
    .fini = fini,
};
