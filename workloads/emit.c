/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Items and values of one pass.  A value is a tensor in a layout; converting it to another layout
 * emits the collective of DESIGN 5.1 and is shared within the pass. */
#include "workloads/build_private.h"

void wl__pass_begin(wl__build *b)
{
    b->n_items = b->n_terms = b->n_values = b->n_pending = 0;
    b->loss = -1;
    memset(b->of, -1, b->block->n_tensors * sizeof *b->of);
    memset(b->grad, -1, b->block->n_tensors * sizeof *b->grad);
    memset(b->n_contributions, 0, b->block->n_tensors);
}

int16_t wl__emit(wl__build *b, const wl_item *item)
{
    if (b->n_items == WL__MAX_ITEMS) {
        b->failed = true;
        return WL_DEP_INPUT;
    }
    b->item[b->n_items] = *item;
    b->cost[b->n_items] = (wl__cost){.op = item->op, .first = -1, .last = -1};
    b->item[b->n_items].op = (int16_t)(item->op >= 0 ? b->block->op_base + item->op
                                                     : b->model->n_op_names - 1 - item->op);
    return (int16_t)b->n_items++;
}

int16_t wl__value_add(wl__build *b, int16_t tensor, wl__layout layout)
{
    wl__value *value;

    if (b->n_values == WL__MAX_VALUES) {
        b->failed = true;
        return 0;
    }
    value = &b->value[b->n_values];
    value->layout = layout;
    value->tensor = tensor;
    value->converted = value->next = -1;
    value->n_deps = 0;
    return (int16_t)b->n_values++;
}

/* Adds to a small set of dependencies.  When it is full the earliest compute item leaves: compute
 * items finish in program order, so a later one stands for it. */
static void dep_add(wl__build *b, int16_t *deps, uint8_t *n, int16_t item)
{
    for (size_t i = 0; i < *n; i++)
        if (deps[i] == item)
            return;
    if (*n < WL_MAX_DEPS) {
        deps[(*n)++] = item;
        return;
    }
    for (size_t i = 0; i < *n; i++)
        if (deps[i] < item && (deps[i] < 0 || b->item[deps[i]].kind == WL_COMPUTE)) {
            deps[i] = item;
            return;
        }
    b->failed = true;
}

void wl__value_dep(wl__build *b, int16_t value, int16_t item)
{
    dep_add(b, b->value[value].dep, &b->value[value].n_deps, item);
}

void wl__item_dep(wl__build *b, wl_item *item, int16_t value)
{
    const wl__value *v;

    if (value < 0)
        return;
    v = &b->value[value];
    for (size_t i = 0; i < v->n_deps; i++)
        dep_add(b, item->dep, &item->n_deps, v->dep[i]);
}

/* One change of layout on one axis. */
typedef struct {
    size_t axis;
    wl_collective type;
    bool free; /* whole -> split: every NPU keeps its slice */
} step;

static step step_of(size_t axis, int8_t from, int8_t to)
{
    step s = {axis, WL_ALL_GATHER, false};

    if (from == WL__PARTIAL)
        s.type = to == WL__WHOLE ? WL_ALL_REDUCE : WL_REDUCE_SCATTER;
    else if (to != WL__WHOLE && from != WL__WHOLE)
        s.type = WL_ALL_TO_ALL;
    else
        s.free = from == WL__WHOLE;
    return s;
}

/* Cheapest order: what shrinks the tensor first, what grows it last. */
static int rank_of(const step *s)
{
    static const int rank[WL_N_COLLECTIVES] = {
        [WL_REDUCE_SCATTER] = 1, [WL_ALL_REDUCE] = 2, [WL_ALL_TO_ALL] = 3, [WL_ALL_GATHER] = 4};

    return s->free ? 0 : rank[s->type];
}

static bool step_next(const wl__layout *from, const wl__layout *to, step *best)
{
    bool found = false;

    for (size_t a = 0; a < WL__AXES; a++) {
        step s;

        if (from->at[a] == to->at[a])
            continue;
        s = step_of(a, from->at[a], to->at[a]);
        if (!found || rank_of(&s) < rank_of(best))
            *best = s;
        found = true;
    }
    return found;
}

static int16_t converted(const wl__build *b, int16_t source, wl__layout layout)
{
    int16_t v = b->value[source].converted;

    while (v >= 0 && !wl__layout_equal(b->value[v].layout, layout))
        v = b->value[v].next;
    return v;
}

static int16_t step_emit(wl__build *b, int16_t value, const step *s, int8_t to, int16_t op)
{
    const int16_t tensor = b->value[value].tensor;
    wl__layout layout = b->value[value].layout;
    const wl__layout before = layout;
    int16_t next, index;

    layout.at[s->axis] = to;
    next = wl__value_add(b, tensor, layout);
    b->value[next].next = b->value[value].converted;
    b->value[value].converted = next;
    if (s->free) {
        for (size_t i = 0; i < b->value[value].n_deps; i++)
            wl__value_dep(b, next, b->value[value].dep[i]);
    } else {
        wl_item item = {.kind = WL_COMM,
                        .collective = (uint8_t)s->type,
                        .group = WL_GROUP(s->axis),
                        .axis = (uint8_t)s->axis,
                        .op = op,
                        .precision = b->bytes.arithmetic};

        wl__item_dep(b, &item, value);
        index = wl__emit(b, &item);
        wl__tensor_add(b, index, tensor, s->type == WL_ALL_GATHER ? layout : before, 1.0);
        wl__value_dep(b, next, index);
    }
    return next;
}

int16_t wl__convert_steps(wl__build *b, int16_t value, wl__layout to, int16_t op)
{
    step s = {0};

    while (!b->failed && step_next(&b->value[value].layout, &to, &s)) {
        wl__layout layout = b->value[value].layout;
        int16_t known;

        layout.at[s.axis] = to.at[s.axis];
        known = converted(b, value, layout);
        value = known >= 0 ? known : step_emit(b, value, &s, to.at[s.axis], op);
    }
    return value;
}

/* Sum of two values of the same layout, added where the later one is produced. */
int16_t wl__merge(wl__build *b, int16_t x, int16_t y)
{
    const int16_t sum = wl__value_add(b, b->value[x].tensor, b->value[x].layout);

    for (size_t i = 0; i < b->value[x].n_deps; i++)
        wl__value_dep(b, sum, b->value[x].dep[i]);
    for (size_t i = 0; i < b->value[y].n_deps; i++)
        wl__value_dep(b, sum, b->value[y].dep[i]);
    return sum;
}

/* The last item behind a value ends it; other collectives behind it are waited for there. */
static int16_t join(wl__build *b, int16_t value)
{
    const wl__value *v;
    int16_t last = WL_DEP_INPUT;

    if (value < 0)
        return WL_DEP_INPUT;
    v = &b->value[value];
    for (size_t i = 0; i < v->n_deps; i++)
        if (v->dep[i] > last)
            last = v->dep[i];
    for (size_t i = 0; last >= 0 && i < v->n_deps; i++) {
        wl_item *item = &b->item[last];

        if (v->dep[i] >= 0 && v->dep[i] != last && b->item[v->dep[i]].kind == WL_COMM)
            dep_add(b, item->dep, &item->n_deps, v->dep[i]);
    }
    return last;
}

wl__outline wl__pass_outline(wl__build *b, int16_t output)
{
    return (wl__outline){b->item, b->cost, b->term, b->n_items, b->n_terms, join(b, output)};
}

wl_pass wl__pass_end(wl__build *b, int16_t output)
{
    wl_pass pass = {.n = b->n_items, .output = output};

    pass.item = cs_arena_copy(b->arena, b->item, b->n_items * sizeof *b->item);
    if (pass.item == NULL) {
        b->failed = true;
        pass.n = 0;
    }
    return pass;
}
