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
    int32_t algorithm;
    int64_t n;
    int64_t member[4096]; /* NPU ids */
    bool closed;          /* the way from the last member on to the first is not the longer one */
    bool uniform;         /* every member sees the same */
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

/* A route being put together. */
typedef struct {
    int link[4096];
    size_t n;
} path;

static bool is_tie(const sim_dim *dim, int64_t a, int64_t b)
{
    return dim->topology == SIM_RING && dim->n > 2 && 2 * llabs(a - b) == dim->n;
}

/* Appends the links of one dimension from coordinate a to b; `high` takes a tie upwards. */
static void cross(const machine *m, size_t d, int64_t base, int64_t a, int64_t b, bool high,
                  path *out)
{
    const sim_dim *dim = &m->net->dim[d];
    int64_t n = dim->n, up = (b - a + n) % n;
    bool go_up = dim->topology == SIM_RING && n > 2 ? 2 * up < n || (2 * up == n && high) : b > a;

    if (dim->topology == SIM_FULLY_CONNECTED) {
        out->link[out->n++] = link_of(m, d, base + a * m->step[d], (int)b);
    } else if (dim->topology == SIM_SWITCH) {
        out->link[out->n++] = link_of(m, d, base + a * m->step[d], UP);
        if (dim->oversubscription > 1)
            out->link[out->n++] = link_of(m, d, base, CORE);
        out->link[out->n++] = link_of(m, d, base + b * m->step[d], DOWN);
    } else {
        for (; a != b; a = (a + (go_up ? 1 : n - 1)) % n)
            out->link[out->n++] = link_of(m, d, base + a * m->step[d], go_up ? UP : DOWN);
    }
}

/* Dimension-ordered route from NPU to NPU; returns true when a dimension was a tie. */
static bool route(const machine *m, int64_t src, int64_t dst, bool high, path *out)
{
    bool tie = false;

    out->n = 0;
    for (size_t d = 0; d < m->net->n_dims; d++) {
        int64_t n = m->net->dim[d].n;
        int64_t a = src / m->step[d] % n, b = dst / m->step[d] % n;
        if (a == b)
            continue;
        cross(m, d, src - a * m->step[d], a, b, high, out);
        tie = tie || is_tie(&m->net->dim[d], a, b);
        src += (b - a) * m->step[d];
    }
    return tie;
}

static transfer send_over(const machine *m, int64_t src, int64_t dst, double bytes)
{
    path p;
    bool tie = route(m, src, dst, true, &p);
    int first = oracle_task(m->o, tie ? bytes / 2 : bytes, p.link, p.n);

    if (!tie)
        return (transfer){{first, 0}, 1};
    route(m, src, dst, false, &p);
    return (transfer){{first, oracle_task(m->o, bytes / 2, p.link, p.n)}, 2};
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

static void rank(const machine *m, transfer t, int value)
{
    for (int i = 0; i < t.n; i++)
        oracle_rank(m->o, t.part[i], value);
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

/* A whole ring, where every member sees the same: rounds of messages both ways, each round of a
 * member after all messages of the one before have come. */
static void ring_rounds(const phase *p, int64_t first, double bytes, bool both)
{
    for (int64_t s = 0; s + 1 < p->n; s++) {
        if (s > 0)
            next_phase(p->m);
        for (int64_t i = 0; i < p->n; i++) {
            for (int way = 0; way < (both ? 2 : 1); way++) {
                int64_t from = p->member[i];
                int64_t to = p->member[(i + (way == 0 ? 1 : p->n - 1)) % p->n];
                transfer t = send_over(p->m, from, to, bytes);
                rank(p->m, t, (int)(first + s));
                after(p->m, t, p->m->enter[from], false);
                leave_after(p->m, from, t, true);
                leave_after(p->m, to, t, false);
            }
        }
    }
}

/* One direction of a ring on a line: `steps` messages of `bytes` from each member to the next, each
 * after the one before has come and the own one has gone. Local traffic goes before the messages
 * that close the ring over all hops. */
static void ring_direction(const phase *p, int64_t first, double bytes, bool up)
{
    int64_t steps = p->n - 1;
    transfer *last = calloc((size_t)p->n, sizeof *last), *now = calloc((size_t)p->n, sizeof *now);

    for (int64_t s = 0; s < steps; s++) {
        for (int64_t i = 0; i < p->n; i++) {
            int64_t to = (i + (up ? 1 : p->n - 1)) % p->n, from = (i + (up ? p->n - 1 : 1)) % p->n;
            now[i] = send_over(p->m, p->member[i], p->member[to], bytes);
            rank(p->m, now[i], (int)(first + s + (to == i + (up ? 1 : -1) ? 0 : steps)));
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

/* An all-reduce is a reduce-scatter, then an all-gather that a member enters when it holds its own
 * share. */
static void ring(const phase *p)
{
    double share = p->bytes / (double)p->n;
    int passes = p->type == WL_ALL_REDUCE ? 2 : 1;

    for (int pass = 0; pass < passes; pass++) {
        int64_t first = 2 * pass * (p->n - 1);
        if (pass > 0)
            next_phase(p->m);
        if (p->n == 2 || p->uniform) {
            ring_rounds(p, first, p->n == 2 ? share : share / 2, p->n > 2);
        } else {
            ring_direction(p, first, share / 2, true);
            ring_direction(p, first, share / 2, false);
        }
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
            now[i] = send_over(p->m, p->member[i], p->member[to], blocks * p->bytes / (double)p->n);
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
        for (int64_t distance = 1; distance < p->n; distance++) {
            for (int64_t i = 0; i < p->n; i++) {
                int64_t j = (i + distance) % p->n;
                transfer t = send_over(p->m, p->member[i], p->member[j], p->bytes / (double)p->n);
                rank(p->m, t, r);
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
            now[i] =
                send_over(p->m, p->member[i], p->member[to], p->bytes / (double)(2 * offset[r]));
            rank(p->m, now[i], (int)r);
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
    next_phase(m);
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

double oracle_boundary_s(const sim_network *net, const sim_boundary *what,
                         oracle_arbitration arbitration)
{
    double packet = fmax(4096, what->bytes / 4096), seconds;
    machine m = {.o = oracle_create(packet, arbitration), .net = net};
    int64_t stride = 1, stages = what->mesh->size[WL_PP], used = 1;

    for (int i = 0; i < WL_N_AXES; i++)
        used *= what->mesh->size[i];
    for (int i = 0; (what->order >> (4 * i) & 15) != WL_PP; i++)
        stride *= what->mesh->size[what->order >> (4 * i) & 15];
    machine_build(&m);
    next_phase(&m);
    for (int64_t rank = 0; rank < used; rank++) {
        int64_t stage = rank / stride % stages + (what->backward ? -1 : 1);
        int64_t to = rank + (what->backward ? -stride : stride);
        if (stage < 0 || stage >= stages)
            continue;
        after(&m, send_over(&m, rank, to, what->bytes), m.enter[rank], false);
    }
    seconds = oracle_run(m.o);
    oracle_destroy(m.o);
    free(m.enter);
    free(m.leave);
    return seconds;
}
