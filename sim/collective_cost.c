/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Algorithms as rounds (DESIGN 5.3, table): ring (Patarasuk and Yuan, JPDC 69(2), 2009), recursive
 * halving and doubling (Thakur et al., IJHPCA 19(1), 2005), double binary tree (Sanders et al.,
 * Parallel Computing 35(12), 2009), direct.  Bytes are shares of the whole tensor.  The cold path:
 * results are kept by the route cache. */
#include "sim/network_private.h"

#include <math.h>
#include <stdlib.h>

/* What a builder works on. */
typedef struct {
    const sim__place *place;
    sim__round *round;
    int32_t kind;
    sim__cost *out;
    cs_status *status;
} job;

typedef void (*builder)(const job *j);

static double share(const job *j)
{
    return 1 / (double)j->place->n;
}

static double most_of_it(const job *j)
{
    return (double)(j->place->n - 1) * share(j);
}

static void account(const job *j, double messages, double reduced, double sent)
{
    j->out->messages += messages;
    j->out->reduced += reduced;
    j->out->sent += sent;
}

/* Closes the round at hand, appends it `times` and clears it. */
static void play(const job *j, double times)
{
    sim__envelope e;

    sim__round_time(j->round, &e);
    sim__envelope_append(&j->out->steady, &e, times);
    sim__round_clear(j->round);
}

static bool gathers(const job *j)
{
    return j->kind == WL_ALL_GATHER || j->kind == SIM__PAIRED_GATHER;
}

/* Passes of an all-reduce: reduce-scatter and all-gather. */
static double passes(const job *j)
{
    return j->kind == WL_ALL_REDUCE ? 2 : 1;
}

static void account_passes(const job *j, double messages)
{
    account(j, passes(j) * messages, gathers(j) ? 0 : most_of_it(j), passes(j) * most_of_it(j));
}

/* One step of a ring, both ways (two members: one message each). */
static void ring_step(const job *j)
{
    if (j->place->n == 2) {
        sim__round_shift(j->round, 1, share(j));
        return;
    }
    sim__round_shift(j->round, 1, share(j) / 2);
    sim__round_shift(j->round, j->place->n - 1, share(j) / 2);
}

/* A message over k sibling groups' links: k siblings share each of them, so that it waits for all
 * of them once, or for its own all the way. */
static void message_lines(const job *j, double hops, double load, sim__envelope *out)
{
    double k = (double)j->place->stride;

    *out = (sim__envelope){0};
    sim__envelope_add(out, hops, load / k);
    sim__envelope_add(out, hops / k, load);
    sim__envelope_reduce(out);
}

/* One pass of a ring on a line: step s+1 of a member starts when the message of step s has come and
 * its own is sent; the last message has to go all the way back.  With a for a message to the next
 * member and w for that one, the longest walk of n-1 steps is (n-2) a + w. */
static void line_pass(const job *j, sim__envelope *pass)
{
    int64_t n = j->place->n, k = j->place->stride;
    double load = 0;
    sim__envelope e;

    *pass = (sim__envelope){0};
    ring_step(j);
    sim__round_time(j->round, &e);
    for (int64_t i = 0; i + 1 < n; i++)
        load = fmax(load, sim__round_busiest_of(j->round, i, i + 1));
    message_lines(j, (double)k, load, &e);
    sim__envelope_append(pass, &e, (double)(n - 2));
    message_lines(j, sim__place_hops(j->place, (n - 1) * k, 0),
                  fmax(load, sim__round_busiest_of(j->round, n - 1, 0)), &e);
    sim__envelope_append(pass, &e, 1);
    sim__round_clear(j->round);
}

/* Both passes of an all-reduce: members start the second one when they hold their share, while the
 * last messages of the first are on their way back.  That saves the least of these lines, in
 * latencies and messages that have a link to themselves: what the per-NPU recurrence gives in links
 * that serve in order of arrival (read off tests/oracle.c: exact up to n = 16, 1 % up to 40); where
 * k siblings share them half of the first, where the ring closes the short way nothing. */
static void line_both_passes(const job *j, const sim__envelope *pass, sim__envelope *both)
{
    double m = (double)(j->place->n - 1), own = share(j);
    bool alone = j->place->stride == 1, closed = sim__place_closed(j->place);
    const sim__line saved[] = {{alone ? 2 * m : m, 0}, {m, 1}, {2, 2}, {0, m}};

    *both = (sim__envelope){0};
    for (size_t s = 0; s < sizeof saved / sizeof *saved; s++)
        for (size_t i = 0; i < pass->n && !closed; i++)
            sim__envelope_add(both, 2 * pass->line[i].hops - saved[s].hops,
                              2 * pass->line[i].load - own * saved[s].load);
    sim__envelope_reduce(both);
    if (closed)
        sim__envelope_append(both, pass, 2);
}

static void ring_on_line(const job *j)
{
    bool half = j->kind == SIM__PAIRED_SCATTER || j->kind == SIM__PAIRED_GATHER;
    sim__envelope pass, both;

    line_pass(j, &pass);
    line_both_passes(j, &pass, &both);
    if (half || j->kind == WL_ALL_REDUCE)
        sim__envelope_append(&j->out->steady, &both, half ? 0.5 : 1);
    else
        sim__envelope_append(&j->out->steady, &pass, 1);
}

static void ring(const job *j)
{
    account_passes(j, (double)(j->place->n - 1));
    if (!sim__place_uniform(j->place)) {
        ring_on_line(j);
        return;
    }
    ring_step(j);
    play(j, passes(j) * (double)(j->place->n - 1));
}

/* All-to-all by neighbours: in step s each passes on, both ways, the blocks that have further to
 * go: those of distances s..n/2 on a closed ring (half of the opposite one each way). */
static void neighbours_closed(const job *j)
{
    int64_t n = j->place->n;
    sim__envelope unit;

    ring_step(j);
    sim__round_time(j->round, &unit);
    sim__round_clear(j->round);
    for (int64_t s = 1; 2 * s <= n; s++) {
        double blocks = (double)(n / 2 - s + 1) - (n % 2 == 0 ? 0.5 : 0);
        sim__envelope step = unit;
        sim__envelope_scale(&step, n == 2 ? 1 : 2 * blocks);
        sim__envelope_append(&j->out->steady, &step, 1);
        account(j, 1, 0, n == 2 ? share(j) : 2 * blocks * share(j));
    }
}

/* On a line member p passes n-1-p blocks on in each of its p+1 steps; the longest walk starts at an
 * end and moves on every step: sum over q = n-1..1 of a step of q blocks. */
static void neighbours_on_line(const job *j)
{
    int64_t n = j->place->n;
    sim__envelope unit;

    for (int64_t i = 0; i + 1 < n; i++)
        sim__round_send(j->round, i, i + 1, share(j));
    sim__round_time(j->round, &unit);
    sim__round_clear(j->round);
    for (int64_t q = 1; q < n; q++) {
        sim__envelope step = unit;
        sim__envelope_scale(&step, (double)q);
        sim__envelope_append(&j->out->steady, &step, 1);
    }
    account(j, (double)(n - 1), 0, (double)(n * n - 1) / 3 * share(j));
}

static void neighbours(const job *j)
{
    if (sim__place_closed(j->place))
        neighbours_closed(j);
    else
        neighbours_on_line(j);
}

/* Everybody to everybody at once. */
static void direct(const job *j)
{
    for (int64_t d = 1; d < j->place->n; d++)
        sim__round_shift(j->round, d, share(j));
    play(j, passes(j));
    account_passes(j, 1);
}

static void direct_all_to_all(const job *j)
{
    direct(j);
    j->out->reduced = 0;
}

/* A member to or from all others at once; scatter and gather a share each, broadcast and reduce
 * everything.  Reversing all messages reverses no time: routes and links are symmetric. */
static void star(const job *j)
{
    bool whole = j->kind == WL_BROADCAST || j->kind == WL_REDUCE;
    double bytes = whole ? 1 : share(j);

    for (int64_t i = 1; i < j->place->n; i++)
        sim__round_send(j->round, 0, i, bytes);
    play(j, 1);
    account(j, 1, j->kind == WL_REDUCE ? (double)(j->place->n - 1) : 0, bytes * most_of_it(j));
}

static void halving_round(const job *j, int64_t offset, double times)
{
    for (int64_t i = 0; i < j->place->n; i++)
        sim__round_send(j->round, i, i ^ offset, 0.5 / (double)offset);
    play(j, times);
}

static void halving_doubling(const job *j)
{
    double rounds = 0;

    for (int64_t offset = 1; offset < j->place->n; offset *= 2, rounds++)
        halving_round(j, offset, passes(j));
    account_passes(j, rounds);
}

/* Scatter by halves: those that hold data send the larger part to the nearest partner first. */
static void halving_scatter(const job *j)
{
    for (int64_t offset = 1; offset < j->place->n; offset *= 2) {
        for (int64_t i = 0; i < offset; i++)
            sim__round_send(j->round, i, i + offset, 0.5 / (double)offset);
        play(j, 1);
        account(j, 1, 0, 0.5 * share(j));
    }
}

/* Broadcast: scatter, all-gather; reduce: reduce-scatter, gather. */
static void halving_whole(const job *j)
{
    halving_scatter(j);
    for (int64_t offset = 1; offset < j->place->n; offset *= 2) {
        halving_round(j, offset, 1);
        account(j, 1, 0, 0.5 / (double)offset);
    }
    j->out->reduced = j->kind == WL_REDUCE ? most_of_it(j) : 0;
}

/* Slices down a chain of members, both ways round with half each where the ring closes. */
static void chain(const job *j)
{
    int64_t n = j->place->n;
    bool both = sim__place_closed(j->place) && n > 2;
    double hops = 0;

    for (int64_t i = 0; i + 1 < n; i++) {
        sim__round_send(j->round, i, i + 1, both ? 0.5 : 1);
        if (both)
            sim__round_send(j->round, (n - i) % n, n - 1 - i, 0.5);
    }
    for (int64_t i = 0; i < n; i++)
        if (both || i + 1 < n)
            hops = fmax(hops, sim__place_hops(j->place, i * j->place->stride,
                                              (i + 1) % n * j->place->stride));
    sim__round_time(j->round, &(sim__envelope){0});
    j->out->steps = (double)(n - 1);
    j->out->slice_hops = hops;
    j->out->slice_load = sim__round_busiest(j->round);
    account(j, 0, j->kind == WL_REDUCE ? 1 : 0, most_of_it(j));
}

/* ---- double binary tree ---- */

typedef struct {
    int64_t from, to;
    double bytes;
} message;

static int by_ends(const void *a, const void *b)
{
    const message *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to == y->to ? 0 : x->to < y->to ? -1 : 1;
}

/* Parent in the in-order tree of n nodes: node 0 is the root; the lowest set bit of a node is its
 * height, its parent has the next higher one, on the side where there is a node. */
static int64_t tree_parent(int64_t node, int64_t n)
{
    int64_t bit = node & -node, up = (node ^ bit) | (bit << 1);

    return up >= n ? node ^ bit : up;
}

/* The second tree: mirrored for even n, shifted by one for odd n. */
static int64_t second_tree(int64_t node, int64_t n)
{
    return n % 2 == 0 ? n - 1 - node : (node + 1) % n;
}

/* Messages over the edges of both trees, half the bytes each: up and down for an all-reduce.  The
 * root of a broadcast (or reduction) is that of the first tree; it hands half to the root of the
 * second one and needs nothing back. */
static size_t tree_messages(int64_t n, bool up, bool down, message *out)
{
    size_t count = 0;
    int64_t root = second_tree(0, n);

    for (int64_t node = 1; node < n; node++) {
        for (int tree = 0; tree < 2; tree++) {
            int64_t child = tree == 1 ? second_tree(node, n) : node;
            int64_t parent = tree_parent(node, n);
            parent = tree == 1 ? second_tree(parent, n) : parent;
            if (up && (down || child != 0))
                out[count++] = (message){child, parent, 0.5};
            if (down && (up || child != 0))
                out[count++] = (message){parent, child, 0.5};
        }
    }
    if (up != down)
        out[count++] = up ? (message){root, 0, 0.5} : (message){0, root, 0.5};
    return count;
}

/* Sends each pair's bytes as one message, so that a private link sees their sum. */
static double send_merged(const job *j, message *m, size_t count)
{
    double hops = 0;

    qsort(m, count, sizeof *m, by_ends);
    for (size_t i = 0; i < count;) {
        size_t next = i + 1;
        double bytes = m[i].bytes;
        for (; next < count && by_ends(&m[i], &m[next]) == 0; next++)
            bytes += m[next].bytes;
        sim__round_send(j->round, m[i].from, m[i].to, bytes);
        hops = fmax(hops, sim__place_hops(j->place, m[i].from * j->place->stride,
                                          m[i].to * j->place->stride));
        i = next;
    }
    return hops;
}

static void double_tree(const job *j)
{
    int64_t n = j->place->n;
    bool both = j->kind == WL_ALL_REDUCE;
    double depth = 0;
    message *m = calloc(4 * (size_t)n, sizeof *m);

    if (m == NULL) {
        *j->status = CS_ENOMEM;
        return;
    }
    for (int64_t reach = 1; reach < n; reach *= 2)
        depth++;
    j->out->slice_hops = send_merged(
        j, m, tree_messages(n, both || j->kind == WL_REDUCE, both || j->kind == WL_BROADCAST, m));
    free(m);
    sim__round_time(j->round, &(sim__envelope){0});
    j->out->steps = both ? 2 * depth : depth + 1;
    j->out->slice_load = sim__round_busiest(j->round);
    account(j, 0, j->kind == WL_BROADCAST ? 0 : 1, (both ? 2 : 1) * most_of_it(j));
}

/* ---- the switch reduces ---- */

/* One round up and down: an all-reduce, a reduction or a broadcast moves everything once. */
static void switch_whole(const job *j)
{
    sim__envelope_add(&j->out->steady, 2, fmax(1, j->place->oversubscription));
    account(j, 1, 0, 1);
}

static void switch_shares(const job *j)
{
    direct(j);
    j->out->reduced = 0;
}

/* ---- shifts ---- */

static void shift(const job *j)
{
    int64_t n = j->place->n;

    for (int64_t i = 0; i + 1 < n; i++)
        sim__round_send(j->round, i, i + 1, 1);
    if (j->kind == SIM__SHIFT_WRAP && n > 2)
        sim__round_send(j->round, n - 1, 0, 1);
    if (j->kind == SIM__SHIFT_WRAP && n == 2)
        sim__round_send(j->round, 1, 0, 1);
    play(j, 1);
    account(j, 1, 0, 1);
}

static const builder builders[SIM_N_ALGOS][SIM__N_KINDS] = {
    [SIM_ALGO_RING] = {ring, ring, ring, neighbours, chain, chain, star, star, shift, shift, ring,
                       ring},
    [SIM_ALGO_DIRECT] = {direct, direct, direct, direct_all_to_all, star, star, star, star, shift,
                         shift, direct, direct},
    [SIM_ALGO_HALVING_DOUBLING] = {halving_doubling, halving_doubling, halving_doubling,
                                   direct_all_to_all, halving_whole, halving_whole, halving_scatter,
                                   halving_scatter, shift, shift, halving_doubling,
                                   halving_doubling},
    [SIM_ALGO_DOUBLE_BINARY_TREE] = {double_tree, ring, ring, direct_all_to_all, double_tree,
                                     double_tree, star, star, shift, shift, ring, ring},
};

/* What a reducing switch does itself; NULL: as the algorithm says. */
static const builder reducing_switch[SIM__N_KINDS] = {
    switch_whole, switch_shares, switch_shares, NULL, switch_whole,  switch_whole,
    NULL,         NULL,          NULL,          NULL, switch_shares, switch_shares};

/* Largest number of messages a round is routed for one by one. */
static const int64_t MOST_MESSAGES = INT64_C(1) << 26;

static cs_status check(const sim__place *p, int32_t algorithm, cs_error *err)
{
    if (p->N < 2 || p->N > SIM__MAX_NPUS || p->n < 2 || p->stride < 1 || p->n > p->N / p->stride)
        return cs_fail(err, CS_EINVAL,
                       "network: a group of %lld, %lld apart, in a dimension of %lld",
                       (long long)p->n, (long long)p->stride, (long long)p->N);
    if (algorithm == SIM_ALGO_HALVING_DOUBLING && (p->n & (p->n - 1)) != 0)
        return cs_fail(err, CS_EINVAL,
                       "halving_doubling needs a power of two, the group has %lld NPUs",
                       (long long)p->n);
    if (!sim__place_uniform(p) && p->n > MOST_MESSAGES / p->N)
        return cs_fail(err, CS_EINVAL, "network: %lld of %lld NPUs on a line are too many to route",
                       (long long)p->n, (long long)p->N);
    return CS_OK;
}

/* No cost may promise more than the links carry (DESIGN 5.3): without latency, one byte at one byte
 * a second. */
static cs_status check_bound(const job *j, cs_error *err)
{
    const sim__place *p = j->place;
    sim_dim dim = {.topology = p->topology,
                   .n = p->N,
                   .bandwidth_bytes_per_s = 1,
                   .oversubscription = p->oversubscription,
                   .in_network_reduction = p->reduces};
    sim_span span = {0, p->n, p->stride};
    double load = j->out->steps > 0 ? j->out->slice_load : 0;
    double bound;

    if (j->kind >= WL_N_COLLECTIVES)
        return CS_OK;
    bound = sim_collective_bound_s(&dim, &span, (wl_collective)j->kind, 1);
    for (size_t i = 0; i < j->out->steady.n; i++)
        load = fmax(load, j->out->steady.line[i].load);
    if (load < bound * (1 - 1e-9))
        return cs_fail(err, CS_EINTERNAL, "%s of %lld NPUs: %g of the bytes where %g must pass",
                       sim_topology_names[p->topology], (long long)p->n, load, bound);
    return CS_OK;
}

cs_status sim__cost_build(const sim__place *place, int32_t algorithm, int32_t kind, sim__cost *out,
                          cs_error *err)
{
    bool in_network = place->topology == SIM_SWITCH && place->reduces;
    cs_status status = check(place, algorithm, err);
    job j = {place, NULL, kind, out, &status};

    if (status != CS_OK)
        return status;
    *out = (sim__cost){0};
    j.round = sim__round_create(place);
    if (j.round == NULL)
        return cs_fail(err, CS_ENOMEM, "rounds of a dimension of %lld NPUs", (long long)place->N);
    if (in_network && reducing_switch[kind] != NULL)
        reducing_switch[kind](&j);
    else
        builders[algorithm][kind](&j);
    sim__round_destroy(j.round);
    return status == CS_OK ? check_bound(&j, err) : cs_fail(err, status, "rounds of a tree");
}
