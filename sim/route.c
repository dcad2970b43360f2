/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One round of messages of all sibling groups, routed over the individual links of a dimension
 * (DESIGN 5.3).  Ring and mesh: two links a NPU, half the bandwidth each (two NPUs: one link of all
 * of it), shortest way, the opposite node of an even ring half each way.  Fully connected: a link
 * of 1/(N-1) for each pair.  Switch: up and down at full bandwidth, two hops, and the fabric, which
 * passes 1/oversubscription of what all can send.
 * Loads are range additions in difference arrays: O(1) a message, O(N) a round. */
#include "sim/network_private.h"

#include <stdlib.h>
#include <string.h>

enum { UP, DOWN, N_WAYS };

struct sim__round {
    sim__place place;
    double link_share;      /* of the bandwidth of a NPU: link = bandwidth * share */
    double *load[N_WAYS];   /* N + 1; differences until closed, then loads (in bytes) */
    int64_t *leap[N_WAYS];  /* furthest message that starts at a coordinate */
    int64_t *land[N_WAYS];  /* furthest message that ends there */
    double even[N_WAYS];    /* load of every link alike, from shifts */
    int64_t reach[N_WAYS];  /* of messages that start at every coordinate */
    double total;           /* bytes, all siblings */
    sim__envelope messages; /* their own lines */
};

bool sim__place_closed(const sim__place *p)
{
    int64_t first_to_last = (p->n - 1) * p->stride;

    if (p->topology == SIM_SWITCH || p->topology == SIM_FULLY_CONNECTED)
        return true;
    return p->topology == SIM_RING && p->N > 2 && p->N - first_to_last <= first_to_last;
}

bool sim__place_uniform(const sim__place *p)
{
    if (p->topology == SIM_SWITCH || p->topology == SIM_FULLY_CONNECTED || p->n == 2)
        return true;
    return p->topology == SIM_RING && p->N == p->n * p->stride;
}

static bool is_line(const sim__place *p)
{
    return p->topology == SIM_RING || p->topology == SIM_MESH;
}

double sim__place_hops(const sim__place *p, int64_t src, int64_t dst)
{
    int64_t way = src > dst ? src - dst : dst - src;

    if (!is_line(p))
        return p->topology == SIM_SWITCH ? 2 : 1;
    return (double)(p->topology == SIM_RING && p->N - way < way ? p->N - way : way);
}

static double share_of_link(const sim__place *p)
{
    if (p->topology == SIM_FULLY_CONNECTED)
        return 1 / (double)(p->N - 1);
    return is_line(p) && p->N > 2 ? 0.5 : 1;
}

void sim__round_clear(sim__round *r)
{
    size_t n = (size_t)r->place.N + 1;

    for (int w = 0; w < N_WAYS; w++) {
        memset(r->load[w], 0, n * sizeof *r->load[w]);
        memset(r->leap[w], 0, n * sizeof *r->leap[w]);
        memset(r->land[w], 0, n * sizeof *r->land[w]);
        r->even[w] = 0;
        r->reach[w] = 0;
    }
    r->total = 0;
    r->messages.n = 0;
}

sim__round *sim__round_create(const sim__place *place)
{
    size_t n = (size_t)place->N + 1;
    sim__round *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->place = *place;
    r->link_share = share_of_link(place);
    r->load[0] = calloc(N_WAYS * n, sizeof(double));
    r->leap[0] = calloc(2 * N_WAYS * n, sizeof(int64_t));
    if (r->load[0] == NULL || r->leap[0] == NULL) {
        sim__round_destroy(r);
        return NULL;
    }
    for (size_t w = 0; w < N_WAYS; w++) {
        r->load[w] = r->load[0] + w * n;
        r->leap[w] = r->leap[0] + w * n;
        r->land[w] = r->leap[0] + (N_WAYS + w) * n;
    }
    return r;
}

void sim__round_destroy(sim__round *r)
{
    if (r == NULL)
        return;
    free(r->load[0]);
    free(r->leap[0]);
    free(r);
}

static void most(int64_t *a, int64_t b)
{
    if (b > *a)
        *a = b;
}

/* Links are numbered by the lower coordinate: UP link c goes from c to c+1, DOWN link c back. */
static void add_range(sim__round *r, int way, int64_t first, int64_t hops, double bytes)
{
    int64_t N = r->place.N, end = first + hops;
    double *load = r->load[way];

    load[first] += bytes;
    if (end <= N) {
        load[end] -= bytes;
    } else {
        load[N] -= bytes;
        load[0] += bytes;
        load[end - N] -= bytes;
    }
}

static void add_way(sim__round *r, int way, int64_t src, int64_t dst, double bytes)
{
    int64_t N = r->place.N, hops = way == UP ? (dst - src + N) % N : (src - dst + N) % N;

    add_range(r, way, way == UP ? src : dst, hops, bytes);
    r->total += bytes;
    most(&r->leap[way][src], hops);
    most(&r->land[way][dst], hops);
    sim__envelope_add(&r->messages, (double)hops, bytes / r->link_share);
}

static void send_line(sim__round *r, int64_t src, int64_t dst, double bytes)
{
    int64_t N = r->place.N, up = (dst - src + N) % N, down = N - up;

    if (r->place.topology == SIM_MESH || N == 2) {
        add_way(r, dst > src ? UP : DOWN, src, dst, bytes);
    } else if (up != down) {
        add_way(r, up < down ? UP : DOWN, src, dst, bytes);
    } else {
        add_way(r, UP, src, dst, bytes / 2);
        add_way(r, DOWN, src, dst, bytes / 2);
    }
}

static int64_t n_blocks(const sim__place *p)
{
    return p->N / (p->n * p->stride);
}

void sim__round_send(sim__round *r, int64_t from, int64_t to, double bytes)
{
    const sim__place *p = &r->place;
    int64_t extent = p->n * p->stride, blocks = n_blocks(p);

    if (!is_line(p)) {
        r->total += bytes * (double)(blocks * p->stride);
        r->load[UP][from] += bytes;
        r->load[DOWN][to] += bytes;
        if (p->topology == SIM_FULLY_CONNECTED)
            sim__envelope_add(&r->messages, 1, bytes / r->link_share);
        return;
    }
    for (int64_t first = 0; first < blocks * extent; first += extent)
        for (int64_t s = 0; s < p->stride; s++)
            send_line(r, first + s + from * p->stride, first + s + to * p->stride, bytes);
}

/* Every member of a whole ring sends `hops` the same way: all links get the same. */
static void shift_way(sim__round *r, int way, int64_t hops, double bytes)
{
    r->even[way] += (double)hops * bytes;
    most(&r->reach[way], hops);
    sim__envelope_add(&r->messages, (double)hops, bytes / r->link_share);
}

/* On a switch or between all pairs every member sends and receives one message. */
static void shift_star(sim__round *r, double bytes)
{
    const sim__place *p = &r->place;

    r->total += bytes * (double)(n_blocks(p) * p->stride * p->n);
    r->even[UP] += bytes;
    r->even[DOWN] += bytes;
    if (p->topology == SIM_FULLY_CONNECTED)
        sim__envelope_add(&r->messages, 1, bytes / r->link_share);
}

void sim__round_shift(sim__round *r, int64_t distance, double bytes)
{
    const sim__place *p = &r->place;
    int64_t up = distance * p->stride, down = p->N - up;

    if (!is_line(p)) {
        shift_star(r, bytes);
        return;
    }
    if (p->topology != SIM_RING || p->N == 2 || p->N != p->n * p->stride) {
        for (int64_t i = 0; i < p->n; i++)
            sim__round_send(r, i, (i + distance) % p->n, bytes);
        return;
    }
    if (up <= down)
        shift_way(r, UP, up, up == down ? bytes / 2 : bytes);
    if (down <= up)
        shift_way(r, DOWN, down, up == down ? bytes / 2 : bytes);
}

static int64_t wrap(int64_t c, int64_t N)
{
    return c < 0 ? c + N : c >= N ? c - N : c;
}

/* Fewest hops that a message on the UP or DOWN link `link` has behind it and ahead of it. */
static double fewest_around(const sim__round *r, int way, int64_t link)
{
    int64_t N = r->place.N, step = way == UP ? 1 : -1;
    int64_t tail = way == UP ? link : wrap(link + 1, N), head = wrap(tail + step, N);
    int64_t behind = 0, ahead = 0;

    if (r->reach[way] > 0)
        return 0;
    while (behind < N && r->leap[way][wrap(tail - step * behind, N)] <= behind)
        behind++;
    while (ahead < N && r->land[way][wrap(head + step * ahead, N)] <= ahead)
        ahead++;
    return (double)(behind + ahead);
}

static void close_line(sim__round *r, int way, sim__envelope *out)
{
    double sum = 0, *load = r->load[way];

    for (int64_t c = 0; c < r->place.N; c++) {
        sum += load[c];
        load[c] = sum + r->even[way];
    }
    for (int64_t c = 0; c < r->place.N; c++)
        if (load[c] > 1e-12 * r->total)
            sim__envelope_add(out, 1 + fewest_around(r, way, c), load[c] / r->link_share);
}

static void close_switch(sim__round *r, sim__envelope *out)
{
    double fabric = r->total * r->place.oversubscription / (double)r->place.N;

    for (int w = 0; w < N_WAYS; w++)
        for (int64_t c = 0; c < r->place.n; c++) {
            r->load[w][c] += r->even[w];
            if (r->load[w][c] > 0)
                sim__envelope_add(out, 2, r->load[w][c]);
        }
    if (r->place.oversubscription > 1)
        sim__envelope_add(out, 2, fabric);
}

void sim__round_time(sim__round *r, sim__envelope *out)
{
    *out = r->messages;
    sim__envelope_reduce(out);
    if (is_line(&r->place)) {
        close_line(r, UP, out);
        close_line(r, DOWN, out);
    } else if (r->place.topology == SIM_SWITCH) {
        close_switch(r, out);
    }
    sim__envelope_reduce(out);
}

double sim__round_busiest(const sim__round *r)
{
    const sim__place *p = &r->place;
    double busiest = 0;
    int64_t n = is_line(p) ? p->N : p->n;

    if (p->topology == SIM_FULLY_CONNECTED) {
        for (size_t i = 0; i < r->messages.n; i++)
            if (r->messages.line[i].load > busiest)
                busiest = r->messages.line[i].load;
        return busiest;
    }
    for (int w = 0; w < N_WAYS; w++)
        for (int64_t c = 0; c < n; c++)
            if (r->load[w][c] / r->link_share > busiest)
                busiest = r->load[w][c] / r->link_share;
    if (p->topology == SIM_SWITCH && p->oversubscription > 1) {
        double fabric = r->total * p->oversubscription / (double)p->N;
        busiest = fabric > busiest ? fabric : busiest;
    }
    return busiest;
}

/* Busiest link of the shortest way between two coordinates of a line or ring. */
static double busiest_between(const sim__round *r, int64_t src, int64_t dst)
{
    int64_t N = r->place.N, up = (dst - src + N) % N;
    bool down = r->place.topology == SIM_RING && N > 2 ? 2 * up > N : dst < src;
    int64_t hops = (int64_t)sim__place_hops(&r->place, src, dst);
    double busiest = 0;

    for (int64_t i = 0; i < hops; i++) {
        int64_t link = wrap((down ? dst : src) + i, N);
        double load = r->load[down ? DOWN : UP][link] / r->link_share;
        busiest = load > busiest ? load : busiest;
    }
    return busiest;
}

double sim__round_busiest_of(const sim__round *r, int64_t from, int64_t to)
{
    const sim__place *p = &r->place;
    double busiest = 0;

    if (!is_line(p))
        return sim__round_busiest(r);
    for (int64_t s = 0; s < p->stride; s++) {
        double b = busiest_between(r, s + from * p->stride, s + to * p->stride);
        busiest = b > busiest ? b : busiest;
    }
    return busiest;
}
