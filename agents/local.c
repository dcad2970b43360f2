/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Iterated local search (Lourenco, Martin, Stuetzle, Handbook of Metaheuristics, 2003).  A chain
 * descends from the best of a few random designs over the one-move neighbourhood, taking the first
 * improvement; at a local optimum it keeps the better of it and its incumbent, kicks the incumbent
 * and descends again; after some failures it starts anew.
 *
 * A linear model of all designs seen (ridge.h) says which neighbours to look at first, and which of
 * some kicks and new starts to take.
 *
 * Neighbours are proposed in blocks that grow as improvements become rare, so that little is wasted
 * on the steep part and a block keeps many threads busy near an optimum.  What a neighbour scores
 * is taken for free where the design is known, or cannot fit while the current one does.  The best
 * splits often lie where memory is nearly full: a neighbour with another split that does not fit is
 * made to fit by moves on other variables.
 *
 * After a kick only the variables it changed and the more promising part of the other moves are
 * looked at; the whole neighbourhood follows where that led to a better design than the incumbent.
 *
 * Most kicks are compound: they change one tuple (a split over the axes), and the descent
 * re-optimises the rest; others are a few random moves. */
#include "agents/local_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const agent_param params[] = {
    {"chains", 1, 1, 4096, "independent searches, each with its own random stream"},
    {"batch", 16, 1, 4096, "most neighbours per chain and ask"},
    {"start", 16, 1, 1e6, "random designs of which a chain begins with the best"},
    {"kick", 4, 1, 64, "random moves that leave a local optimum"},
    {"compound", 0.8, 0, 1, "chance of a compound kick instead: another split"},
    {"restart", 8, 1, 1e6, "kicks without success before a new start"},
    {"focus", 0.4, 0, 1, "share of moves on unchanged variables looked at after a kick"},
    {"choice", 8, 1, 4096, "kicks or new starts from which the model chooses"},
    {NULL, 0, 0, 0, NULL},
};

static cs_status init_chain(local_state *st, size_t i, cs_error *err)
{
    local_chain *c = &st->chains[i];

    c->rng = cs_rng_create(st->setup.seed, AGENT__STREAM_LOCAL, i);
    c->at = calloc(st->n_vars + 1, sizeof *c->at);
    c->incumbent = calloc(st->n_vars + 1, sizeof *c->incumbent);
    c->moves = calloc(agent__moves_max(st->setup.space), sizeof *c->moves);
    c->promise = calloc(agent__moves_max(st->setup.space), sizeof *c->promise);
    c->asked = calloc(st->batch * st->n_vars + 1, sizeof *c->asked);
    c->run.hit_rate = 0.5;
    if (c->rng == NULL || c->at == NULL || c->incumbent == NULL || c->moves == NULL ||
        c->asked == NULL || c->promise == NULL)
        return cs_fail(err, CS_ENOMEM, "local agent");
    return CS_OK;
}

static cs_status init(void *state, const agent_setup *setup, cs_error *err)
{
    local_state *st = state;
    cs_status status = CS_OK;

    st->setup = *setup;
    st->n_vars = psa_space_n_vars(setup->space);
    st->batch = agent__count(setup, BATCH);
    st->n_choice = agent__count(setup, CHOICE);
    if (st->n_choice > agent__moves_max(setup->space))
        st->n_choice = agent__moves_max(setup->space);
    st->work = calloc(st->n_vars + 1, sizeof *st->work);
    st->kicked = calloc(st->n_vars + 1, sizeof *st->kicked);
    st->scratch = calloc(3 * st->n_vars + 1, sizeof *st->scratch);
    st->fixes = calloc(agent__moves_max(setup->space), sizeof *st->fixes);
    st->model = agent__ridge_create(setup->space);
    st->chains = calloc(agent__count(setup, CHAINS), sizeof *st->chains);
    if (st->work == NULL || st->kicked == NULL || st->scratch == NULL || st->fixes == NULL ||
        st->model == NULL || st->chains == NULL)
        return cs_fail(err, CS_ENOMEM, "local agent");
    st->n_chains = agent__count(setup, CHAINS);
    for (size_t i = 0; i < st->n_chains; i++)
        CS_TRY(init_chain(st, i, err));
done:
    return status;
}

static void fini(void *state)
{
    local_state *st = state;

    for (size_t i = 0; i < st->n_chains; i++) {
        cs_rng_destroy(st->chains[i].rng);
        free(st->chains[i].at);
        free(st->chains[i].incumbent);
        free(st->chains[i].moves);
        free(st->chains[i].promise);
        free(st->chains[i].asked);
    }
    free(st->chains);
    free(st->work);
    free(st->kicked);
    free(st->scratch);
    free(st->fixes);
    agent__ridge_destroy(st->model);
}

/* Keeps the moves on variables that differ from the incumbent, and the first of the others. */
static size_t thin_out(local_state *st, local_chain *c, size_t n)
{
    const size_t share = (size_t)(st->setup.param[FOCUS] * (double)n + 0.5);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        const int32_t var = c->moves[i].var;
        if (i < share || c->at[var] != c->incumbent[var])
            c->moves[kept++] = c->moves[i];
    }
    return kept;
}

static bool beats_incumbent(const local_chain *c)
{
    return !c->run.has_incumbent ||
           agent_score_compare(&c->run.at_score, &c->run.incumbent_score) < 0;
}

/* Notes that the neighbourhood of `at` is being opened; true when it was before, as far as is
 * remembered. */
static bool opened_before(local_state *st, const local_chain *c)
{
    const uint64_t hash = psa_space_point_hash(st->setup.space, c->at);
    uint64_t *slot = &st->opened[hash % REMEMBERED];
    const bool before = *slot == hash;

    *slot = hash;
    return before;
}

static void open_neighbourhood(local_state *st, local_chain *c)
{
    c->run.phase = DESCEND;
    c->run.next_move = c->run.n_moves = 0;
    if (opened_before(st, c) && c->run.focused && !beats_incumbent(c))
        return; /* another kick led here: from here on the way is the same */
    size_t n = agent__moves(st->setup.space, c->rng, c->at, c->moves);
    agent__shuffle(c->rng, c->moves, n);
    agent__ridge_sort(st->model, c->at, n, c->moves, c->promise);
    c->run.n_moves = c->run.focused ? thin_out(st, c, n) : n;
    if (c->run.has_incumbent && agent__same(&st->setup, c->at, c->incumbent))
        c->run.n_moves = 0; /* back where the kick came from: nothing is left to see */
}

static void move_to(local_state *st, local_chain *c, const int32_t *point, const agent_score *score)
{
    memmove(c->at, point, st->n_vars * sizeof *point); /* may be `at` itself */
    c->run.at_score = *score;
    open_neighbourhood(st, c);
}

/* At a local optimum: keep the better one, then kick it or start anew, at once when a kick led to
 * nothing that was not known.  `at` becomes a design whose score is not known yet. */
static cs_status leave_optimum(local_state *st, local_chain *c, cs_error *err)
{
    const bool better = beats_incumbent(c);

    if (better && c->run.focused) {
        c->run.focused = 0; /* worth a look at everything around it */
        open_neighbourhood(st, c);
        return CS_OK;
    }
    if (better) {
        memcpy(c->incumbent, c->at, st->n_vars * sizeof *c->at);
        c->run.incumbent_score = c->run.at_score;
        c->run.has_incumbent = 1;
        c->run.failures = 0;
    } else {
        c->run.failures++;
    }
    c->run.phase = START;
    c->run.focused = st->setup.param[FOCUS] < 1.0;
    if ((double)c->run.failures >= st->setup.param[RESTART] || (!better && !c->run.new_seen)) {
        c->run.has_incumbent = 0;
        c->run.failures = 0;
        c->run.hit_rate = 0.5;
        c->run.focused = 0;
        return agent__local_start(st, c, err);
    }
    c->run.new_seen = 0;
    agent__local_kick(st, c);
    return CS_OK;
}

static void propose(local_state *st, local_chain *c, const int32_t *point)
{
    memcpy(c->asked + c->n_asked++ * st->n_vars, point, st->n_vars * sizeof *point);
    c->run.new_seen = 1;
}

/* Neighbours per block: about a quarter of what the next improvement is expected to take. */
static size_t block_size(const local_state *st, const local_chain *c)
{
    double want = 0.25 / (c->run.hit_rate + 1e-3);

    return want < 1.0 ? 1 : want > (double)st->batch ? st->batch : (size_t)want;
}

static bool known_score(const local_state *st, const local_chain *c, const int32_t *point,
                        agent_score *score)
{
    /* From a design that does not fit, the way to one that does leads over others that do not. */
    if (c->run.at_score.outcome == AGENT_FEASIBLE)
        return agent__free_score(&st->setup, point, score);
    return agent__known(&st->setup, point, score);
}

/* The neighbour by a move into `work`; another split is made to fit, once.  False when
 * there is none. */
static bool neighbour(local_state *st, local_chain *c, agent__move move)
{
    const size_t var = (size_t)move.var;

    if (!agent__apply(st->setup.space, c->rng, c->at, move, st->work))
        return false;
    if (c->run.at_score.outcome != AGENT_FEASIBLE ||
        psa_space_var_kind(st->setup.space, var) != PSA_VAR_TUPLE)
        return true;
    return agent__local_fit(st, c, var, st->work) && !agent__same(&st->setup, st->work, c->at);
}

/* Fills the block with neighbours whose score is not known; steps at once to a known better one. */
static void scan(local_state *st, local_chain *c, int *steps)
{
    const size_t block = block_size(st, c);
    agent_score score;

    while (c->run.next_move < c->run.n_moves && c->n_asked < block && *steps < FREE_STEPS) {
        agent__move move = c->moves[c->run.next_move];
        c->run.next_move++;
        ++*steps;
        if (!neighbour(st, c, move))
            continue;
        if (!known_score(st, c, st->work, &score)) {
            propose(st, c, st->work);
            continue;
        }
        if (agent_score_compare(&score, &c->run.at_score) >= 0)
            continue;
        if (c->n_asked > 0) {
            c->run.next_move--; /* once the block is in */
            return;
        }
        move_to(st, c, st->work, &score);
    }
}

/* Random designs before the first descent. */
static cs_status scout(local_state *st, local_chain *c, cs_error *err)
{
    cs_status status = CS_OK;
    const double missing = st->setup.param[START_WITH] - (double)c->run.scouted;

    for (size_t i = 0; i < st->batch && (double)i < missing; i++) {
        CS_TRY(agent__sample_fitting(&st->setup, c->rng, st->kicked, err));
        propose(st, c, st->kicked);
    }
done:
    return status;
}

/* Advances a chain until it has something to evaluate.  One that finds nothing new around it starts
 * anew at a design not seen yet. */
static cs_status fill(local_state *st, local_chain *c, cs_error *err)
{
    cs_status status = CS_OK;
    agent_score score;
    int steps = 0;

    c->n_asked = 0;
    while (c->n_asked == 0) {
        if (c->run.phase == SCOUT) {
            CS_TRY(scout(st, c, err));
        } else if (++steps >= FREE_STEPS) {
            CS_TRY(agent__sample_new(&st->setup, c->rng, 16, c->at, err));
            c->run.phase = START;
            c->run.has_incumbent = c->run.focused = 0;
            propose(st, c, c->at);
        } else if (c->run.phase == START && agent__known(&st->setup, c->at, &score)) {
            move_to(st, c, c->at, &score);
        } else if (c->run.phase == START) {
            propose(st, c, c->at);
        } else {
            scan(st, c, &steps);
            if (c->n_asked == 0 && steps < FREE_STEPS) {
                CS_TRY(leave_optimum(st, c, err));
                steps += KICK_STEPS;
            }
        }
    }
done:
    return status;
}

static cs_status ask(void *state, size_t *n, int32_t *points, cs_error *err)
{
    local_state *st = state;
    cs_status status = CS_OK;

    *n = 0;
    for (size_t i = 0; i < st->n_chains; i++) {
        local_chain *c = &st->chains[i];
        CS_TRY(fill(st, c, err));
        memcpy(points + *n * st->n_vars, c->asked, c->n_asked * st->n_vars * sizeof *points);
        *n += c->n_asked;
    }
done:
    return status;
}

static void learn(local_state *st, const int32_t *point, const agent_score *score)
{
    if (score->outcome == AGENT_FEASIBLE)
        agent__ridge_learn(st->model, point, agent__energy(score));
}

/* The better of the designs drawn so far is kept in `at`. */
static void end_scouting(local_state *st, local_chain *c, const agent_score *score)
{
    for (size_t k = 0; k < c->n_asked; k++) {
        if (c->run.scouted++ > 0 && agent_score_compare(&score[k], &c->run.at_score) >= 0)
            continue;
        memcpy(c->at, c->asked + k * st->n_vars, st->n_vars * sizeof *c->at);
        c->run.at_score = score[k];
    }
    if ((double)c->run.scouted >= st->setup.param[START_WITH])
        move_to(st, c, c->at, &c->run.at_score);
}

static void tell_chain(local_state *st, local_chain *c, const agent_score *score)
{
    size_t best = SIZE_MAX;

    for (size_t k = 0; k < c->n_asked; k++)
        if (!score[k].cached)
            learn(st, c->asked + k * st->n_vars, &score[k]);
    if (c->run.phase == SCOUT) {
        end_scouting(st, c, score);
        return;
    }
    if (c->run.phase == START) {
        move_to(st, c, c->at, &score[0]);
        return;
    }
    for (size_t k = 0; k < c->n_asked; k++) {
        bool better = agent_score_compare(&score[k], &c->run.at_score) < 0;
        c->run.hit_rate += 0.05 * ((better ? 1.0 : 0.0) - c->run.hit_rate);
        if (better && (best == SIZE_MAX || agent_score_compare(&score[k], &score[best]) < 0))
            best = k;
    }
    if (best != SIZE_MAX)
        move_to(st, c, c->asked + best * st->n_vars, &score[best]);
}

static cs_status tell(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    local_state *st = state;
    size_t at = 0;

    (void)points, (void)n, (void)err;
    for (size_t i = 0; i < st->n_chains; i++) {
        tell_chain(st, &st->chains[i], score + at);
        at += st->chains[i].n_asked;
        st->chains[i].n_asked = 0;
    }
    return CS_OK;
}

/* What others found goes into the model; a design better than all that the first chain has seen
 * since its start becomes its place. */
static void observe(void *state, size_t n, const int32_t *points, const agent_score *score)
{
    local_state *st = state;
    local_chain *c = &st->chains[0];

    for (size_t i = 0; i < n; i++) {
        const int32_t *point = points + i * st->n_vars;
        if (!score[i].cached)
            learn(st, point, &score[i]);
        if (c->run.phase == DESCEND && c->run.has_incumbent &&
            agent_score_compare(&score[i], &c->run.incumbent_score) < 0 &&
            agent_score_compare(&score[i], &c->run.at_score) < 0)
            move_to(st, c, point, &score[i]);
    }
}

static cs_status seed(void *state, size_t n, const int32_t *points, const agent_score *score,
                      cs_error *err)
{
    local_state *st = state;

    (void)err;
    for (size_t i = 0; i < n; i++)
        learn(st, points + i * st->n_vars, &score[i]);
    for (size_t i = 0; i < st->n_chains && i < n; i++)
        move_to(st, &st->chains[i], points + i * st->n_vars, &score[i]);
    return CS_OK;
}

static void snapshot(void *state, agent__io *io)
{
    local_state *st = state;
    const size_t bytes = st->n_vars * sizeof(int32_t);

    agent__ridge_io(io, st->model);
    AGENT__IO(io, st->refused);
    AGENT__IO(io, st->opened);
    for (size_t i = 0; i < st->n_chains; i++) {
        local_chain *c = &st->chains[i];
        AGENT__IO(io, c->run);
        agent__io_block(io, c->at, bytes);
        agent__io_block(io, c->incumbent, bytes);
        if (c->run.n_moves > agent__moves_max(st->setup.space)) {
            c->run.n_moves = 0;
            io->status = CS_EIO;
        }
        agent__io_block(io, c->moves, c->run.n_moves * sizeof *c->moves);
        agent__io_rng(io, c->rng);
    }
}

const agent_type agent__local = {
    .name = "local",
    .summary = "iterated local search (the default)",
    .state_size = sizeof(local_state),
    .params = params,
    .init = init,
    .ask = ask,
    .tell = tell,
    .seed = seed,
    .observe = observe,
    .snapshot = snapshot,
    .fini = fini,
};
