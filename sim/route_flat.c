/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Groups that are no product of parts of dimensions: a flat ring over their members in placement
 * order, and pipeline boundaries of such stages.  Messages are routed dimension by dimension over
 * the links of the whole machine, all groups at once; those that cost the same are one class. */
#include "sim/route_flat.h"
#include "sim/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t MOST_PORTS = INT64_C(1) << 24;

typedef struct {
    const sim__flat_key *key;
    sim__layout layout;
    int64_t step[SIM_MAX_DIMS]; /* NPU ids between neighbours */
    int ports[SIM_MAX_DIMS];
    double *load[SIM_MAX_DIMS]; /* by NPU and port, over the bandwidth of the dimension */
    sim__flat *out;
} flat_build;

enum { UP, DOWN, FABRIC };

void sim__flat_destroy(sim__flat *list)
{
    while (list != NULL) {
        sim__flat *next = list->next;
        free(list->class);
        free(list->count);
        free(list->walk);
        free(list);
        list = next;
    }
}

/* ---- routing ---- */

/* Adds bytes to a link, or notes its load. */
static void visit(const flat_build *b, size_t d, int64_t npu, int port, double weighted,
                  sim__flat_class *seen)
{
    double *load = &b->load[d][npu * b->ports[d] + port];

    if (seen == NULL) {
        *load += weighted;
        return;
    }
    seen->load[d] = fmax(seen->load[d], *load);
    seen->own[d] = fmax(seen->own[d], weighted);
}

/* `hops` links up or down from an NPU. */
typedef struct {
    int64_t npu, hops;
    int way;
} stretch;

static void walk_way(const flat_build *b, size_t d, stretch s, double weighted,
                     sim__flat_class *seen)
{
    int64_t N = b->key->n[d], c = s.npu / b->step[d] % N, base = s.npu - c * b->step[d];

    for (int64_t i = 0; i < s.hops; i++) {
        visit(b, d, base + c * b->step[d], s.way, weighted, seen);
        c = (c + (s.way == UP ? 1 : N - 1)) % N;
    }
}

static void walk_line(const flat_build *b, size_t d, int64_t npu, int64_t to, double bytes,
                      sim__flat_class *seen)
{
    int64_t N = b->key->n[d], c = npu / b->step[d] % N, up = (to - c + N) % N, down = N - up;
    double weighted = N > 2 ? 2 * bytes : bytes;

    if (b->key->topology[d] == SIM_MESH || N == 2) {
        stretch way = {npu, to > c ? to - c : c - to, to > c ? UP : DOWN};
        walk_way(b, d, way, weighted, seen);
        return;
    }
    if (up <= down)
        walk_way(b, d, (stretch){npu, up, UP}, up == down ? weighted / 2 : weighted, seen);
    if (down <= up)
        walk_way(b, d, (stretch){npu, down, DOWN}, up == down ? weighted / 2 : weighted, seen);
}

static void walk_switch(const flat_build *b, size_t d, int64_t npu, int64_t to, double bytes,
                        sim__flat_class *seen)
{
    int64_t N = b->key->n[d], c = npu / b->step[d] % N, base = npu - c * b->step[d];

    visit(b, d, npu, UP, bytes, seen);
    visit(b, d, base + to * b->step[d], DOWN, bytes, seen);
    if (b->key->oversubscription[d] > 1)
        visit(b, d, base, FABRIC, bytes * b->key->oversubscription[d] / (double)N, seen);
}

/* One message over all dimensions. */
static void walk(const flat_build *b, int64_t src, int64_t dst, double bytes, sim__flat_class *seen)
{
    int64_t at = src;

    for (size_t d = 0; d < (size_t)b->key->n_dims; d++) {
        int64_t N = b->key->n[d], from = at / b->step[d] % N, to = dst / b->step[d] % N;
        sim__place place = {.topology = b->key->topology[d], .N = N, .n = N, .stride = 1};
        if (from == to)
            continue;
        if (seen != NULL)
            seen->hops[d] = sim__place_hops(&place, from, to);
        if (place.topology == SIM_SWITCH)
            walk_switch(b, d, at, to, bytes, seen);
        else if (place.topology == SIM_FULLY_CONNECTED)
            visit(b, d, at, (int)to, bytes * (double)(N - 1), seen);
        else
            walk_line(b, d, at, to, bytes, seen);
        at += (to - from) * b->step[d];
    }
}

/* ---- rings and boundaries ---- */

/* The member after (or before) `rank`: its digits of the group counted up (or down) by one. */
static int64_t neighbour(const flat_build *b, int64_t rank, bool before)
{
    for (size_t i = 0; i < b->layout.n; i++) {
        const sim__digit *d = &b->layout.digit[i];
        int64_t value = rank / d->stride % d->size;
        bool carry = before ? value == 0 : value + 1 == d->size;
        if ((d->axis & b->key->axes) == 0)
            continue;
        if (!carry)
            return rank + (before ? -d->stride : d->stride);
        rank += (before ? 1 : -1) * (d->size - 1) * d->stride;
    }
    return rank;
}

static bool starts_group(const flat_build *b, int64_t rank)
{
    for (size_t i = 0; i < b->layout.n; i++)
        if ((b->layout.digit[i].axis & b->key->axes) != 0 &&
            rank / b->layout.digit[i].stride % b->layout.digit[i].size != 0)
            return false;
    return true;
}

/* Where the message of `rank` across the boundary goes; -1: the last (first) stage sends none. */
static int64_t across(const flat_build *b, int64_t rank)
{
    bool back = b->key->boundary == 2;
    int64_t to = neighbour(b, rank, back);

    return (back ? to < rank : to > rank) ? to : -1;
}

static void add_loads(const flat_build *b)
{
    for (int64_t rank = 0; rank < b->layout.used; rank++) {
        int64_t next = neighbour(b, rank, false), before = neighbour(b, rank, true);
        if (b->key->boundary != 0) {
            int64_t to = across(b, rank);
            if (to >= 0)
                walk(b, rank, to, 1, NULL);
            continue;
        }
        walk(b, rank, next, next == before ? 1 : 0.5, NULL);
        if (next != before)
            walk(b, rank, before, 0.5, NULL);
    }
}

/* Number of the class of a message; past the limit it is merged into the last, upwards. */
static size_t class_of(sim__flat *f, const sim__flat_class *m)
{
    sim__flat_class *last;

    for (size_t i = 0; i < f->n_classes; i++)
        if (memcmp(&f->class[i], m, sizeof *m) == 0)
            return i;
    if (f->n_classes < SIM__FLAT_CLASSES) {
        f->class[f->n_classes] = *m;
        return f->n_classes++;
    }
    last = &f->class[SIM__FLAT_CLASSES - 1];
    for (size_t d = 0; d < SIM_MAX_DIMS; d++) {
        last->hops[d] = fmax(last->hops[d], m->hops[d]);
        last->load[d] = fmax(last->load[d], m->load[d]);
        last->own[d] = fmax(last->own[d], m->own[d]);
    }
    return SIM__FLAT_CLASSES - 1;
}

/* A group's messages: how many of each class, and one after the other around the ring. */
typedef struct {
    double count[SIM__FLAT_CLASSES];
    uint8_t walk[SIM__FLAT_WALK];
    size_t n;
} group_messages;

static void add_message(group_messages *m, size_t class)
{
    m->count[class]++;
    if (m->n < SIM__FLAT_WALK)
        m->walk[m->n] = (uint8_t) class;
    else
        m->walk[0] = SIM__FLAT_NO_WALK;
    m->n++;
}

static void keep_group(sim__flat *f, const group_messages *m)
{
    double *last = &f->count[(SIM__FLAT_GROUPS - 1) * SIM__FLAT_CLASSES];

    for (size_t g = 0; g < f->n_groups; g++)
        if (memcmp(&f->count[g * SIM__FLAT_CLASSES], m->count, sizeof m->count) == 0 &&
            memcmp(&f->walk[g * SIM__FLAT_WALK], m->walk, sizeof m->walk) == 0)
            return;
    if (f->n_groups < SIM__FLAT_GROUPS) {
        memcpy(&f->walk[f->n_groups * SIM__FLAT_WALK], m->walk, sizeof m->walk);
        memcpy(&f->count[f->n_groups++ * SIM__FLAT_CLASSES], m->count, sizeof m->count);
        return;
    }
    for (size_t c = 0; c < SIM__FLAT_CLASSES; c++)
        last[c] = fmax(last[c], m->count[c]);
    f->walk[(SIM__FLAT_GROUPS - 1) * SIM__FLAT_WALK] = SIM__FLAT_NO_WALK;
}

static size_t classify(const flat_build *b, int64_t from, int64_t to)
{
    sim__flat_class m = {{0}, {0}, {0}};

    walk(b, from, to, b->key->boundary != 0 ? 1 : 0.5, &m);
    return class_of(b->out, &m);
}

static void classify_groups(const flat_build *b)
{
    for (int64_t first = 0; first < b->layout.used; first++) {
        group_messages m = {{0}, {0}, 0};
        int64_t rank = first;
        if (!starts_group(b, first))
            continue;
        do {
            int64_t next = neighbour(b, rank, false);
            add_message(&m, classify(b, rank, next));
            rank = next;
        } while (rank != first);
        keep_group(b->out, &m);
    }
}

static void classify_boundary(const flat_build *b)
{
    for (int64_t rank = 0; rank < b->layout.used; rank++)
        if (across(b, rank) >= 0)
            (void)classify(b, rank, across(b, rank));
}

static cs_status allocate(flat_build *b, cs_error *err)
{
    sim__flat *f = b->out;
    int64_t step = 1;

    f->class = calloc(SIM__FLAT_CLASSES, sizeof *f->class);
    f->count = calloc((size_t)SIM__FLAT_GROUPS * SIM__FLAT_CLASSES, sizeof *f->count);
    f->walk = calloc((size_t)SIM__FLAT_GROUPS * SIM__FLAT_WALK, sizeof *f->walk);
    f->bytes = sizeof *f + SIM__FLAT_CLASSES * sizeof *f->class +
               (size_t)SIM__FLAT_GROUPS * SIM__FLAT_CLASSES * sizeof *f->count +
               (size_t)SIM__FLAT_GROUPS * SIM__FLAT_WALK * sizeof *f->walk;
    if (f->class == NULL || f->count == NULL || f->walk == NULL)
        return cs_fail(err, CS_ENOMEM, "a routed ring");
    for (size_t d = 0; d < (size_t)b->key->n_dims; d++) {
        bool full = b->key->topology[d] == SIM_FULLY_CONNECTED;
        b->step[d] = step;
        step *= b->key->n[d];
        b->ports[d] = full ? (int)b->key->n[d] : 3;
        if (b->layout.npus > MOST_PORTS / b->ports[d])
            return cs_fail(err, CS_EINVAL, "network: %lld NPUs are too many to route a ring over",
                           (long long)b->layout.npus);
        b->load[d] = calloc((size_t)(b->layout.npus * b->ports[d]), sizeof *b->load[d]);
        if (b->load[d] == NULL)
            return cs_fail(err, CS_ENOMEM, "a routed ring");
    }
    return CS_OK;
}

static sim__flat_key make_key(const sim__plan *p, int boundary)
{
    sim__flat_key key;

    memset(&key, 0, sizeof key);
    key.n_dims = (int32_t)p->net->n_dims;
    for (size_t d = 0; d < p->net->n_dims; d++) {
        key.n[d] = p->net->dim[d].n;
        key.topology[d] = p->net->dim[d].topology;
        key.oversubscription[d] = p->net->dim[d].oversubscription;
    }
    memcpy(key.mesh, p->group->mesh.size, sizeof key.mesh);
    key.order = p->group->order;
    key.axes = p->group->axes;
    key.boundary = boundary;
    return key;
}

static cs_status build(const sim__plan *p, const sim__flat_key *key, sim__flat **out, cs_error *err)
{
    flat_build b = {.key = key};
    cs_status status = CS_OK;

    b.out = calloc(1, sizeof *b.out);
    if (b.out == NULL)
        return cs_fail(err, CS_ENOMEM, "a routed ring");
    b.out->key = *key;
    CS_TRY(sim__layout_make(p->net, &p->group->mesh, p->group->order, &b.layout, err));
    CS_TRY(allocate(&b, err));
    add_loads(&b);
    if (key->boundary != 0)
        classify_boundary(&b);
    else
        classify_groups(&b);
    *out = b.out;
    b.out = NULL;
done:
    for (size_t d = 0; d < SIM_MAX_DIMS; d++)
        free(b.load[d]);
    sim__flat_destroy(b.out);
    return status;
}

cs_status sim__flat_find(const sim__plan *p, int boundary, const sim__flat **out, cs_error *err)
{
    sim__flat_key key = make_key(p, boundary);
    sim__flat **list = sim__route_flats(p->cache, &key, sizeof key), *f = *list;
    cs_status status = CS_OK;

    for (; f != NULL && memcmp(&f->key, &key, sizeof key) != 0; f = f->next)
        continue;
    if (f == NULL) {
        CS_TRY(build(p, &key, &f, err));
        sim__route_charge(p->cache, f->bytes);
        list = sim__route_flats(p->cache, &key, sizeof key);
        f->next = *list;
        *list = f;
    }
    *out = f;
done:
    return status;
}
