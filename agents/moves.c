/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Moves between valid points: neighbourhoods, mutation, perturbation. */
#include "agents/agents_private.h"

#include <math.h>
#include <string.h>

enum { MANY_LEVELS = 4, MANY_VALUES = 64 };

size_t agent__count(const agent_setup *setup, size_t index)
{
    return setup->param[index] < 1.0 ? 1 : (size_t)setup->param[index];
}

bool agent__same(const agent_setup *setup, const int32_t *a, const int32_t *b)
{
    return memcmp(a, b, psa_space_n_vars(setup->space) * sizeof *a) == 0;
}

static size_t ordered_steps(int32_t card)
{
    size_t n = 4;

    for (int32_t step = 4; card > MANY_LEVELS && step < card; step *= 2)
        n += 2;
    return n;
}

size_t agent__moves_max(const psa_space *space)
{
    size_t n = 1;

    for (size_t v = 0; v < psa_space_n_vars(space); v++) {
        int32_t card = psa_space_card(space, v);
        if (psa_space_var_kind(space, v) == PSA_VAR_ORDERED)
            n += ordered_steps(card);
        else
            n += (size_t)(card < MANY_VALUES ? card : MANY_VALUES);
    }
    return n;
}

static size_t ordered_moves(size_t var, int32_t value, int32_t card, agent__move *list)
{
    size_t n = 0;

    for (int32_t step = 1; step < card && (step <= 2 || card > MANY_LEVELS); step *= 2) {
        if (value >= step)
            list[n++] = (agent__move){(int32_t)var, value - step};
        if (value + step < card)
            list[n++] = (agent__move){(int32_t)var, value + step};
    }
    return n;
}

/* Every value of `values` (or every other value of the variable when NULL), at most MANY_VALUES of
 * them, drawn without favour. */
static size_t listed_moves(cs_rng *rng, size_t var, const int32_t *values, size_t count,
                           int32_t value, agent__move *list)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        /* Sequential sampling: the i-th of `count` is kept with chance wanted/remaining. */
        size_t room = MANY_VALUES - n, left = count - i;
        if (count > MANY_VALUES && cs_rng_below(rng, left) >= room)
            continue;
        int32_t x = values != NULL ? values[i] : (int32_t)i;
        if (x != value)
            list[n++] = (agent__move){(int32_t)var, x};
    }
    return n;
}

size_t agent__moves(const psa_space *space, cs_rng *rng, const int32_t *point, agent__move *list)
{
    size_t n = 0;

    for (size_t v = 0; v < psa_space_n_vars(space); v++) {
        const int32_t card = psa_space_card(space, v);
        const int32_t *values = NULL;
        size_t count = (size_t)card;

        if (card < 2 || !psa_space_active(space, point, v))
            continue;
        switch (psa_space_var_kind(space, v)) {
        case PSA_VAR_ORDERED:
            n += ordered_moves(v, point[v], card, list + n);
            continue;
        case PSA_VAR_TUPLE:
            count = psa_space_neighbours(space, v, point[v], &values);
            if (count == 0) {
                values = NULL;
                count = (size_t)card;
            }
            break;
        case PSA_VAR_CATEGORY:
            break;
        }
        n += listed_moves(rng, v, values, count, point[v], list + n);
    }
    return n;
}

bool agent__apply(const psa_space *space, cs_rng *rng, const int32_t *from, agent__move move,
                  int32_t *point)
{
    const size_t bytes = psa_space_n_vars(space) * sizeof *point;

    memcpy(point, from, bytes);
    point[move.var] = move.value;
    psa_space_canonicalize(space, point);
    if (!psa_space_valid(space, point) && !psa_space_repair(space, rng, (size_t)move.var, point))
        return false;
    return memcmp(point, from, bytes) != 0;
}

static int32_t step_ordered(cs_rng *rng, int32_t value, int32_t card)
{
    /* A step of one level with probability 0.7, otherwise any other level. */
    if (cs_rng_uniform(rng) < 0.7) {
        bool up = (cs_rng_u64(rng) & 1) != 0;
        if (value == 0 || (up && value + 1 < card))
            return value + 1;
        return value - 1;
    }
    int32_t other = (int32_t)cs_rng_below(rng, (uint64_t)card - 1);
    return other >= value ? other + 1 : other;
}

void agent__mutate_var(const psa_space *space, cs_rng *rng, size_t var, int32_t *point)
{
    const int32_t card = psa_space_card(space, var);
    const int32_t *values;

    if (card < 2)
        return;
    if (psa_space_var_kind(space, var) == PSA_VAR_ORDERED) {
        point[var] = step_ordered(rng, point[var], card);
        return;
    }
    if (psa_space_var_kind(space, var) == PSA_VAR_TUPLE && cs_rng_uniform(rng) < 0.8) {
        size_t n = psa_space_neighbours(space, var, point[var], &values);
        if (n > 0) {
            point[var] = values[cs_rng_below(rng, n)];
            return;
        }
    }
    int32_t other = (int32_t)cs_rng_below(rng, (uint64_t)card - 1);
    point[var] = other >= point[var] ? other + 1 : other;
}

/* One random move that takes effect; gives up after a few tries (a space of one point). */
static void random_move(const psa_space *space, cs_rng *rng, int32_t *point)
{
    const size_t n = psa_space_n_vars(space);

    for (int tries = 0; tries < 32; tries++) {
        size_t var = (size_t)cs_rng_below(rng, n);
        if (psa_space_card(space, var) < 2 || !psa_space_active(space, point, var))
            continue;
        const int32_t before = point[var];
        agent__mutate_var(space, rng, var, point);
        psa_space_canonicalize(space, point);
        if (!psa_space_valid(space, point))
            (void)psa_space_repair(space, rng, var, point);
        if (point[var] != before)
            return;
    }
}

void agent__perturb(const psa_space *space, cs_rng *rng, size_t n, int32_t *point)
{
    for (size_t i = 0; i < n; i++)
        random_move(space, rng, point);
}

size_t agent__split_moves(const psa_space *space, cs_rng *rng, int32_t *point, size_t n,
                          agent__move *list)
{
    const size_t n_vars = psa_space_n_vars(space);

    for (int tries = 0; tries < 32; tries++) {
        const size_t var = (size_t)cs_rng_below(rng, n_vars);
        const int32_t card = psa_space_card(space, var), value = point[var];
        if (card < 2 || (tries < 16 && psa_space_var_kind(space, var) != PSA_VAR_TUPLE))
            continue;
        for (size_t i = 0; i < n; i++) {
            list[i] = (agent__move){(int32_t)var, (int32_t)cs_rng_below(rng, (uint64_t)card)};
            if (cs_rng_uniform(rng) < 0.5 || list[i].value == value) {
                agent__mutate_var(space, rng, var, point);
                list[i].value = point[var];
                point[var] = value;
            }
        }
        return n;
    }
    return 0;
}

bool agent__known(const agent_setup *setup, const int32_t *point, agent_score *score)
{
    return setup->lookup != NULL && setup->lookup(setup->lookup_context, point, score);
}

bool agent__fits(const agent_setup *setup, const int32_t *point)
{
    return setup->precheck == NULL || !(setup->precheck(setup->precheck_context, point) > 0.0);
}

bool agent__make_fit(const agent_setup *setup, cs_rng *rng, size_t pinned, agent__move *list,
                     int32_t *scratch, int32_t *point)
{
    enum { MOST_STEPS = 3 };
    const size_t n_vars = psa_space_n_vars(setup->space), bytes = n_vars * sizeof *point;
    int32_t *from = scratch, *best = scratch + n_vars, *without_effect = scratch + 2 * n_vars;

    if (setup->precheck == NULL)
        return true;
    double violation = setup->precheck(setup->precheck_context, point);
    for (int step = 0; step < MOST_STEPS && violation > 0.0; step++) {
        const size_t n = agent__moves(setup->space, rng, point, list);
        const double before = violation;
        memcpy(from, point, bytes);
        memset(without_effect, 0, bytes);
        agent__shuffle(rng, list, n);
        for (size_t i = 0; i < n && violation > 0.0; i++) {
            if ((size_t)list[i].var == pinned || without_effect[list[i].var] != 0 ||
                !agent__apply(setup->space, rng, from, list[i], point) ||
                (pinned < n_vars && point[pinned] != from[pinned]))
                continue;
            double v = setup->precheck(setup->precheck_context, point);
            without_effect[list[i].var] = v == before;
            if (v >= violation)
                continue;
            violation = v;
            memcpy(best, point, bytes);
        }
        if (violation >= before)
            return false;
        memcpy(point, best, bytes);
    }
    return !(violation > 0.0);
}

bool agent__free_score(const agent_setup *setup, const int32_t *point, agent_score *score)
{
    if (agent__known(setup, point, score))
        return true;
    if (setup->precheck == NULL)
        return false;
    double violation = setup->precheck(setup->precheck_context, point);
    if (!(violation > 0.0))
        return false;
    *score = (agent_score){.outcome = AGENT_INFEASIBLE, .violation = violation};
    return true;
}

static cs_status sample(const agent_setup *setup, cs_rng *rng, int32_t *point, cs_error *err)
{
    cs_status status = psa_space_sample(setup->space, rng, point);

    return status == CS_OK ? CS_OK : cs_fail(err, status, "the space has no valid point");
}

/* First unknown point at or after a random position, round the whole space. */
static void next_unknown(const agent_setup *setup, cs_rng *rng, int32_t *point)
{
    const uint64_t n = (uint64_t)psa_space_valid_points(setup->space);
    const uint64_t start = cs_rng_below(rng, n);
    agent_score score;

    for (uint64_t i = 0; i < n; i++) {
        psa_space_unrank(setup->space, (start + i) % n, point);
        if (!agent__known(setup, point, &score))
            return;
    }
}

cs_status agent__sample_new(const agent_setup *setup, cs_rng *rng, int tries, int32_t *point,
                            cs_error *err)
{
    cs_status status = CS_OK;
    agent_score score;

    for (int i = 0; i < tries; i++) {
        CS_TRY(sample(setup, rng, point, err));
        if (!agent__known(setup, point, &score))
            return CS_OK;
    }
    if (setup->lookup != NULL && psa_space_valid_points(setup->space) <= 1 << 20)
        next_unknown(setup, rng, point);
done:
    return status;
}

cs_status agent__sample_fitting(const agent_setup *setup, cs_rng *rng, int32_t *point,
                                cs_error *err)
{
    cs_status status = CS_OK;
    agent_score score;

    for (int i = 0; i < 64; i++) {
        CS_TRY(sample(setup, rng, point, err));
        if (!agent__free_score(setup, point, &score))
            return CS_OK;
    }
    CS_TRY(agent__sample_new(setup, rng, 1, point, err));
done:
    return status;
}

void agent__shuffle(cs_rng *rng, agent__move *list, size_t n)
{
    uint64_t x = cs_rng_u64(rng); /* one draw; the rest of the order is mixed from it */

    for (size_t i = n; i > 1; i--) {
        x = cs_mix64(x);
        size_t j = (size_t)((unsigned __int128)x * i >> 64);
        agent__move t = list[i - 1];
        list[i - 1] = list[j];
        list[j] = t;
    }
}

double agent__normal(cs_rng *rng)
{
    /* Box-Muller with one deviate a call: no state to save. */
    double u = 1.0 - cs_rng_uniform(rng), v = cs_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}
