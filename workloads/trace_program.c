/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The program that every NPU runs for a text workload: forward layer by layer, backward in reverse,
 * compute in order, weight-gradient collectives in the background until the layer's next forward.
 * Times are nanoseconds, as ASTRA-sim v1 counts cycles of 1 ns. */
#include "workloads/trace_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PS_PER_NS = 1000, MAX_NODES_A_RANK = 1 << 26 };
#define NONE UINT32_MAX

/* Groups of the three passes by policy. A first word names the innermost dimension. */
static const struct {
    uint8_t scope[WL__N_PASSES];
    bool weight_first; /* weight gradient before input gradient, none for the first layer */
} rules[WL__N_POLICIES] = {
    [WL__DATA] = {{WL__NOBODY, WL__NOBODY, WL__ALL}, true},
    [WL__MODEL] = {{WL__ALL, WL__ALL, WL__NOBODY}, false},
    [WL__MICRO] = {{WL__NOBODY, WL__NOBODY, WL__ALL}, true},
    [WL__HYBRID_DATA_MODEL] = {{WL__OTHER_DIMS, WL__OTHER_DIMS, WL__FIRST_DIM}, false},
    [WL__HYBRID_MODEL_DATA] = {{WL__FIRST_DIM, WL__FIRST_DIM, WL__OTHER_DIMS}, false},
    [WL__HYBRID_TRANSFORMER] = {{WL__TP, WL__TP, WL__DP}, false},
    [WL__HYBRID_TRANSFORMER_FWD_IN_BCKWD] = {{WL__TP, WL__TP, WL__DP}, false},
    [WL__HYBRID_DLRM] = {{WL__ALL, WL__ALL, WL__ALL}, true},
    [WL__HYBRID_DLRM_ENHANCED] = {{WL__ALL, WL__ALL, WL__ALL}, true},
    [WL__HYBRID_CUSTOMIZED] = {{WL__NOBODY, WL__NOBODY, WL__NOBODY}, false},
    [WL__DISTRIBUTED_INFERENCE] = {{WL__TP, WL__TP, WL__NOBODY}, false},
};

static const char *const pass_names[] = {"forward", "input_gradient", "weight_gradient"};

/* A program under construction. */
typedef struct {
    wl__text *text;
    wl__text_program *out;
    uint32_t last;      /* what the next compute node waits for, NONE at the start */
    uint32_t *pending;  /* per layer: end of its weight-gradient collective */
    uint32_t embedding; /* DLRM: the embedding's exchange under way */
    bool ok;
} builder;

static bool is_dlrm(const wl__text *text)
{
    return text->policy == WL__HYBRID_DLRM || text->policy == WL__HYBRID_DLRM_ENHANCED;
}

static uint32_t add_node(builder *b, wl__text_node node, uint32_t dep_a, uint32_t dep_b)
{
    wl__text_program *p = b->out;
    uint32_t deps[2] = {dep_a, dep_b};

    if (!b->ok || p->n >= MAX_NODES_A_RANK ||
        !wl__grow((void **)&p->node, p->n, &p->cap, sizeof *p->node)) {
        b->ok = false;
        return NONE;
    }
    for (int k = 0; k < 2; k++)
        if (deps[k] != NONE && (k == 0 || deps[k] != deps[0]))
            node.dep[node.n_deps++] = deps[k];
    if (node.n_deps == 2 && node.dep[0] > node.dep[1]) {
        uint32_t swap = node.dep[0];

        node.dep[0] = node.dep[1];
        node.dep[1] = swap;
    }
    p->node[p->n] = node;
    return (uint32_t)p->n++;
}

static const char *label(builder *b, const char *layer, const char *what)
{
    const char *name = cs_arena_printf(b->text->arena, "%s_%s", layer, what);

    b->ok = b->ok && name != NULL;
    return name;
}

/* Compute of a pass; nothing when it takes no time. */
static void compute(builder *b, const wl__text_row *row, int pass, uint32_t also)
{
    wl__text_node node = {.type = WL_NODE_COMP};

    if (row->phase[pass].ns == 0 && also == NONE)
        return;
    node.name = label(b, row->name, pass_names[pass]);
    node.duration_ps = row->phase[pass].ns * PS_PER_NS;
    b->last = add_node(b, node, b->last, also);
}

static wl__scope scope_of(const wl__text_row *row, int pass)
{
    return row->phase[pass].suffix != WL__ALL ? (wl__scope)row->phase[pass].suffix
                                              : (wl__scope)rules[row->policy].scope[pass];
}

/* Collectives of a pass after what ended last; returns the end of them, NONE without any. */
static uint32_t communicate(builder *b, const wl__text_row *row, int pass)
{
    const wl__text_phase *phase = &row->phase[pass];
    wl__scope scope = scope_of(row, pass);
    int64_t size = b->out->size[scope];
    uint32_t end = NONE;

    if (scope == WL__NOBODY || size == 1)
        return NONE;
    for (uint8_t k = 0; k < phase->n_comms; k++) {
        wl__text_node node = {.type = WL_NODE_COLL,
                              .comm = phase->comm[k],
                              .scope = (uint8_t)scope,
                              .bytes = phase->bytes};

        if (b->text->simai && node.comm == WL_CHAKRA_ALL_GATHER && size > 0)
            node.bytes = (node.bytes + size - 1) / size; /* .et states the shard */
        node.name = label(b, row->name, wl_chakra_comm_names[node.comm]);
        end = add_node(b, node, end != NONE ? end : b->last, NONE);
    }
    return end;
}

/* A pass whose collective holds up what follows. */
static void blocking(builder *b, const wl__text_row *row, int pass)
{
    uint32_t end = communicate(b, row, pass);

    if (end != NONE)
        b->last = end;
}

static void forward(builder *b, size_t i)
{
    const wl__text_row *row = &b->text->row[i];
    uint32_t also = b->pending[i];
    bool top = is_dlrm(b->text) && (int64_t)i == b->text->last_bottom + 1;

    b->pending[i] = NONE;
    if (top && b->embedding != NONE) {
        wl__text_node join = {.type = WL_NODE_COMP, .name = label(b, row->name, "join")};

        b->last = add_node(b, join, b->last, b->embedding);
        b->embedding = NONE;
    }
    compute(b, row, WL__FORWARD, also);
    if (is_dlrm(b->text) && i == 0)
        b->embedding = communicate(b, row, WL__FORWARD);
    else
        blocking(b, row, WL__FORWARD);
}

/* Reduces a layer's gradient in the background; the update follows it. */
static void weight_gradient(builder *b, size_t i)
{
    const wl__text_row *row = &b->text->row[i];
    wl__text_node update = {.type = WL_NODE_COMP};
    uint32_t end;

    compute(b, row, WL__WEIGHT, NONE);
    end = communicate(b, row, WL__WEIGHT);
    if (end == NONE)
        return;
    b->pending[i] = end;
    if (row->update_ns > 0) {
        update.name = label(b, row->name, "update");
        update.duration_ps = row->update_ns * PS_PER_NS;
        b->pending[i] = add_node(b, update, end, NONE);
    }
}

/* Backward of one layer.  In DLRM the embedding's exchange starts after the first top layer and
 * the embedding's own gradient waits for it. */
static void backward(builder *b, size_t i)
{
    const wl__text_row *row = &b->text->row[i];
    bool weight_first = rules[row->policy].weight_first, dlrm = is_dlrm(b->text);

    if (dlrm && i == 0 && b->embedding != NONE) {
        compute(b, row, WL__WEIGHT, b->embedding);
        b->embedding = NONE;
        b->pending[0] = communicate(b, row, WL__WEIGHT);
        return;
    }
    if (weight_first)
        weight_gradient(b, i);
    if (!weight_first || i > 0) {
        compute(b, row, WL__INPUT, NONE);
        blocking(b, row, WL__INPUT);
    }
    if (!weight_first)
        weight_gradient(b, i);
    if (dlrm && (int64_t)i == b->text->last_bottom + 1)
        b->embedding = communicate(b, &b->text->row[0], WL__INPUT);
}

/* Runs forward again from the checkpoint at or below layer i up to the layer before i. */
static void recompute(builder *b, size_t i)
{
    size_t from = i;

    while (from > 0 && !b->text->row[from].checkpoint)
        from--;
    for (; from < i; from++)
        forward(b, from);
}

static void iteration(builder *b)
{
    const wl__text *text = b->text;

    if (text->policy == WL__MICRO) {
        for (size_t i = 0; i < text->n; i++)
            (void)communicate(b, &text->row[i], WL__WEIGHT);
        return;
    }
    for (size_t i = 0; i < text->n; i++)
        forward(b, i);
    if (text->policy == WL__DISTRIBUTED_INFERENCE)
        return;
    for (size_t i = text->n; i-- > 0;) {
        if (text->policy == WL__HYBRID_TRANSFORMER_FWD_IN_BCKWD && text->row[i].initiates)
            recompute(b, i);
        backward(b, i);
    }
}

/* ---- groups ---- */

/* Sizes of the groups: tp innermost, then ep, the rest of the data group, pp outermost. */
static cs_status set_sizes(const wl__text *text, wl__text_program *out, cs_error *err)
{
    int64_t tp = text->tp > 0 ? text->tp : 1, ep = text->ep > 0 ? text->ep : 1;
    int64_t pp = text->pp > 0 ? text->pp : 1, dp;

    if (tp > out->ranks || pp > out->ranks || out->ranks % (tp * pp) != 0)
        return cs_fail(err, CS_EINVAL,
                       "%s: %" PRId64 " NPUs do not divide into groups of %" PRId64
                       " x pp %" PRId64,
                       text->path, out->ranks, tp, pp);
    dp = out->ranks / (tp * pp);
    if (ep > dp || dp % ep != 0)
        return cs_fail(err, CS_EINVAL,
                       "%s: the data group of %" PRId64 " NPUs does not divide by ep %" PRId64,
                       text->path, dp, ep);
    out->size[WL__ALL] = out->ranks;
    out->size[WL__TP] = tp;
    out->size[WL__DP] = dp;
    out->size[WL__EP] = ep;
    out->size[WL__DP_EP] = dp / ep;
    return CS_OK;
}

/* Number within its scope of a rank's group, and the rank's place in it. */
static uint32_t place(const wl__text_program *p, wl__scope scope, uint32_t rank, uint32_t *member)
{
    uint32_t tp = (uint32_t)p->size[WL__TP], dp = (uint32_t)p->size[WL__DP];
    uint32_t ep = (uint32_t)p->size[WL__EP], t = rank % tp, d = rank / tp % dp,
             stage = rank / tp / dp;

    switch (scope) {
    case WL__TP:
        *member = t;
        return rank / tp;
    case WL__DP:
        *member = d;
        return stage * tp + t;
    case WL__EP:
        *member = d % ep;
        return (stage * (dp / ep) + d / ep) * tp + t;
    default: /* WL__DP_EP */
        *member = d / ep;
        return (stage * ep + d % ep) * tp + t;
    }
}

static bool add_groups(wl__text *text, wl__text_program *p, wl__scope scope)
{
    size_t count = (size_t)(p->ranks / p->size[scope]), n = (size_t)p->size[scope];
    wl_trace_group *list = cs_arena_alloc(text->arena, (p->n_groups + count) * sizeof *list);
    uint32_t *rank = cs_arena_alloc(text->arena, (size_t)p->ranks * sizeof *rank), member;

    if (list == NULL || rank == NULL)
        return false;
    if (p->n_groups > 0)
        memcpy(list, p->group, p->n_groups * sizeof *list);
    p->first[scope] = (uint32_t)p->n_groups + 1;
    for (size_t g = 0; g < count; g++) {
        const char *name = cs_arena_printf(text->arena, "%zu", p->n_groups + g + 1);

        if (name == NULL)
            return false;
        list[p->n_groups + g] = (wl_trace_group){
            .name = name, .rank = rank + g * n, .n = (uint32_t)n, .declared = true};
    }
    for (uint32_t r = 0; r < (uint32_t)p->ranks; r++) {
        uint32_t g = place(p, scope, r, &member);

        rank[g * n + member] = r;
    }
    p->group = list;
    p->n_groups += count;
    return true;
}

static bool make_groups(wl__text *text, wl__text_program *p)
{
    bool used[WL__N_SCOPES] = {false};

    for (size_t i = 0; i < p->n; i++)
        used[p->node[i].scope] |= p->node[i].type == WL_NODE_COLL;
    for (int scope = WL__TP; scope <= WL__DP_EP; scope++)
        if (used[scope] && !add_groups(text, p, (wl__scope)scope))
            return false;
    return true;
}

uint32_t wl__text_group(const wl__text_program *p, wl__scope scope, uint32_t rank)
{
    uint32_t member;

    if (scope < WL__TP || p->first[scope] == 0)
        return 0;
    return p->first[scope] + place(p, scope, rank, &member);
}

cs_status wl__text_program_make(wl__text *text, uint32_t ranks, uint32_t passes,
                                wl__text_program *out, cs_error *err)
{
    builder b = {.text = text, .out = out, .last = NONE, .embedding = NONE, .ok = true};
    cs_status status;

    *out = (wl__text_program){.ranks = ranks > 0 ? ranks : text->all_gpus};
    if (out->ranks <= 0 || out->ranks > 10 * 1000 * 1000)
        return cs_fail(err, CS_EINVAL,
                       "%s: a text workload of this kind does not say how many NPUs run it: give "
                       "their number",
                       text->path);
    status = set_sizes(text, out, err);
    if (status != CS_OK)
        return status;
    b.pending = malloc((text->n + 1) * sizeof *b.pending);
    if (b.pending == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", text->path);
    memset(b.pending, 0xff, (text->n + 1) * sizeof *b.pending);
    for (uint32_t k = 0; b.ok && k < (passes > 0 ? passes : 1); k++)
        iteration(&b);
    free(b.pending);
    if (b.ok && make_groups(text, out))
        return CS_OK;
    wl__text_program_fini(out);
    return cs_fail(err, CS_ENOMEM, "%s: out of memory, or more than %d nodes a rank", text->path,
                   MAX_NODES_A_RANK);
}

void wl__text_program_fini(wl__text_program *program)
{
    free(program->node);
    *program = (wl__text_program){0};
}

void wl__text_plain(const wl__text_program *p, size_t i, uint32_t rank, uint64_t *deps,
                    int32_t *involved, wl_et_plain *out)
{
    const wl__text_node *node = &p->node[i];
    uint32_t group = wl__text_group(p, (wl__scope)node->scope, rank);
    bool by_dim = node->scope == WL__FIRST_DIM || node->scope == WL__OTHER_DIMS;

    for (uint8_t k = 0; k < node->n_deps; k++)
        deps[k] = (uint64_t)node->dep[k] + 1;
    *out = (wl_et_plain){.id = i + 1,
                         .name = node->name,
                         .type = (wl_node_type)node->type,
                         .data_deps = deps,
                         .n_deps = node->n_deps,
                         .duration_ps = node->duration_ps};
    if (node->type != WL_NODE_COLL)
        return;
    out->comm = (wl_chakra_comm)node->comm;
    out->comm_size = node->bytes;
    out->group = group > 0 ? p->group[group - 1].name : NULL;
    for (int d = 0; by_dim && d < 4; d++)
        involved[d] = (d == 0) == (node->scope == WL__FIRST_DIM);
    out->involved = involved;
    out->n_involved = by_dim ? 4 : 0;
}
