/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What a NPU waits for, in all of them: nothing but its own messages.  No NPU ever waits for
 * another that sends it nothing.
 * - A ring is two rings, one each way, with half of the bytes each; a member sends its next message
 *   when the one before has come and its own has gone (DESIGN 5.3).  The all-gather of an
 *   all-reduce is the same pipeline going on.  Where all members see the same, 5.3 makes a step of
 *   both ways one round: there a member goes on when both have come.  That matters on a switch
 *   alone, where both ways share a port: two rings that know nothing of each other fall out of step
 *   and are up to 1.4 times as fast in order of arrival.
 * - Rounds (direct, halving-doubling): a member goes on when its messages of a round have come and
 *   gone.  Between dimensions likewise.
 * - A message is known by its round, or step; only ORACLE_AGE looks at that. */
#include "oracle_collective.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "oracle_machine.h"

typedef struct {
    machine *m;
    int32_t algorithm;
    int64_t n;
    int64_t member[4096]; /* NPU ids */
    bool closed;          /* the way from the last member on to the first is not the longer one */
    bool uniform;         /* every member sees the same */
    wl_collective type;
    double bytes;
} phase;

/* A whole ring, where every member sees the same: rounds of messages both ways. */
static void ring_rounds(const phase *p, int64_t first, double bytes)
{
    for (int64_t s = 0; s + 1 < p->n; s++) {
        if (s > 0)
            machine_next_phase(p->m);
        for (int64_t i = 0; i < p->n; i++) {
            for (int way = 0; way < (p->n > 2 ? 2 : 1); way++) {
                int64_t from = p->member[i];
                int64_t to = p->member[(i + (way == 0 ? 1 : p->n - 1)) % p->n];
                transfer t = machine_send(p->m, from, to, bytes);
                machine_round(p->m, t, (int)(first + s));
                machine_after(p->m, t, p->m->enter[from], false);
                machine_leave_after(p->m, from, t, true);
                machine_leave_after(p->m, to, t, false);
            }
        }
    }
}

/* One direction of a ring on a line: `steps` messages of `bytes` from each member to the next. */
static void ring_direction(const phase *p, int64_t steps, double bytes, bool up)
{
    transfer *last = calloc((size_t)p->n, sizeof *last), *now = calloc((size_t)p->n, sizeof *now);

    for (int64_t s = 0; s < steps; s++) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t to = (i + (up ? 1 : p->n - 1)) % p->n, from = (i + (up ? p->n - 1 : 1)) % p->n;
            now[i] = machine_send(p->m, p->member[i], p->member[to], bytes);
            machine_round(p->m, now[i], (int)s);
            if (s == 0) {
                machine_after(p->m, now[i], p->m->enter[p->member[i]], false);
            } else {
                machine_after_transfer(p->m, now[i], last[from], false);
                machine_after_transfer(p->m, now[i], last[i], true);
            }
            machine_leave_after(p->m, p->member[to], now[i], false);
        }
        transfer *swap = last;
        last = now;
        now = swap;
    }
    free(last);
    free(now);
}

/* An all-reduce is a reduce-scatter, then an all-gather. */
static void ring(const phase *p)
{
    double share = p->bytes / (double)p->n;
    int passes = p->type == WL_ALL_REDUCE ? 2 : 1;

    if (p->n > 2 && !p->uniform) {
        ring_direction(p, passes * (p->n - 1), share / 2, true);
        ring_direction(p, passes * (p->n - 1), share / 2, false);
        return;
    }
    for (int pass = 0; pass < passes; pass++) {
        if (pass > 0)
            machine_next_phase(p->m);
        ring_rounds(p, pass * (p->n - 1), p->n == 2 ? share : share / 2);
    }
}

/* Blocks that member i passes on in step s of an all-to-all by neighbours. */
static double forwarded(const phase *p, int64_t i, int64_t s, bool up)
{
    double blocks = 0;

    if (!p->closed) {
        int64_t origin = up ? i - s : i + s;
        return origin < 0 || origin >= p->n ? 0 : (double)(up ? p->n - 1 - i : i);
    }
    for (int64_t d = s + 1; 2 * d <= p->n; d++)
        blocks += 2 * d == p->n ? 0.5 : 1;
    return blocks;
}

static void neighbours_direction(const phase *p, bool up)
{
    transfer *last = calloc((size_t)p->n, sizeof *last), *now = calloc((size_t)p->n, sizeof *now);

    for (int64_t s = 0; s < p->n; s++) {
        for (int64_t i = 0; i < p->n; i++) {
            double blocks = forwarded(p, i, s, up);
            int64_t to = (i + (up ? 1 : p->n - 1)) % p->n, from = (i + (up ? p->n - 1 : 1)) % p->n;
            now[i].n = 0;
            if (blocks <= 0)
                continue;
            now[i] =
                machine_send(p->m, p->member[i], p->member[to], blocks * p->bytes / (double)p->n);
            machine_after(p->m, now[i], p->m->enter[p->member[i]], false);
            if (s > 0) {
                machine_after_transfer(p->m, now[i], last[from], false);
                machine_after_transfer(p->m, now[i], last[i], true);
            }
            machine_leave_after(p->m, p->member[to], now[i], false);
        }
        transfer *swap = last;
        last = now;
        now = swap;
    }
    free(last);
    free(now);
}

static void neighbours(const phase *p)
{
    if (p->n == 2 && p->closed) {
        phase whole = *p;
        whole.closed = false;
        neighbours(&whole);
        return;
    }
    neighbours_direction(p, true);
    neighbours_direction(p, false);
}

/* All n-1 messages at once; twice for an all-reduce. */
static void direct(const phase *p)
{
    int rounds = p->type == WL_ALL_REDUCE ? 2 : 1;

    for (int r = 0; r < rounds; r++) {
        if (r > 0)
            machine_next_phase(p->m);
        for (int64_t distance = 1; distance < p->n; distance++) {
            for (int64_t i = 0; i < p->n; i++) {
                int64_t j = (i + distance) % p->n;
                transfer t =
                    machine_send(p->m, p->member[i], p->member[j], p->bytes / (double)p->n);
                machine_round(p->m, t, r);
                machine_after(p->m, t, p->m->enter[p->member[i]], false);
                machine_leave_after(p->m, p->member[j], t, false);
                machine_leave_after(p->m, p->member[i], t, true);
            }
        }
    }
}

/* Partner id XOR 1, 2, 4...: reduce-scatter with halves, all-gather backwards. */
static void halving_doubling(const phase *p)
{
    transfer *last = calloc((size_t)p->n, sizeof *last), *now = calloc((size_t)p->n, sizeof *now);
    int64_t offset[64], n_rounds = 0;

    if (p->type != WL_ALL_GATHER)
        for (int64_t k = 1; k < p->n; k *= 2)
            offset[n_rounds++] = k;
    if (p->type != WL_REDUCE_SCATTER)
        for (int64_t k = p->n / 2; k > 0; k /= 2)
            offset[n_rounds++] = k;
    for (int64_t r = 0; r < n_rounds; r++) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t to = i ^ offset[r];
            now[i] =
                machine_send(p->m, p->member[i], p->member[to], p->bytes / (double)(2 * offset[r]));
            machine_round(p->m, now[i], (int)r);
            machine_after(p->m, now[i], p->m->enter[p->member[i]], false);
            if (r > 0) {
                machine_after_transfer(p->m, now[i], last[i ^ offset[r - 1]], false);
                machine_after_transfer(p->m, now[i], last[i], true);
            }
            machine_leave_after(p->m, p->member[to], now[i], false);
        }
        transfer *swap = last;
        last = now;
        now = swap;
    }
    free(last);
    free(now);
}

static void run_algorithm(const phase *p)
{
    int32_t algorithm = p->algorithm;

    if (p->type == WL_ALL_TO_ALL && algorithm == SIM_ALGO_RING)
        neighbours(p);
    else if (algorithm == SIM_ALGO_RING ||
             (algorithm == SIM_ALGO_DOUBLE_BINARY_TREE && p->type != WL_ALL_TO_ALL))
        ring(p);
    else if (algorithm == SIM_ALGO_DIRECT || p->type == WL_ALL_TO_ALL)
        direct(p);
    else
        halving_doubling(p);
}

/* Every group of the machine runs the phase of one span. */
static void span_phase(machine *m, const sim_span *span, wl_collective type, double bytes)
{
    const sim_dim *dim = &m->net->dim[span->dim];
    phase *p = calloc(1, sizeof *p);
    int64_t extent = span->n * span->stride, last = extent - span->stride;

    if (p == NULL || span->n > 4096)
        abort();
    *p = (phase){.m = m, .algorithm = dim->algorithm, .n = span->n, .type = type, .bytes = bytes};
    p->closed = dim->topology == SIM_SWITCH || dim->topology == SIM_FULLY_CONNECTED ||
                (dim->topology == SIM_RING && dim->n > 2 && dim->n - last <= last);
    p->uniform = dim->topology == SIM_SWITCH || dim->topology == SIM_FULLY_CONNECTED ||
                 (dim->topology == SIM_RING && dim->n == extent);
    machine_next_phase(m);
    for (int64_t npu = 0; npu < m->npus; npu++) {
        int64_t c = npu / m->step[span->dim] % dim->n;
        if (c % extent >= span->stride || c - c % extent + extent > dim->n)
            continue;
        for (int64_t i = 0; i < span->n; i++)
            p->member[i] = npu + i * span->stride * m->step[span->dim];
        run_algorithm(p);
    }
    free(p);
}

/* The id of a mesh rank is the rank; the member after it counts the digits of the group up. */
static int64_t next_member(const sim_footprint *g, int64_t rank)
{
    int64_t stride = 1;

    for (int i = 0; i < WL_N_AXES; i++) {
        int axis = g->order >> (4 * i) & 15;
        int64_t size = g->mesh.size[axis], value = rank / stride % size;
        if ((g->axes >> axis & 1) != 0 && size > 1) {
            if (value + 1 < size)
                return rank + stride;
            rank -= value * stride;
        }
        stride *= size;
    }
    return rank;
}

/* Flat rings over groups that are no product. */
static void flat_phase(machine *m, const sim_footprint *g, wl_collective type, double bytes)
{
    phase *p = calloc(1, sizeof *p);
    int64_t used = 1;

    if (p == NULL || g->n > 4096)
        abort();
    *p = (phase){.m = m,
                 .algorithm = SIM_ALGO_RING,
                 .n = g->n,
                 .closed = true,
                 .type = type,
                 .bytes = bytes};
    for (int a = 0; a < WL_N_AXES; a++)
        used *= g->mesh.size[a];
    machine_next_phase(m);
    for (int64_t first = 0; first < used; first++) {
        int64_t rank = first;
        bool lowest = true;
        for (int64_t i = 0; i < g->n; i++, rank = next_member(g, rank)) {
            p->member[i] = rank;
            lowest = lowest && rank >= first;
        }
        if (!lowest)
            continue;
        run_algorithm(p);
    }
    free(p);
}

static void build(machine *m, const sim_footprint *g, wl_collective type, double bytes)
{
    size_t last = g->n_spans > 0 ? g->n_spans - 1 : 0;
    bool hierarchical = type == WL_ALL_REDUCE && m->net->multi_dim == SIM_HIERARCHICAL;
    double size = bytes;

    if (g->routed) {
        flat_phase(m, g, type, bytes);
        return;
    }
    if (type == WL_ALL_GATHER) {
        for (size_t i = 0; i < last; i++)
            size /= (double)g->span[i].n;
        for (size_t i = g->n_spans; i-- > 0;) {
            span_phase(m, &g->span[i], type, size);
            size *= i > 0 ? (double)g->span[i - 1].n : 1;
        }
        return;
    }
    for (size_t i = 0; i < g->n_spans; i++) {
        span_phase(m, &g->span[i], hierarchical && i < last ? WL_REDUCE_SCATTER : type, size);
        if ((hierarchical && i < last) || type == WL_REDUCE_SCATTER)
            size /= (double)g->span[i].n;
    }
    for (size_t i = last; hierarchical && i-- > 0;) {
        size *= (double)g->span[i].n;
        span_phase(m, &g->span[i], WL_ALL_GATHER, size);
    }
}

double oracle_collective_s(const sim_network *net, const sim_footprint *group, wl_collective type,
                           double bytes, oracle_order order, double moved[SIM_MAX_DIMS])
{
    double seconds;
    machine m;

    machine_make(&m, net, bytes, order);
    build(&m, group, type, bytes);
    seconds = oracle_run(m.o);
    for (size_t d = 0; moved != NULL && d < net->n_dims; d++) {
        moved[d] = 0;
        for (int64_t i = 0; i < m.npus * m.ports[d]; i++)
            moved[d] += oracle_link_bytes(m.o, m.first[d] + (int)i);
    }
    machine_free(&m);
    return seconds;
}

double oracle_boundary_s(const sim_network *net, const sim_boundary *what, oracle_order order)
{
    double seconds;
    machine m;
    int64_t stride = 1, stages = what->mesh->size[WL_PP], used = 1;

    for (int i = 0; i < WL_N_AXES; i++)
        used *= what->mesh->size[i];
    for (int i = 0; (what->order >> (4 * i) & 15) != WL_PP; i++)
        stride *= what->mesh->size[what->order >> (4 * i) & 15];
    machine_make(&m, net, what->bytes, order);
    machine_next_phase(&m);
    for (int64_t rank = 0; rank < used; rank++) {
        int64_t stage = rank / stride % stages + (what->backward ? -1 : 1);
        int64_t to = rank + (what->backward ? -stride : stride);
        if (stage < 0 || stage >= stages)
            continue;
        machine_after(&m, machine_send(&m, rank, to, what->bytes), m.enter[rank], false);
    }
    seconds = oracle_run(m.o);
    machine_free(&m);
    return seconds;
}
