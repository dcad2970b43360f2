/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Event-driven packets over links.  A packet occupies a link for bytes/bandwidth; its head reaches
 * the next link one latency after it started, so that a message is serialized once however many
 * hops it has (cut-through).  Links are work-conserving: one that is free and has a packet waiting
 * sends at once. */
#include "oracle.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double bytes_per_s, latency_s, carried;
    bool busy;
    int *waiting; /* task numbers with packets ready here, unordered */
    size_t n_waiting, capacity;
} link;

/* Progress of a message at one of its links. */
typedef struct {
    int link;
    int64_t ready, sent; /* packets that have come, that have started */
    double since;        /* when its first waiting packet came or the last one was sent */
    double *came;        /* ORACLE_FIFO: when each packet came (at the sender: all of them) */
} hop;

typedef struct edge {
    int task;
    bool sent;
} edge;

typedef struct {
    double bytes, arrival;
    int64_t packets, arrived;
    size_t first_hop, n_hops;
    edge *edges;
    size_t n_edges, capacity;
    int waits, round;
    bool started;
} task;

typedef enum { PACKET_ARRIVED, PACKET_READY, LINK_FREE } event_kind;

typedef struct {
    double at;
    int64_t seq; /* ties: in order of insertion */
    int kind, task, hop;
} event;

struct oracle {
    double packet_bytes, now;
    oracle_order order;
    link *links;
    task *tasks;
    hop *hops;
    event *heap;
    size_t n_links, n_tasks, n_hops, n_heap;
    size_t cap_links, cap_tasks, cap_hops, cap_heap;
    size_t n_done;
    int64_t seq;
};

static void *grow(void *array, size_t *capacity, size_t n, size_t size)
{
    if (n < *capacity)
        return array;
    *capacity = *capacity == 0 ? 16 : 2 * *capacity;
    array = realloc(array, *capacity * size);
    if (array == NULL) {
        fprintf(stderr, "oracle: out of memory\n");
        abort();
    }
    return array;
}

oracle *oracle_create(double packet_bytes, oracle_order order)
{
    oracle *o = calloc(1, sizeof *o);

    if (o == NULL)
        abort();
    o->packet_bytes = packet_bytes;
    o->order = order;
    return o;
}

void oracle_destroy(oracle *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->n_links; i++)
        free(o->links[i].waiting);
    for (size_t i = 0; i < o->n_tasks; i++)
        free(o->tasks[i].edges);
    for (size_t i = 0; i < o->n_hops; i++)
        free(o->hops[i].came);
    free(o->links);
    free(o->tasks);
    free(o->hops);
    free(o->heap);
    free(o);
}

int oracle_link(oracle *o, double bytes_per_s, double latency_s)
{
    o->links = grow(o->links, &o->cap_links, o->n_links, sizeof *o->links);
    o->links[o->n_links] = (link){.bytes_per_s = bytes_per_s, .latency_s = latency_s};
    return (int)o->n_links++;
}

int oracle_task(oracle *o, double bytes, const int *route, size_t n_hops)
{
    task t = {.bytes = bytes, .arrival = NAN, .first_hop = o->n_hops, .n_hops = n_hops};

    t.packets = (int64_t)ceil(bytes / o->packet_bytes);
    if (t.packets < 1)
        t.packets = 1;
    for (size_t i = 0; i < n_hops; i++) {
        o->hops = grow(o->hops, &o->cap_hops, o->n_hops, sizeof *o->hops);
        o->hops[o->n_hops++] = (hop){.link = route[i]};
    }
    o->tasks = grow(o->tasks, &o->cap_tasks, o->n_tasks, sizeof *o->tasks);
    o->tasks[o->n_tasks] = t;
    return (int)o->n_tasks++;
}

void oracle_after(oracle *o, int which, int before, bool sent)
{
    task *b = &o->tasks[before];

    b->edges = grow(b->edges, &b->capacity, b->n_edges, sizeof *b->edges);
    b->edges[b->n_edges++] = (edge){which, sent};
    o->tasks[which].waits++;
}

void oracle_round(oracle *o, int which, int round)
{
    o->tasks[which].round = round;
}

static bool event_before(const event *a, const event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void push(oracle *o, double at, event_kind kind, int which, int at_hop)
{
    event e = {at, o->seq++, (int)kind, which, at_hop};
    size_t i;

    o->heap = grow(o->heap, &o->cap_heap, o->n_heap, sizeof *o->heap);
    for (i = o->n_heap++; i > 0 && event_before(&e, &o->heap[(i - 1) / 2]); i = (i - 1) / 2)
        o->heap[i] = o->heap[(i - 1) / 2];
    o->heap[i] = e;
}

static event pop(oracle *o)
{
    event top = o->heap[0], last = o->heap[--o->n_heap];
    size_t i = 0;

    for (size_t child = 1; child < o->n_heap; child = 2 * i + 1) {
        if (child + 1 < o->n_heap && event_before(&o->heap[child + 1], &o->heap[child]))
            child++;
        if (!event_before(&o->heap[child], &last))
            break;
        o->heap[i] = o->heap[child];
        i = child;
    }
    o->heap[i] = last;
    return top;
}

static double packet_size(const oracle *o, const task *t, int64_t index)
{
    double left = t->bytes - (double)index * o->packet_bytes;

    return left < o->packet_bytes ? left : o->packet_bytes;
}

static void notify(oracle *o, int which, bool sent);

static void start(oracle *o, int which)
{
    task *t = &o->tasks[which];

    if (t->started)
        return;
    t->started = true;
    if (t->n_hops == 0) {
        t->arrival = o->now;
        o->n_done++;
        notify(o, which, true);
        notify(o, which, false);
        return;
    }
    push(o, o->now, PACKET_READY, which, 0);
}

static void notify(oracle *o, int which, bool sent)
{
    for (size_t i = 0; i < o->tasks[which].n_edges; i++) {
        edge e = o->tasks[which].edges[i];
        if (e.sent == sent && --o->tasks[e.task].waits == 0)
            start(o, e.task);
    }
}

/* Larger goes first, after the round. */
static double urgency(const oracle *o, int which, const link *l)
{
    const task *t = &o->tasks[which];
    const hop *h = &o->hops[t->first_hop];
    size_t at = 0;
    double ahead = 0;

    while (&o->links[h[at].link] != l)
        at++;
    if (o->order == ORACLE_FAIR)
        return -h[at].since;
    if (o->order == ORACLE_FIFO)
        return -h[at].came[at == 0 ? 0 : h[at].sent];
    for (size_t i = at; i < t->n_hops; i++)
        ahead += o->links[h[i].link].latency_s;
    return ahead + (t->bytes - (double)h[at].sent * o->packet_bytes) / l->bytes_per_s;
}

static int choose(oracle *o, link *l)
{
    size_t best = 0;
    double most = urgency(o, l->waiting[0], l);

    for (size_t i = 1; i < l->n_waiting; i++) {
        const task *a = &o->tasks[l->waiting[i]], *b = &o->tasks[l->waiting[best]];
        double u = urgency(o, l->waiting[i], l);
        bool before = u != most ? u > most : l->waiting[i] < l->waiting[best];
        if (o->order == ORACLE_AGE && a->round != b->round)
            before = a->round < b->round;
        if (before) {
            best = i;
            most = u;
        }
    }
    return (int)best;
}

/* Puts a packet of the message whose turn it is on a free link. */
static void serve(oracle *o, int number)
{
    link *l = &o->links[number];
    int slot, which, at = 0;
    task *t;
    hop *h;
    double size, end;

    if (l->busy || l->n_waiting == 0)
        return;
    slot = choose(o, l);
    which = l->waiting[slot];
    t = &o->tasks[which];
    h = &o->hops[t->first_hop];
    while (h[at].link != number)
        at++;
    size = packet_size(o, t, h[at].sent++);
    if (h[at].sent == h[at].ready)
        l->waiting[slot] = l->waiting[--l->n_waiting];
    h[at].since = o->now;
    end = o->now + size / l->bytes_per_s;
    l->busy = true;
    l->carried += size;
    push(o, end, LINK_FREE, which, at);
    if ((size_t)at + 1 == t->n_hops) {
        push(o, end + l->latency_s, PACKET_ARRIVED, which, at);
    } else {
        double next = o->links[h[at + 1].link].bytes_per_s;
        double head = o->now + l->latency_s, tail = end + l->latency_s - size / next;
        push(o, head > tail ? head : tail, PACKET_READY, which, at + 1);
    }
}

/* Packets of a message come to a link: all at once to that of the sender, else one by one. */
static void arrive(oracle *o, event e, link *l)
{
    const task *t = &o->tasks[e.task];
    hop *h = &o->hops[t->first_hop + (size_t)e.hop];

    if (h->ready == h->sent) {
        l->waiting = grow(l->waiting, &l->capacity, l->n_waiting, sizeof *l->waiting);
        l->waiting[l->n_waiting++] = e.task;
        h->since = o->now;
    }
    if (o->order == ORACLE_FIFO && h->came == NULL) {
        h->came = calloc(e.hop == 0 ? 1 : (size_t)t->packets, sizeof *h->came);
        if (h->came == NULL)
            abort();
    }
    if (o->order == ORACLE_FIFO)
        h->came[h->ready] = o->now;
    h->ready += e.hop == 0 ? t->packets : 1;
}

static void handle(oracle *o, event e)
{
    task *t = &o->tasks[e.task];
    const hop *h = &o->hops[t->first_hop + (size_t)e.hop];
    link *l = &o->links[h->link];

    if (e.kind == PACKET_READY) {
        arrive(o, e, l);
    } else if (e.kind == LINK_FREE) {
        l->busy = false;
        if (e.hop == 0 && h->sent == t->packets)
            notify(o, e.task, true);
    } else if (++t->arrived == t->packets) {
        t->arrival = o->now;
        o->n_done++;
        notify(o, e.task, false);
    }
}

/* Events at one instant are all seen before any link chooses; 0.1 ps absorbs rounding. */
static size_t handle_instant(oracle *o, int *touched, size_t limit)
{
    double until = o->heap[0].at + 1e-13;
    size_t n = 0;

    while (n < limit && o->n_heap > 0 && o->heap[0].at <= until) {
        event e = pop(o);
        o->now = e.at;
        handle(o, e);
        touched[n++] = o->hops[o->tasks[e.task].first_hop + (size_t)e.hop].link;
    }
    return n;
}

double oracle_run(oracle *o)
{
    enum { BATCH = 4096 };
    int touched[BATCH];

    for (size_t i = 0; i < o->n_tasks; i++)
        if (o->tasks[i].waits == 0)
            start(o, (int)i);
    while (o->n_heap > 0) {
        size_t n = handle_instant(o, touched, BATCH);
        for (size_t i = 0; i < n; i++)
            serve(o, touched[i]);
    }
    return o->n_done == o->n_tasks ? o->now : NAN;
}

double oracle_arrival(const oracle *o, int which)
{
    return o->tasks[which].arrival;
}

double oracle_link_bytes(const oracle *o, int number)
{
    return o->links[number].carried;
}
