/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What one chunk does on one NPU in a phase.  Ring, direct and halving-doubling share a machine: a
 * packet is inserted at the start and for every message received, becomes ready after the endpoint
 * delay (and the reduction), and is then sent on while a matching receive is posted.  The phase
 * ends when everything is sent and the last packets are ready.  Of a direct all-reduce, the second
 * half starts at the first packet that is ready after the first half has arrived.
 *
 * A double binary tree runs an all-reduce over one of two in-order trees, whatever the phase:
 * leaves send up; inner nodes reduce both children, send up, receive, and send down to both. */
#include "sim/astra_engine.h"

typedef enum { ROOT, INNER, LEAF } tree_role;
/* What a tree node waits for. */
typedef enum { WAIT_TWO_CHILDREN, WAIT_CHILD, SEND_UP, WAIT_PARENT, SEND_DOWN, FINISH } tree_state;

static const sim__astra_phase *phase_of(sim__engine *engine, const sim__flow *flow)
{
    return &sim__instance_at(engine, flow->instance)->plan.phase[flow->phase];
}

static void packet_timer(sim__engine *engine, uint32_t index, bool reduce, int64_t bytes)
{
    const sim__flow *flow = sim__flow_at(engine, index);
    const sim__instance *in = sim__instance_at(engine, flow->instance);

    sim__timer_push(
        engine, in->plan.endpoint_delay_ns,
        (sim__timer){.target = index,
                     .npu = (uint32_t)sim__flow_npu(engine, flow),
                     .kind = SIM__TIMER_PACKET,
                     .reduce = reduce,
                     .reduction_ns = sim__astra_reduction(&engine->astra->system, bytes)});
}

/* Member of the collective that stands `index` in the phase of the flow. */
static uint32_t member_at(sim__engine *engine, const sim__flow *flow, int64_t index)
{
    const sim__astra_phase *phase = phase_of(engine, flow);

    if (phase->listed)
        return (uint32_t)index;
    return (uint32_t)(flow->member +
                      (index - sim__flow_index(engine, flow, phase)) * phase->stride);
}

/* ---- ring, direct, halving-doubling ---- */

static void packet_insert(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const sim__astra_phase *phase = phase_of(engine, flow);
    const sim__astra_sequence *seq = &sim__instance_at(engine, flow->instance)->seq[flow->phase];
    const int64_t k = flow->inserted++;

    packet_timer(engine, index, sim__astra_is_reduced(seq, k),
                 sim__astra_message_bytes(phase, seq, k));
}

static int64_t wrap(int64_t index, int64_t n)
{
    return index < 0 ? index + n : (index >= n ? index - n : index);
}

static void packet_send(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const sim__instance *in = sim__instance_at(engine, flow->instance);
    const sim__astra_phase *phase = &in->plan.phase[flow->phase];
    const sim__astra_sequence *seq = &in->seq[flow->phase];
    const size_t local = index - in->first_flow;
    const bool pairwise = phase->algorithm->algorithm == SIM_ALGO_HALVING_DOUBLING;
    int64_t own, shift, bytes;
    uint32_t to, from;

    if (flow->inserted == flow->sent || flow->sent == seq->sends || flow->idle == 0)
        return;
    own = sim__flow_index(engine, flow, phase);
    shift = sim__astra_message_shift(phase, seq, flow->sent, own);
    bytes = sim__astra_message_bytes(phase, seq, flow->sent);
    if (!pairwise && (in->queue[local * in->plan.n_phases + flow->phase] & 0x80) != 0)
        shift = -shift;
    to = member_at(engine, flow, wrap(own + shift, phase->n));
    from = pairwise ? to : member_at(engine, flow, wrap(own - shift, phase->n));
    flow->sent++;
    flow->idle--;
    sim__flow_send(engine, index, to, bytes);
    sim__receive_post(engine, index, from, bytes);
}

static void packet_ready(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const sim__astra_sequence seq = sim__instance_at(engine, flow->instance)->seq[flow->phase];
    int64_t tries = 1;

    flow->idle++;
    if (seq.half > 0 && seq.sends - flow->sent <= seq.half) {
        if (flow->received < seq.half)
            return;
        tries = seq.window;
    }
    while (tries-- > 0)
        packet_send(engine, index);
    flow = sim__flow_at(engine, index);
    if (flow->sent == seq.sends && flow->idle == seq.window)
        sim__flow_proceed(engine, index);
}

/* ---- double binary tree ---- */

/* Place of a node: the inner nodes are numbered 1 .. n-1 in order, the root is 0. */
typedef struct {
    int64_t place, bit; /* bit: lowest set bit of the place */
    bool root_last;     /* the root is the last member instead of the first */
    int64_t n;
} tree_node;

static tree_node tree_node_of(sim__engine *engine, const sim__flow *flow)
{
    const sim__instance *in = sim__instance_at(engine, flow->instance);
    const sim__astra_phase *phase = &in->plan.phase[flow->phase];
    const uint32_t turn = in->tree[flow->phase] + flow->chunk * in->visits[flow->phase];
    tree_node node = {.root_last = turn % 2 == 0, .n = phase->n};
    const int64_t own = sim__flow_index(engine, flow, phase);

    node.place = node.root_last ? (own + 1) % phase->n : own;
    node.bit = node.place & -node.place;
    return node;
}

static tree_role tree_role_of(const tree_node *node)
{
    return node->place == 0 ? ROOT : (node->bit == 1 ? LEAF : INNER);
}

static uint32_t tree_member(sim__engine *engine, const sim__flow *flow, const tree_node *node,
                            int64_t place)
{
    return member_at(engine, flow, node->root_last ? (place + node->n - 1) % node->n : place);
}

static uint32_t tree_parent(sim__engine *engine, const sim__flow *flow, const tree_node *node)
{
    const int64_t place = (node->place ^ node->bit) | (node->bit << 1);

    return tree_member(engine, flow, node, place % node->n);
}

/* side -1 or +1; the root has one child, in the middle. */
static uint32_t tree_child(sim__engine *engine, const sim__flow *flow, const tree_node *node,
                           int64_t side)
{
    const int64_t place = node->place == 0 ? node->n / 2 : node->place + side * (node->bit / 2);

    return tree_member(engine, flow, node, place);
}

static void tree_begin(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const int64_t bytes = phase_of(engine, flow)->size;
    const tree_node node = tree_node_of(engine, flow);
    const tree_role role = tree_role_of(&node);

    flow->tree_reductions = 0;
    if (role == LEAF) {
        flow->tree_state = SEND_UP;
        packet_timer(engine, index, false, bytes);
        return;
    }
    flow->tree_state = role == ROOT ? WAIT_CHILD : WAIT_TWO_CHILDREN;
    sim__receive_post(engine, index, tree_child(engine, flow, &node, -1), bytes);
    if (role == INNER)
        sim__receive_post(engine, index, tree_child(engine, sim__flow_at(engine, index), &node, 1),
                          bytes);
}

static void tree_received(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const tree_node node = tree_node_of(engine, flow);
    const tree_role role = tree_role_of(&node);
    static const uint8_t next[] = {
        [WAIT_TWO_CHILDREN] = WAIT_CHILD, [WAIT_CHILD] = SEND_UP,  [SEND_UP] = SEND_UP,
        [WAIT_PARENT] = SEND_DOWN,        [SEND_DOWN] = SEND_DOWN, [FINISH] = FINISH};

    if (role == ROOT)
        flow->tree_state = SEND_DOWN;
    else if (role == LEAF)
        flow->tree_state = FINISH;
    else
        flow->tree_state = next[flow->tree_state];
    packet_timer(engine, index, role != LEAF, phase_of(engine, flow)->size);
}

static void tree_send_up(sim__engine *engine, uint32_t index, const tree_node *node)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const int64_t bytes = phase_of(engine, flow)->size;
    const uint32_t parent = tree_parent(engine, flow, node);

    flow->tree_state = WAIT_PARENT;
    sim__flow_send(engine, index, parent, bytes);
    sim__receive_post(engine, index, parent, bytes);
}

static void tree_send_down(sim__engine *engine, uint32_t index, const tree_node *node)
{
    const int64_t bytes = phase_of(engine, sim__flow_at(engine, index))->size;

    for (int64_t side = -1; side <= (node->place == 0 ? -1 : 1); side += 2)
        sim__flow_send(engine, index, tree_child(engine, sim__flow_at(engine, index), node, side),
                       bytes);
    sim__flow_proceed(engine, index);
}

static void tree_ready(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const tree_node node = tree_node_of(engine, flow);

    if (tree_role_of(&node) == INNER && flow->tree_reductions == 0) {
        flow->tree_reductions = 1; /* the first child's data is reduced */
        return;
    }
    if (flow->tree_state == SEND_UP)
        tree_send_up(engine, index, &node);
    else if (flow->tree_state == SEND_DOWN)
        tree_send_down(engine, index, &node);
    else if (flow->tree_state == FINISH)
        sim__flow_proceed(engine, index);
}

/* ---- one face for both ---- */

static bool is_tree(sim__engine *engine, uint32_t index)
{
    return phase_of(engine, sim__flow_at(engine, index))->algorithm->algorithm ==
           SIM_ALGO_DOUBLE_BINARY_TREE;
}

void sim__flow_begin(sim__engine *engine, uint32_t index)
{
    sim__flow *flow = sim__flow_at(engine, index);
    const int64_t window = sim__instance_at(engine, flow->instance)->seq[flow->phase].window;

    flow->inserted = flow->sent = flow->received = flow->idle = 0;
    if (is_tree(engine, index)) {
        tree_begin(engine, index);
        return;
    }
    for (int64_t i = 0; i < window; i++)
        packet_insert(engine, index);
}

void sim__flow_timer(sim__engine *engine, uint32_t index)
{
    if (is_tree(engine, index))
        tree_ready(engine, index);
    else
        packet_ready(engine, index);
}

void sim__flow_received(sim__engine *engine, uint32_t index)
{
    if (is_tree(engine, index)) {
        tree_received(engine, index);
        return;
    }
    sim__flow_at(engine, index)->received++;
    packet_insert(engine, index);
}
