/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "oracle_collective.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The machine: links of every dimension, numbered first[dim] + npu * ports[dim] + port. */
typedef struct {
    oracle *o;
    const sim_network *net;
    int64_t npus, step[SIM_MAX_DIMS]; /* NPU ids between neighbours of a dimension */
    int first[SIM_MAX_DIMS], ports[SIM_MAX_DIMS];
    int *enter, *leave; /* per NPU: joins around the phase being built */
} machine;

/* A transfer: one message, or two halves that take the two ways round a ring. */
typedef struct {
    int part[2], n;
} transfer;

typedef struct {
    machine *m;
    size_t dim;
    int64_t n;
    int64_t member[4096]; /* NPU ids */
    bool closed;          /* the way from the last member on to the first is not the longer one */
    wl_collective type;
    double bytes;
} phase;

enum { UP, DOWN, CORE }; /* ports of ring and mesh (UP, DOWN) and of a switch */

static int n_ports(const sim_dim *d)
{
    if (d->topology == SIM_FULLY_CONNECTED)
        return (int)d->n;
    return d->topology == SIM_SWITCH ? 3 : 2;
}

static double port_bandwidth(const sim_dim *d, int port)
{
    double b = d->bandwidth_bytes_per_s;

    if (d->topology == SIM_FULLY_CONNECTED)
        return b / (double)(d->n - 1);
    if (d->topology == SIM_SWITCH)
        return port == CORE ? b * (double)d->n / d->oversubscription : b;
    return d->n == 2 ? b : b / 2;
}

static void machine_build(machine *m)
{
    m->npus = 1;
    for (size_t d = 0; d < m->net->n_dims; d++) {
        m->step[d] = m->npus;
        m->npus *= m->net->dim[d].n;
    }
    for (size_t d = 0; d < m->net->n_dims; d++) {
        const sim_dim *dim = &m->net->dim[d];
        m->ports[d] = n_ports(dim);
        for (int64_t i = 0; i < m->npus * m->ports[d]; i++) {
            int port = (int)(i % m->ports[d]);
            bool core = dim->topology == SIM_SWITCH && port == CORE;
            int number = oracle_link(m->o, port_bandwidth(dim, port), core ? 0 : dim->latency_s);
            if (i == 0)
                m->first[d] = number;
        }
    }
    m->enter = calloc((size_t)m->npus, sizeof *m->enter);
    m->leave = calloc((size_t)m->npus, sizeof *m->leave);
    if (m->enter == NULL || m->leave == NULL)
        abort();
    for (int64_t i = 0; i < m->npus; i++)
        m->leave[i] = oracle_task(m->o, 0, NULL, 0);
}

static int link_of(const machine *m, size_t d, int64_t npu, int port)
{
    return m->first[d] + (int)npu * m->ports[d] + port;
}

/* Links from `src`, `count` hops up or down the dimension. */
static int walk(const machine *m, size_t d, int64_t src, int port, int64_t count, double bytes)
{
    int route[4096];
    int64_t n = m->net->dim[d].n, c = src / m->step[d] % n, base = src - c * m->step[d];

    for (int64_t i = 0; i < count; i++) {
        route[i] = link_of(m, d, base + c * m->step[d], port);
        c = (c + (port == UP ? 1 : n - 1)) % n;
    }
    return oracle_task(m->o, bytes, route, (size_t)count);
}

static transfer send_far(const machine *m, size_t d, int64_t src, int64_t dst, double bytes)
{
    const sim_dim *dim = &m->net->dim[d];
    int64_t a = src / m->step[d] % dim->n, b = dst / m->step[d] % dim->n;
    int64_t up = (b - a + dim->n) % dim->n, down = dim->n - up;
    bool ring = dim->topology == SIM_RING && dim->n > 2;

    if (!ring)
        return (transfer){{walk(m, d, src, b > a ? UP : DOWN, b > a ? b - a : a - b, bytes)}, 1};
    if (up != down)
        return (transfer){{walk(m, d, src, up < down ? UP : DOWN, up < down ? up : down, bytes)},
                          1};
    return (transfer){{walk(m, d, src, UP, up, bytes / 2), walk(m, d, src, DOWN, down, bytes / 2)},
                      2};
}

static transfer send_over(const machine *m, size_t d, int64_t src, int64_t dst, double bytes)
{
    const sim_dim *dim = &m->net->dim[d];
    int64_t a = src / m->step[d] % dim->n, b = dst / m->step[d] % dim->n;
    int route[3];
    size_t n = 1;

    if (dim->topology == SIM_FULLY_CONNECTED) {
        route[0] = link_of(m, d, src, (int)b);
    } else if (dim->topology == SIM_SWITCH) {
        route[0] = link_of(m, d, src, UP);
        if (dim->oversubscription > 1)
            route[n++] = link_of(m, d, src - a * m->step[d], CORE);
        route[n++] = link_of(m, d, dst, DOWN);
    } else {
        return send_far(m, d, src, dst, bytes);
    }
    return (transfer){{oracle_task(m->o, bytes, route, n)}, 1};
}

static void after(const machine *m, transfer t, int before, bool sent)
{
    for (int i = 0; i < t.n; i++)
        oracle_after(m->o, t.part[i], before, sent);
}

static void after_transfer(const machine *m, transfer t, transfer before, bool sent)
{
    for (int i = 0; i < before.n; i++)
        after(m, t, before.part[i], sent);
}

/* `npu` leaves the phase only when t has arrived and (as sender) has left. */
static void leave_after(const machine *m, int64_t npu, transfer t, bool sent)
{
    for (int i = 0; i < t.n; i++)
        oracle_after(m->o, m->leave[npu], t.part[i], sent);
}

/* Joins of the phase: an NPU enters when it has left the one before. */
static void next_phase(machine *m)
{
    for (int64_t i = 0; i < m->npus; i++) {
        m->enter[i] = m->leave[i];
        m->leave[i] = oracle_task(m->o, 0, NULL, 0);
        oracle_after(m->o, m->leave[i], m->enter[i], false);
    }
}

/* One direction of a ring: `steps` messages of `bytes` from each member to the next, each after the
 * one before has come and the own one has gone. */
static void ring_direction(const phase *p, int64_t steps, double bytes, bool up)
{
    transfer *last = calloc((size_t)p->n, sizeof *last), *now = calloc((size_t)p->n, sizeof *now);

    for (int64_t s = 0; s < steps; s++) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t to = (i + (up ? 1 : p->n - 1)) % p->n, from = (i + (up ? p->n - 1 : 1)) % p->n;
            now[i] = send_over(p->m, p->dim, p->member[i], p->member[to], bytes);
            if (s == 0) {
                after(p->m, now[i], p->m->enter[p->member[i]], false);
            } else {
                after_transfer(p->m, now[i], last[from], false);
                after_transfer(p->m, now[i], last[i], true);
            }
            leave_after(p->m, p->member[to], now[i], false);
        }
        transfer *swap = last;
        last = now;
        now = swap;
    }
    free(last);
    free(now);
}

static void ring(const phase *p)
{
    int64_t steps = (p->n - 1) * (p->type == WL_ALL_REDUCE ? 2 : 1);
    double share = p->bytes / (double)p->n;

    if (p->n == 2) {
        ring_direction(p, steps, share, true);
        return;
    }
    ring_direction(p, steps, share / 2, true);
    ring_direction(p, steps, share / 2, false);
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
            now[i] = send_over(p->m, p->dim, p->member[i], p->member[to],
                               blocks * p->bytes / (double)p->n);
            after(p->m, now[i], p->m->enter[p->member[i]], false);
            if (s > 0) {
                after_transfer(p->m, now[i], last[from], false);
                after_transfer(p->m, now[i], last[i], true);
            }
            leave_after(p->m, p->member[to], now[i], false);
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
            next_phase(p->m);
        for (int64_t i = 0; i < p->n; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                if (i == j)
                    continue;
                transfer t =
                    send_over(p->m, p->dim, p->member[i], p->member[j], p->bytes / (double)p->n);
                after(p->m, t, p->m->enter[p->member[i]], false);
                leave_after(p->m, p->member[j], t, false);
                leave_after(p->m, p->member[i], t, true);
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
            now[i] = send_over(p->m, p->dim, p->member[i], p->member[to],
                               p->bytes / (double)(2 * offset[r]));
            after(p->m, now[i], p->m->enter[p->member[i]], false);
            if (r > 0) {
                after_transfer(p->m, now[i], last[i ^ offset[r - 1]], false);
                after_transfer(p->m, now[i], last[i], true);
            }
            leave_after(p->m, p->member[to], now[i], false);
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
    int32_t algorithm = p->m->net->dim[p->dim].algorithm;

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
    *p = (phase){.m = m, .dim = span->dim, .n = span->n, .type = type, .bytes = bytes};
    p->closed = dim->topology == SIM_SWITCH || dim->topology == SIM_FULLY_CONNECTED ||
                (dim->topology == SIM_RING && dim->n > 2 && dim->n - last <= last);
    next_phase(m);
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

static void build(machine *m, const sim_footprint *g, wl_collective type, double bytes)
{
    size_t last = g->n_spans - 1;
    bool hierarchical = type == WL_ALL_REDUCE && m->net->multi_dim == SIM_HIERARCHICAL;
    double size = bytes;

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
                           double bytes, oracle_arbitration arbitration, double moved[SIM_MAX_DIMS])
{
    double packet = fmax(4096, bytes / 4096), seconds;
    machine m = {.o = oracle_create(packet, arbitration), .net = net};

    machine_build(&m);
    build(&m, group, type, bytes);
    seconds = oracle_run(m.o);
    for (size_t d = 0; moved != NULL && d < net->n_dims; d++) {
        moved[d] = 0;
        for (int64_t i = 0; i < m.npus * m.ports[d]; i++)
            moved[d] += oracle_link_bytes(m.o, m.first[d] + (int)i);
    }
    oracle_destroy(m.o);
    free(m.enter);
    free(m.leave);
    return seconds;
}
