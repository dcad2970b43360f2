/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "oracle_machine.h"

#include <math.h>
#include <stdlib.h>

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

void machine_make(machine *m, const sim_network *net, double bytes, oracle_order order)
{
    *m = (machine){.o = oracle_create(fmax(4096, bytes / 4096), order), .net = net, .npus = 1};
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

void machine_free(machine *m)
{
    oracle_destroy(m->o);
    free(m->enter);
    free(m->leave);
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

transfer machine_send(const machine *m, int64_t src, int64_t dst, double bytes)
{
    path p;
    bool tie = route(m, src, dst, true, &p);
    int first = oracle_task(m->o, tie ? bytes / 2 : bytes, p.link, p.n);

    if (!tie)
        return (transfer){{first, 0}, 1};
    route(m, src, dst, false, &p);
    return (transfer){{first, oracle_task(m->o, bytes / 2, p.link, p.n)}, 2};
}

void machine_after(const machine *m, transfer t, int before, bool sent)
{
    for (int i = 0; i < t.n; i++)
        oracle_after(m->o, t.part[i], before, sent);
}

void machine_after_transfer(const machine *m, transfer t, transfer before, bool sent)
{
    for (int i = 0; i < before.n; i++)
        machine_after(m, t, before.part[i], sent);
}

void machine_round(const machine *m, transfer t, int value)
{
    for (int i = 0; i < t.n; i++)
        oracle_round(m->o, t.part[i], value);
}

void machine_leave_after(const machine *m, int64_t npu, transfer t, bool sent)
{
    for (int i = 0; i < t.n; i++)
        oracle_after(m->o, m->leave[npu], t.part[i], sent);
}

void machine_next_phase(machine *m)
{
    for (int64_t i = 0; i < m->npus; i++) {
        m->enter[i] = m->leave[i];
        m->leave[i] = oracle_task(m->o, 0, NULL, 0);
        oracle_after(m->o, m->leave[i], m->enter[i], false);
    }
}
