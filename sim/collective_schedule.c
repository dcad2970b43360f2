/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chunks of collectives through the dimensions: a re-entrant flow shop with one server a dimension.
 * `program` order is closed form; the others are event-driven (DESIGN 5.3, Scheduling).
 * themis: Rashidi et al., "Themis: a network bandwidth-aware collective scheduling policy", ISCA
 * 2022: every chunk takes the dimensions in the order of the load given to them so far, and each
 * dimension serves the smallest chunk first. */
#include <math.h>
#include <stdlib.h>

#include "sim/collective.h"
#include "sim/sim.h"

/* What does not fit counts as the longest time. */
static sim_time picoseconds(double seconds)
{
    sim_time t;

    return sim_time_from_s(seconds, &t, NULL) == CS_OK ? t : SIM_TIME_MAX;
}

static uint32_t servers_of(const sim_phase *p)
{
    return p->other_dims | 1u << p->dim;
}

static int64_t clamp(__int128 t)
{
    return t < SIM_TIME_MAX ? (int64_t)t : SIM_TIME_MAX;
}

/* end of chunk c in phase p = max(end of c in p-1, end of c-1 in p) + d.  Convex in c, so that the
 * largest of end(c') + (c - c' + 1) d over c' <= c is at c' = 0 or c' = c: each phase adds d to the
 * lines a + b c so far and one line (start of chunk 0) + d (c + 1).  O(phases^2), whatever the
 * number of chunks. */
int64_t sim_collective_isolated_ps(const sim_phases *phases, int64_t chunks)
{
    const sim_phase *phase = phases->phase;
    __int128 start[SIM_MAX_PHASES + 1], slope[SIM_MAX_PHASES + 1], server[SIM_MAX_DIMS] = {0};
    __int128 first = 0, last = 0;
    int64_t n = chunks > 1 ? chunks : 1;

    for (size_t p = 0; p < phases->n && p < SIM_MAX_PHASES; p++) {
        int64_t d = picoseconds(phase[p].seconds);
        uint32_t servers = servers_of(&phase[p]);
        for (size_t s = 0; s < SIM_MAX_DIMS; s++)
            if ((servers >> s & 1) != 0 && server[s] > first)
                first = server[s];
        start[p] = first;
        slope[p] = d;
        first = 0;
        last = 0;
        for (size_t i = 0; i <= p; i++) {
            start[i] += d;
            __int128 end = start[i] + slope[i] * (n - 1);
            first = start[i] > first ? start[i] : first;
            last = end > last ? end : last;
        }
        for (size_t s = 0; s < SIM_MAX_DIMS; s++)
            if ((servers >> s & 1) != 0)
                server[s] = last;
    }
    return clamp(last);
}

/* ---- several collectives ---- */

/* A chunk on its way. */
typedef struct {
    size_t collective;
    int64_t ready, seq; /* since when it waits; a total order of arrivals */
    size_t at;
    sim_phases phases;
    bool running;
} chunk;

typedef struct {
    const sim_network *net;
    const sim_collective *issue;
    chunk *chunks;
    size_t n_chunks;
    int64_t now, seq, free_at[SIM_MAX_DIMS];
    uint8_t order[2 * SIM_MAX_DIMS];
    double load[SIM_MAX_DIMS];
} shop;

void sim__least_loaded_first(const sim_footprint *group, const double load[SIM_MAX_DIMS],
                             uint8_t order[2 * SIM_MAX_DIMS])
{
    for (size_t i = 0; i < group->n_spans; i++) {
        size_t at = i;
        for (; at > 0 && load[group->span[i].dim] < load[group->span[order[at - 1]].dim]; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)i;
    }
}

/* Phases of one chunk; themis chooses its order and books its load. */
static cs_status lay_out(shop *s, const sim_collective *issue, sim_route_cache *cache, chunk *c,
                         cs_error *err)
{
    double bytes = issue->bytes / (double)(s->net->chunks > 1 ? s->net->chunks : 1);
    sim__plan plan = {s->net, issue->group, cache, issue->type, s->order};
    cs_status status = CS_OK;

    if (s->net->scheduling != SIM_THEMIS || issue->group->routed || issue->group->n <= 1)
        return sim_collective_phases(s->net, issue, cache, &c->phases, err);
    sim__least_loaded_first(issue->group, s->load, s->order);
    CS_TRY(sim__plan_phases(&plan, bytes, &c->phases, err));
    for (size_t i = 0; i < c->phases.n; i++)
        s->load[c->phases.phase[i].dim] += c->phases.phase[i].seconds;
done:
    return status;
}

static cs_status lay_out_all(shop *s, size_t n, sim_route_cache *cache, cs_error *err)
{
    size_t per = s->net->chunks > 1 ? (size_t)s->net->chunks : 1;
    cs_status status = CS_OK;

    for (size_t i = 0; i < n * per; i++) {
        chunk *c = &s->chunks[i];
        c->collective = i / per;
        c->ready = picoseconds(s->issue[c->collective].issue_s);
        CS_TRY(lay_out(s, &s->issue[c->collective], cache, c, err));
    }
done:
    return status;
}

static bool done(const chunk *c)
{
    return c->at == c->phases.n;
}

static bool can_start(const shop *s, const chunk *c)
{
    uint32_t servers = servers_of(&c->phases.phase[c->at]);

    if (done(c) || c->running || c->ready > s->now)
        return false;
    for (size_t d = 0; d < s->net->n_dims; d++)
        if ((servers >> d & 1) != 0 && s->free_at[d] > s->now)
            return false;
    return true;
}

static bool earlier(const chunk *a, const chunk *b)
{
    return a->ready != b->ready ? a->ready < b->ready : a->seq < b->seq;
}

static bool program_before(const chunk *a, const chunk *b)
{
    if (a->collective != b->collective)
        return a->collective < b->collective;
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static bool later_first(const chunk *a, const chunk *b)
{
    return a->ready != b->ready ? a->ready > b->ready : a->seq > b->seq;
}

static bool smaller_first(const chunk *a, const chunk *b)
{
    double x = a->phases.phase[a->at].bytes, y = b->phases.phase[b->at].bytes;

    return x != y ? x < y : earlier(a, b);
}

static bool (*const preferred[])(const chunk *, const chunk *) = {
    [SIM_PROGRAM] = program_before, [SIM_FIFO] = earlier,         [SIM_LIFO] = later_first,
    [SIM_SMALLEST] = smaller_first, [SIM_THEMIS] = smaller_first,
};

static chunk *next_to_start(const shop *s)
{
    chunk *best = NULL;

    for (size_t i = 0; i < s->n_chunks; i++) {
        chunk *c = &s->chunks[i];
        if (can_start(s, c) && (best == NULL || preferred[s->net->scheduling](c, best)))
            best = c;
    }
    return best;
}

static void start(shop *s, chunk *c)
{
    uint32_t servers = servers_of(&c->phases.phase[c->at]);
    int64_t end = clamp((__int128)s->now + picoseconds(c->phases.phase[c->at].seconds));

    for (size_t d = 0; d < s->net->n_dims; d++)
        if ((servers >> d & 1) != 0)
            s->free_at[d] = end;
    c->running = true;
    c->ready = end;
}

/* Moves the clock to the next end or issue; false when nothing is left. Chunks that end take their
 * places in the order of their numbers. */
static bool advance(shop *s)
{
    int64_t next = INT64_MAX;

    for (size_t i = 0; i < s->n_chunks; i++) {
        const chunk *c = &s->chunks[i];
        if (!done(c) && (c->running || c->ready > s->now) && c->ready < next)
            next = c->ready;
    }
    if (next == INT64_MAX)
        return false;
    s->now = next;
    for (size_t i = 0; i < s->n_chunks; i++) {
        chunk *c = &s->chunks[i];
        if (c->running && c->ready == next) {
            c->running = false;
            c->at++;
            c->seq = s->seq++;
        }
    }
    return true;
}

static void run(shop *s)
{
    bool more = true;

    for (size_t i = 0; i < s->n_chunks; i++)
        s->chunks[i].seq = s->seq++;
    while (more) {
        for (chunk *c = next_to_start(s); c != NULL; c = next_to_start(s))
            start(s, c);
        more = advance(s);
    }
}

/* `program`: every server serves collectives in issue order, then phase, then chunk, and waits for
 * the one whose turn it is. */
static void run_in_order(shop *s, size_t per)
{
    for (size_t first = 0; first < s->n_chunks; first += per) {
        chunk *block = &s->chunks[first];
        for (size_t p = 0; p < block->phases.n; p++) {
            for (size_t i = 0; i < per; i++) {
                chunk *c = &block[i];
                uint32_t servers = servers_of(&c->phases.phase[p]);
                s->now = c->ready;
                for (size_t d = 0; d < s->net->n_dims; d++)
                    if ((servers >> d & 1) != 0 && s->free_at[d] > s->now)
                        s->now = s->free_at[d];
                c->at = p;
                start(s, c);
            }
        }
    }
}

cs_status sim_collectives_schedule(const sim_network *net, const sim_collective *issue, size_t n,
                                   sim_route_cache *cache, double *finish_s, cs_error *err)
{
    shop s = {.net = net, .issue = issue};
    size_t per = net->chunks > 1 ? (size_t)net->chunks : 1;
    cs_status status = CS_OK;

    if (net->scheduling < 0 || net->scheduling > SIM_THEMIS)
        return cs_fail(err, CS_EINVAL, "collective scheduling %d", (int)net->scheduling);
    if (n > 0 && per > (SIZE_MAX / 4096) / sizeof *s.chunks / n)
        return cs_fail(err, CS_EINVAL, "%zu collectives of %zu chunks are too many", n, per);
    s.n_chunks = n * per;
    s.chunks = calloc(s.n_chunks > 0 ? s.n_chunks : 1, sizeof *s.chunks);
    if (s.chunks == NULL)
        return cs_fail(err, CS_ENOMEM, "%zu chunks", s.n_chunks);
    CS_TRY(lay_out_all(&s, n, cache, err));
    if (net->scheduling == SIM_PROGRAM)
        run_in_order(&s, per);
    else
        run(&s);
    for (size_t i = 0; i < n; i++)
        finish_s[i] = 0;
    for (size_t i = 0; i < s.n_chunks; i++)
        finish_s[i / per] = fmax(finish_s[i / per], (double)s.chunks[i].ready * 1e-12);
done:
    free(s.chunks);
    return status;
}
