/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which ranks of a trace are provably alike.  Two ranks are when they run the same nodes in the
 * same order, and what each meets is alike too: the ranks before and after it in every group, which
 * its ring hears of, at the same distances, and the other side of every message.  Classes are found
 * by colour refinement (Cardon and Crochemore, "Partitioning a graph in O(|A| log |V|)", Theor.
 * Comput. Sci. 19(1), 1982) over hashes, and then proved by comparing every rank with the first of
 * its class.
 *
 * One rank stands for each class.  They must be closed: in every group of one that stands, whoever
 * stands for a class of its members is a member, and the other side of its messages stands too.
 * So the ones that stand are a job of their own, in which a member that does not stand starts when
 * the one of its class does. */
#include "sim/cluster_fold.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 256

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return cs_mix64(hash ^ (value + 0x9e3779b97f4a7c15ULL + (hash << 6)));
}

/* ---- what a rank does by itself ---- */

/* Values of a node that its time depends on. */
static uint64_t node_hash(const sim__search *s, uint32_t i)
{
    const wl_trace *trace = s->c->trace;
    const wl_trace_node *node = &trace->node[i];
    const uint32_t first = trace->rank[s->c->rank_of[i]].first;
    uint64_t hash = mix((uint64_t)node->type << 24 | (uint64_t)node->comm << 16 |
                            (uint64_t)node->flags << 8 | node->involved,
                        s->c->order[i]);

    hash = mix(hash, (uint64_t)node->duration_ps);
    hash = mix(hash, (uint64_t)node->num_ops);
    hash = mix(hash, (uint64_t)node->tensor_size);
    hash = mix(hash, (uint64_t)node->comm_size);
    hash = mix(hash, (uint64_t)(uint32_t)node->splits << 32 | s->label[i]);
    for (uint32_t e = trace->dep_first[i]; e < trace->dep_first[i + 1]; e++)
        hash = mix(hash, trace->dep[e] - first);
    return hash;
}

static bool same_node(const sim__search *s, uint32_t a, uint32_t b)
{
    const wl_trace *trace = s->c->trace;
    const wl_trace_node *x = &trace->node[a], *y = &trace->node[b];
    const uint32_t shift = b - a, *dep = trace->dep_first; /* wraps: so do the sums below */
    const uint32_t n = dep[a + 1] - dep[a];

    if (x->type != y->type || x->comm != y->comm || x->flags != y->flags ||
        x->involved != y->involved || x->duration_ps != y->duration_ps ||
        x->num_ops != y->num_ops || x->tensor_size != y->tensor_size ||
        x->comm_size != y->comm_size || x->splits != y->splits || s->label[a] != s->label[b] ||
        s->c->order[a] != s->c->order[b] || dep[b + 1] - dep[b] != n)
        return false;
    for (uint32_t e = 0; e < n; e++)
        if (trace->dep[dep[a] + e] + shift != trace->dep[dep[b] + e])
            return false;
    return true;
}

static uint64_t program_hash(const sim__search *s, uint32_t r)
{
    const wl_trace_rank *rank = &s->c->trace->rank[r];
    const bool slow = s->c->options->slow_factor > 0.0 && s->c->options->slow_rank == r;
    uint64_t hash = mix(rank->n, slow);

    for (uint32_t i = rank->first; i < rank->first + rank->n; i++)
        hash = mix(hash, node_hash(s, i));
    for (uint32_t k = s->use_first[r]; k < s->use_first[r + 1]; k++)
        hash = mix(hash, s->c->trace->group[s->uses[k].group].n);
    return hash;
}

/* ---- classes ---- */

static int by_hash(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] < y[1] ? -1 : x[1] > y[1]);
}

/* Numbers classes by the hashes in `key`; returns how many. */
static uint32_t number_classes(sim__search *s)
{
    uint32_t n = 0;

    qsort(s->key, s->n, sizeof *s->key, by_hash);
    for (uint32_t k = 0; k < s->n; k++) {
        n += k == 0 || s->key[k][0] != s->key[k - 1][0];
        s->next_class[s->key[k][1]] = n - 1;
    }
    memcpy(s->fold->class_, s->next_class, s->n * sizeof *s->next_class);
    return n;
}

static uint64_t refined_hash(const sim__search *s, uint32_t r)
{
    const uint32_t *class_ = s->fold->class_;
    uint64_t hash = mix(0, class_[r]);

    for (uint32_t k = s->use_first[r]; k < s->use_first[r + 1]; k++) {
        const sim__use *u = &s->uses[k];
        if (u->before == SIM__NONE)
            continue;
        hash = mix(hash, (uint64_t)class_[u->before] << 32 | u->before_label);
        hash = mix(hash, (uint64_t)class_[u->after] << 32 | u->after_label);
        hash = mix(mix(hash, u->before_hops), u->after_hops);
    }
    for (uint32_t k = s->side_first[r]; k < s->side_first[r + 1]; k++) {
        const sim__side *e = &s->sides[k];
        hash = mix(mix(hash, class_[e->peer]), e->hops);
        hash = mix(hash, (uint64_t)e->first_send << 32 | e->first_receive);
    }
    return hash;
}

/* Splits classes until nothing changes; false when there are too many to be worth it. */
static bool refine(sim__search *s)
{
    uint32_t n, before = 0;

    for (uint32_t r = 0; r < s->n; r++) {
        s->key[r][0] = program_hash(s, r);
        s->key[r][1] = r;
    }
    n = number_classes(s);
    for (int round = 0; n != before; round++) {
        if (2 * n > s->n || round == MAX_ROUNDS)
            return false;
        for (uint32_t r = 0; r < s->n; r++) {
            s->key[r][0] = refined_hash(s, r);
            s->key[r][1] = r;
        }
        before = n;
        n = number_classes(s);
    }
    s->fold->n_classes = n;
    return true;
}

/* ---- the proof ---- */

static bool same_uses(const sim__search *s, uint32_t a, uint32_t b)
{
    const uint32_t n = s->use_first[a + 1] - s->use_first[a], *class_ = s->fold->class_;
    const wl_trace_group *group = s->c->trace->group;

    if (s->use_first[b + 1] - s->use_first[b] != n)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        const sim__use *x = &s->uses[s->use_first[a] + k], *y = &s->uses[s->use_first[b] + k];
        if (x->label != y->label || group[x->group].n != group[y->group].n ||
            (x->before == SIM__NONE) != (y->before == SIM__NONE))
            return false;
        if (x->before == SIM__NONE)
            continue;
        if (class_[x->before] != class_[y->before] || class_[x->after] != class_[y->after] ||
            x->before_label != y->before_label || x->after_label != y->after_label ||
            x->before_hops != y->before_hops || x->after_hops != y->after_hops)
            return false;
    }
    return true;
}

static bool same_sides(const sim__search *s, uint32_t a, uint32_t b)
{
    const uint32_t n = s->side_first[a + 1] - s->side_first[a];

    if (s->side_first[b + 1] - s->side_first[b] != n)
        return false;
    for (uint32_t k = 0; k < n; k++) {
        const sim__side *x = &s->sides[s->side_first[a] + k], *y = &s->sides[s->side_first[b] + k];
        if (x->node != y->node || s->fold->class_[x->peer] != s->fold->class_[y->peer] ||
            x->first_send != y->first_send || x->first_receive != y->first_receive ||
            x->hops != y->hops)
            return false;
    }
    return true;
}

static bool are_alike(const sim__search *s, uint32_t a, uint32_t b)
{
    const wl_trace_rank *x = &s->c->trace->rank[a], *y = &s->c->trace->rank[b];
    const bool any_slow = s->c->options->slow_factor > 0.0;

    if (x->n != y->n ||
        (any_slow && (s->c->options->slow_rank == a) != (s->c->options->slow_rank == b)))
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (!same_node(s, x->first + i, y->first + i))
            return false;
    return same_uses(s, a, b) && same_sides(s, a, b);
}

static bool prove(sim__search *s)
{
    sim__fold *fold = s->fold;

    memset(fold->rep, 0xff, s->n * sizeof *fold->rep);
    for (uint32_t r = 0; r < s->n; r++) {
        uint32_t *first = &fold->rep[fold->class_[r]];
        fold->size[fold->class_[r]]++;
        if (*first == SIM__NONE)
            *first = r;
        else if (!are_alike(s, *first, r))
            return false;
    }
    return true;
}

/* ---- who stands for a class ---- */

/* Lets `rank` stand for its class unless one does. */
static void stand(sim__search *s, uint32_t rank, uint32_t *queue, uint32_t *n)
{
    uint32_t *rep = &s->fold->rep[s->fold->class_[rank]];

    if (*rep != SIM__NONE)
        return;
    *rep = rank;
    queue[(*n)++] = rank;
}

/* Those whom a standing rank meets stand first. */
static void choose(sim__search *s, uint32_t *queue)
{
    uint32_t n = 0, done = 0;

    memset(s->fold->rep, 0xff, s->n * sizeof *s->fold->rep);
    for (uint32_t r = 0; r < s->n; r++) {
        stand(s, r, queue, &n);
        for (; done < n; done++) {
            const uint32_t q = queue[done];
            for (uint32_t k = s->use_first[q]; k < s->use_first[q + 1]; k++) {
                const wl_trace_group *group = &s->c->trace->group[s->uses[k].group];
                for (uint32_t j = 0; s->uses[k].before != SIM__NONE && j < group->n; j++)
                    stand(s, group->rank[j], queue, &n);
            }
            for (uint32_t k = s->side_first[q]; k < s->side_first[q + 1]; k++)
                stand(s, s->sides[k].peer, queue, &n);
        }
    }
}

/* Each class of the group of a standing rank is stood for inside it; mark: by rank, scratch. */
static bool group_is_closed(const sim__search *s, const sim__use *u, uint32_t *mark, uint32_t token)
{
    const wl_trace_group *group = &s->c->trace->group[u->group];
    const sim__fold *fold = s->fold;

    if (u->before == SIM__NONE)
        return true;
    for (uint32_t j = 0; j < group->n; j++)
        mark[group->rank[j]] = token;
    for (uint32_t j = 0; j < group->n; j++)
        if (mark[fold->rep[fold->class_[group->rank[j]]]] != token)
            return false;
    return true;
}

static bool is_closed(const sim__search *s, uint32_t *mark)
{
    const sim__fold *fold = s->fold;
    uint32_t token = 0;

    memset(mark, 0, s->n * sizeof *mark);
    for (uint32_t k = 0; k < fold->n_classes; k++) {
        const uint32_t q = fold->rep[k];
        for (uint32_t i = s->use_first[q]; i < s->use_first[q + 1]; i++)
            if (!group_is_closed(s, &s->uses[i], mark, ++token))
                return false;
        for (uint32_t i = s->side_first[q]; i < s->side_first[q + 1]; i++)
            if (fold->rep[fold->class_[s->sides[i].peer]] != s->sides[i].peer)
                return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool search_init(sim__search *s)
{
    const size_t n = s->n, nodes = s->c->trace->n_nodes, groups = s->c->trace->n_groups;

    s->use_first = malloc((n + 1) * sizeof *s->use_first);
    s->side_first = malloc((n + 1) * sizeof *s->side_first);
    s->last_use = malloc((groups + 1) * sizeof *s->last_use);
    s->label = calloc(nodes + 1, sizeof *s->label);
    s->key = malloc((n + 1) * sizeof *s->key);
    s->next_class = malloc((n + 1) * sizeof *s->next_class);
    if (s->use_first == NULL || s->side_first == NULL || s->last_use == NULL || s->label == NULL ||
        s->key == NULL || s->next_class == NULL)
        return false;
    memset(s->last_use, 0xff, (groups + 1) * sizeof *s->last_use);
    return true;
}

bool sim__fold_classes(const sim__cluster *c, sim__fold *fold)
{
    sim__search s = {.c = c, .fold = fold, .n = c->trace->n_ranks};
    bool found = search_init(&s);

    found = found && sim__fold_meetings(&s) && refine(&s) && prove(&s);
    if (found) {
        choose(&s, s.next_class);
        found = is_closed(&s, s.next_class);
    }
    free(s.uses);
    free(s.sides);
    free(s.use_first);
    free(s.side_first);
    free(s.last_use);
    free(s.label);
    free(s.key);
    free(s.next_class);
    return found;
}
