/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Order of scores (Deb, CMAME 186(2-4), 2000) and snapshots of agent states. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a > b) - (a < b);
}

int agent_score_compare(const agent_score *a, const agent_score *b)
{
    if (a->outcome != b->outcome)
        return a->outcome < b->outcome ? -1 : 1;
    if (a->outcome == AGENT_FEASIBLE)
        return compare_doubles(a->objective[0], b->objective[0]);
    if (a->outcome == AGENT_INFEASIBLE)
        return compare_doubles(a->violation, b->violation);
    return 0;
}

double agent__energy(const agent_score *score)
{
    /* Feasible energies are logs of doubles: |log| < 750. */
    const double infeasible = 1e3, failed = 1e6;

    switch (score->outcome) {
    case AGENT_FEASIBLE:
        return score->objective[0] > 0 ? log(score->objective[0])
                                       : fmax(-750.0, score->objective[0] - 700.0);
    case AGENT_INFEASIBLE:
        return infeasible + fmin(score->violation, 1e3);
    default:
        return failed;
    }
}

cs_status agent_bytes_put(agent_bytes *bytes, const void *data, size_t n)
{
    if (n > bytes->capacity - bytes->n) {
        size_t capacity = bytes->capacity < 4096 ? 4096 : bytes->capacity;
        while (capacity - bytes->n < n) {
            if (capacity > SIZE_MAX / 2)
                return CS_ENOMEM;
            capacity *= 2;
        }
        unsigned char *grown = realloc(bytes->data, capacity);
        if (grown == NULL)
            return CS_ENOMEM;
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    if (n > 0)
        memcpy(bytes->data + bytes->n, data, n);
    bytes->n += n;
    return CS_OK;
}

void agent_bytes_fini(agent_bytes *bytes)
{
    free(bytes->data);
    *bytes = (agent_bytes){0};
}

void agent__io_block(agent__io *io, void *data, size_t n)
{
    if (io->status != CS_OK || n == 0)
        return;
    if (io->out != NULL) {
        io->status = agent_bytes_put(io->out, data, n);
        return;
    }
    if (n > io->left) {
        io->status = CS_EIO;
        return;
    }
    memcpy(data, io->in, n);
    io->in += n;
    io->left -= n;
}

void agent__io_rng(agent__io *io, cs_rng *rng)
{
    const size_t n = cs_rng_state_size();

    if (io->status != CS_OK)
        return;
    if (io->out == NULL) {
        if (n > io->left) {
            io->status = CS_EIO;
            return;
        }
        cs_rng_load(rng, io->in);
        io->in += n;
        io->left -= n;
        return;
    }
    void *state = malloc(n);
    if (state == NULL) {
        io->status = CS_ENOMEM;
        return;
    }
    cs_rng_save(rng, state);
    io->status = agent_bytes_put(io->out, state, n);
    free(state);
}
