/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The run: nodes are issued and end, places are taken and freed, times are kept. */
#include "sim/cluster_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest time of one node that is accepted (36 years in ns, 13 days in ps). */
#define MAX_NODE_TICKS (SIM__ASTRA_MAX_NS / 4)

void sim__cluster_fail(sim__cluster *c, cs_status status, const char *fmt, ...)
{
    va_list args;

    c->engine->stop = true;
    if (c->status != CS_OK)
        return;
    c->status = status;
    va_start(args, fmt);
    (void)vsnprintf(c->error.text, sizeof c->error.text, fmt, args);
    va_end(args);
}

const char *sim__cluster_node_text(const sim__cluster *c, uint32_t node, char text[160])
{
    (void)snprintf(text, 160, "rank %u node %" PRIu64 " (%.80s)",
                   c->trace->rank[c->rank_of[node]].rank, c->trace->node[node].id,
                   wl_trace_name(c->trace, node));
    return text;
}

/* ---- what keeps a rank busy ---- */

/* Books the time since the last change. */
static void account(sim__cluster *c, sim__rank *rank)
{
    const int64_t since = c->engine->now - rank->changed;
    const bool comm = rank->busy[SIM__PLACE_COMM] + rank->busy[SIM__PLACE_NONE] > 0;
    const bool compute = rank->busy[SIM__PLACE_GPU] > 0;

    rank->times.comm_ns += comm ? since : 0;
    rank->times.hidden_ns += comm && compute ? since : 0;
    rank->times.idle_ns += comm || compute ? 0 : since;
    rank->changed = c->engine->now;
}

/* ---- durations, in ticks ---- */

static int64_t ticks_of(const sim__cluster *c, double ns)
{
    const double ticks = ns * (double)c->ticks_per_ns;

    return ticks < (double)MAX_NODE_TICKS ? (int64_t)ticks : MAX_NODE_TICKS + 1;
}

/* As ASTRA-sim: whole ns, at least one; contention: as it stands. */
static int64_t replayed_ticks(const sim__cluster *c, const wl_trace_node *node)
{
    if (c->ticks_per_ns == 1000)
        return node->duration_ps < MAX_NODE_TICKS ? node->duration_ps : MAX_NODE_TICKS + 1;
    return node->duration_ps < 1000 ? 1 : node->duration_ps / 1000;
}

/* Roofline: ops / min(peak, bandwidth * ops / bytes), ns. */
static int64_t roofline_ticks(const sim__cluster *c, const wl_trace_node *node)
{
    const sim_astra_system *system = &c->astra->system;
    const double ops = (double)node->num_ops, bytes = (double)node->tensor_size;
    const double reachable = system->local_mem_bytes_per_s * (ops / bytes);
    const double rate = reachable < system->peak_flops ? reachable : system->peak_flops;

    return ticks_of(c, node->num_ops == 0 ? bytes / system->local_mem_bytes_per_s * 1e9
                                          : ops / rate * 1e9);
}

static bool uses_roofline(const sim__cluster *c, const wl_trace_node *node)
{
    if (!c->astra->system.roofline || c->astra->system.replay_only || node->type != WL_NODE_COMP ||
        (node->flags & WL_NODE_CPU) != 0 || node->num_ops < 0 || node->tensor_size < 0)
        return false;
    return c->contention.net == NULL || node->duration_ps == 0;
}

static int64_t memory_ticks(const sim__cluster *c, const wl_trace_node *node)
{
    const double rate = c->astra->system.local_mem_bytes_per_s;

    if (node->duration_ps > 0 || node->tensor_size < 0 || rate <= 0.0)
        return replayed_ticks(c, node);
    return ticks_of(c, (double)node->tensor_size / rate * 1e9);
}

static int64_t node_ticks(const sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];
    const bool slow = c->options->slow_factor > 0.0 &&
                      c->trace->rank[c->rank_of[index]].rank == c->options->slow_rank;
    int64_t ticks;

    if (uses_roofline(c, node))
        ticks = roofline_ticks(c, node);
    else if (node->type == WL_NODE_MEM_LOAD || node->type == WL_NODE_MEM_STORE)
        ticks = memory_ticks(c, node);
    else
        ticks = replayed_ticks(c, node);
    if (slow && node->type == WL_NODE_COMP)
        ticks = ticks_of(c, (double)ticks / (double)c->ticks_per_ns * c->options->slow_factor);
    return ticks;
}

/* ---- issue and end ---- */

/* Ends at once, without waiting for its turn in time. */
static bool takes_no_time(const sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];

    if (c->astra->system.replay_only)
        return false;
    if (node->type == WL_NODE_METADATA || node->type == WL_NODE_INVALID)
        return true;
    return uses_roofline(c, node) && node->tensor_size == 0;
}

static bool is_launch_only(const wl_trace_node *node)
{
    return (node->flags & WL_NODE_HOST_COLL) != 0 &&
           (node->comm == WL_CHAKRA_NONE || node->comm_size < 0);
}

static void start_timed(sim__cluster *c, uint32_t index)
{
    const int64_t ticks = node_ticks(c, index);
    const uint32_t r = c->rank_of[index];
    const bool counts =
        sim__cluster_place(c, index) == SIM__PLACE_GPU ||
        (c->astra->system.replay_only && (c->trace->node[index].flags & WL_NODE_CPU) == 0);
    char text[160];

    if (ticks > MAX_NODE_TICKS || c->engine->now > SIM__ASTRA_MAX_NS - MAX_NODE_TICKS) {
        sim__cluster_fail(c, CS_EINVAL, "%s: the run takes longer than the clock can count",
                          sim__cluster_node_text(c, index, text));
        return;
    }
    if (counts)
        c->rank[r].times.compute_ns += ticks;
    sim__fold_push(c, index, SIM__OWN);
    sim__astra_engine_timer(c->engine, sim__cluster_npu(c, c->trace->rank[r].rank), ticks, index);
}

bool sim__cluster_is_collective(const sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];

    if (node->type != WL_NODE_COLL || c->astra->system.replay_only || is_launch_only(node))
        return false;
    return node->comm != WL_CHAKRA_BROADCAST || c->contention.net != NULL;
}

static bool is_alone(const sim__cluster *c, const wl_trace_node *node)
{
    const uint32_t n = c->trace->group[node->group].n;

    return node->group == WL_GROUP_WORLD || n == 0 ? c->astra->network.npus == 1 : n == 1;
}

/* What is no collective to the model is replayed: a launch of the host, and a broadcast. */
static void start_collective(sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];
    char text[160];

    if (sim__cluster_is_collective(c, index))
        sim__cluster_collective(c, index);
    else if (is_launch_only(node) || node->comm_size <= 0 || is_alone(c, node))
        start_timed(c, index);
    else
        sim__cluster_fail(c, CS_ETRACE,
                          "%s: BROADCAST of %" PRId64 " bytes moves nothing: model astra replays "
                          "it for its duration, model contention runs it",
                          sim__cluster_node_text(c, index, text), node->comm_size);
}

/* A node has ended: its dependents have one thing less to wait for. */
static void resolve(sim__cluster *c, uint32_t index)
{
    sim__rank *rank = &c->rank[c->rank_of[index]];

    c->state[index] = SIM__DONE;
    rank->n_done++;
    rank->times.total_ns = c->engine->now;
    if (c->options->on_node != NULL)
        c->options->on_node(c->options->context, c->rank_of[index], index,
                            c->started[index] / c->ticks_per_ns, c->engine->now / c->ticks_per_ns);
    for (uint32_t e = c->child_first[index]; e < c->child_first[index + 1]; e++)
        if (--c->pending[c->child[e]] == 0)
            sim__cluster_make_ready(c, c->child[e]);
}

static void issue(sim__cluster *c, uint32_t index)
{
    const wl_trace_node *node = &c->trace->node[index];

    c->started[index] = c->engine->now;
    if (takes_no_time(c, index)) {
        resolve(c, index);
        return;
    }
    c->state[index] = SIM__RUNNING;
    c->rank[c->rank_of[index]].busy[sim__cluster_place(c, index)]++;
    if (c->astra->system.replay_only)
        start_timed(c, index);
    else if (node->type == WL_NODE_COLL)
        start_collective(c, index);
    else if (node->type == WL_NODE_SEND)
        sim__cluster_send(c, index);
    else if (node->type == WL_NODE_RECV)
        sim__cluster_receive(c, index);
    else
        start_timed(c, index);
}

static bool is_idle(const sim__rank *rank)
{
    return rank->busy[SIM__PLACE_GPU] + rank->busy[SIM__PLACE_CPU] + rank->busy[SIM__PLACE_COMM] +
               rank->busy[SIM__PLACE_NONE] ==
           0;
}

/* One pass over the ready nodes.  What becomes ready during the pass waits for the next, which is
 * when another node ends, or at once when none is in flight. */
static void pass(sim__cluster *c, uint32_t r)
{
    while (sim__cluster_refresh(c, r)) {
        uint32_t node;
        while (!c->engine->stop && (node = sim__cluster_take(c, r)) != SIM__NONE)
            issue(c, node);
        if (!is_idle(&c->rank[r]))
            return;
    }
}

void sim__cluster_finish(sim__cluster *c, uint32_t index)
{
    const uint32_t r = c->rank_of[index];
    sim__rank *rank = &c->rank[r];
    uint32_t node;

    sim__fold_ended(c, index);
    account(c, rank);
    rank->busy[sim__cluster_place(c, index)]--;
    if (c->trace->node[index].type == WL_NODE_COLL && c->partner[index] != SIM__NONE)
        sim__cluster_collective_ended(c, index);
    resolve(c, index);
    (void)sim__cluster_refresh(c, r);
    while (!c->engine->stop && (node = sim__cluster_take(c, r)) != SIM__NONE)
        issue(c, node);
    if (is_idle(rank))
        pass(c, r);
}

/* ---- hooks of the engine ---- */

/* A node ends; numbers beyond the nodes: a rank starts. */
static void on_timer(void *context, uint32_t npu, uint32_t node)
{
    sim__cluster *c = context;

    (void)npu;
    if (node < c->trace->n_nodes)
        sim__cluster_finish(c, node);
    else
        pass(c, node - c->trace->n_nodes);
}

static void on_arrived(void *context, uint32_t value)
{
    sim__cluster *c = context;

    if (c->contention.net != NULL)
        sim__contention_note(c, value);
    else
        sim__cluster_arrived(c, value);
}

static void on_done(void *context, uint32_t member, uint64_t user)
{
    sim__cluster_collective_done(context, member, user);
}

/* ---- the whole ---- */

static cs_status check_sizes(const wl_trace *trace, const sim_astra *astra, cs_error *err)
{
    if (trace->n_ranks != trace->job_ranks || (int64_t)trace->job_ranks != astra->network.npus)
        return cs_fail(err, CS_EINVAL,
                       "the network has %" PRId64
                       " NPUs, the trace has %u ranks in %u files: the three must agree",
                       astra->network.npus, trace->job_ranks, trace->n_ranks);
    if (astra->system.roofline &&
        (astra->system.peak_flops <= 0.0 || astra->system.local_mem_bytes_per_s <= 0.0))
        return cs_fail(err, CS_EINVAL,
                       "'roofline-enabled' needs 'peak-perf' and 'local-mem-bw' in the system");
    return CS_OK;
}

/* The engine sees the sizes of the network only. */
static void take_shape(sim__cluster *c)
{
    const sim_network *net = c->options->network;
    sim_astra_system *system = &c->shape.system;

    c->shape.network.n_dims = net->n_dims;
    c->shape.network.npus = 1;
    for (size_t d = 0; d < net->n_dims; d++) {
        c->shape.network.dim[d].n = net->dim[d].n;
        c->shape.network.npus *= net->dim[d].n;
    }
    system->active_chunks = system->queues_per_dim = system->splits = 1;
    system->peak_flops = c->options->peak_flops;
    system->local_mem_bytes_per_s = c->options->memory_bytes_per_s;
    system->roofline = system->peak_flops > 0.0 && system->local_mem_bytes_per_s > 0.0;
}

cs_status sim__cluster_create(sim__cluster *c, cs_error *err)
{
    const sim__hooks hooks = {
        .context = c, .done = on_done, .timer = on_timer, .arrived = on_arrived};
    const uint32_t n = c->trace->n_ranks;
    cs_status status;

    CS_TRY(sim__astra_engine_create(
        c->astra, c->contention.net == NULL ? c->options->backend : SIM_ASTRA_UNAWARE, &hooks,
        &c->engine, err));
    CS_TRY(sim__cluster_graph(c, err));
    if (c->contention.net != NULL)
        CS_TRY(sim__contention_create(c, err));
    CS_TRY(sim__cluster_slow_links(c, err));
    c->rank = calloc((size_t)n + 1, sizeof *c->rank);
    c->group_stream = calloc((size_t)c->trace->n_groups + 1, sizeof *c->group_stream);
    c->result->rank = calloc((size_t)n + 1, sizeof *c->result->rank);
    c->result->n_ranks = n;
    if (c->rank == NULL || c->group_stream == NULL || c->result->rank == NULL)
        return cs_fail(err, CS_ENOMEM, "%u ranks", n);
    if (c->options->streams_by_dimension)
        CS_TRY(sim__cluster_number(c, err));
    for (uint32_t r = 0; r < n; r++) {
        c->rank[r].fresh = SIM__NONE;
        for (int p = 0; p < SIM__N_PLACES; p++)
            c->rank[r].ready[p] = SIM__NONE;
    }
    sim__fold_create(c);
done:
    return status;
}

void sim__cluster_destroy(sim__cluster *c)
{
    sim__fold_destroy(c);
    sim__cluster_streams_fini(c);
    sim__contention_destroy(c);
    sim__astra_engine_destroy(c->engine);
    sim__astra_engine_destroy(c->side);
    free(c->rank);
    free(c->order);
    free(c->rank_of);
    free(c->pending);
    free(c->child_first);
    free(c->child);
    free(c->heap_child);
    free(c->sibling);
    free(c->partner);
    free(c->state);
    free(c->started);
    free(c->group_stream);
    free(c->number);
    free(c->channel);
    free(c->side_end);
}

cs_status sim__cluster_play(sim__cluster *c, cs_error *err)
{
    cs_status status;

    for (uint32_t i = c->trace->n_nodes; i-- > 0;)
        if (c->pending[i] == 0)
            sim__cluster_make_ready(c, i);
    for (uint32_t r = 0; r < c->trace->n_ranks; r++)
        if (!sim__fold_stands(c, r))
            continue;
        else if (c->start == NULL)
            pass(c, r);
        else
            sim__astra_engine_timer(c->engine, sim__cluster_npu(c, r), c->start[r],
                                    c->trace->n_nodes + r);
    CS_TRY(sim__astra_engine_run(c->engine, err));
    if (c->status != CS_OK)
        return cs_fail(err, c->status, "%s", c->error.text);
    for (uint32_t r = 0; r < c->trace->n_ranks; r++)
        if (sim__fold_stands(c, r) && c->rank[r].n_done != c->trace->rank[r].n)
            return sim__cluster_deadlock(c, err);
done:
    return status;
}

double sim__cluster_sent_bytes(const sim__cluster *c)
{
    const int64_t n_dims = (int64_t)c->astra->network.n_dims;
    double bytes = 0.0;

    for (int64_t i = 0; i < c->astra->network.npus * n_dims; i++) {
        bytes += c->engine->sent[i] * sim__fold_size(c, (uint32_t)(i / n_dims));
        bytes += c->side == NULL ? 0.0 : c->side->sent[i]; /* always of all members */
    }
    return bytes;
}

static void summarize(sim__cluster *c)
{
    sim_cluster_result *out = c->result;

    for (uint32_t r = 0; r < out->n_ranks; r++) {
        sim_cluster_rank *times = &out->rank[r];
        *times = c->rank[sim__fold_rep(c, r)].times;
        out->n_simulated += sim__fold_stands(c, r);
        times->total_ns /= c->ticks_per_ns;
        times->compute_ns /= c->ticks_per_ns;
        times->hidden_ns /= c->ticks_per_ns;
        times->comm_ns /= c->ticks_per_ns;
        times->idle_ns /= c->ticks_per_ns;
        times->exposed_ns = times->total_ns - times->compute_ns;
        out->max_ns = times->total_ns > out->max_ns ? times->total_ns : out->max_ns;
        out->min_ns = r == 0 || times->total_ns < out->min_ns ? times->total_ns : out->min_ns;
        out->max_exposed_ns =
            times->exposed_ns > out->max_exposed_ns ? times->exposed_ns : out->max_exposed_ns;
    }
    out->bytes_moved += sim__cluster_sent_bytes(c);
    for (uint32_t i = 0; i < c->trace->n_nodes; i++)
        if (c->trace->node[i].type == WL_NODE_SEND && c->partner[i] == SIM__NONE &&
            sim__fold_stands(c, c->rank_of[i]))
            out->unreceived += sim__fold_size(c, c->rank_of[i]);
}

/* One run; *again: it was folded, and must be run with all ranks, also to say what is wrong. */
static cs_status run_once(const wl_trace *trace, const sim_cluster_options *options,
                          sim_cluster_result *out, bool *again, cs_error *err)
{
    sim__cluster c = {.trace = trace,
                      .options = options,
                      .astra = options->astra,
                      .contention = {.net = options->network},
                      .ticks_per_ns = options->network == NULL ? 1 : 1000,
                      .result = out};
    cs_status status;

    *out = (sim_cluster_result){0};
    if (options->network != NULL) {
        take_shape(&c);
        c.astra = &c.shape;
    }
    CS_TRY(check_sizes(trace, c.astra, err));
    CS_TRY(sim__cluster_create(&c, err));
    status = sim__cluster_play(&c, err);
    *again = c.fold != NULL && (status != CS_OK || c.fold->broken);
    if (status == CS_OK && !*again)
        summarize(&c);
done:
    sim__cluster_destroy(&c);
    return status;
}

cs_status sim_cluster_run(const wl_trace *trace, const sim_cluster_options *options,
                          sim_cluster_result *out, cs_error *err)
{
    sim_cluster_options every = *options;
    bool again = false;
    cs_status status = run_once(trace, options, out, &again, err);

    if (!again)
        return status;
    every.every_rank = true;
    sim_cluster_result_fini(out);
    if (err != NULL)
        err->text[0] = '\0';
    return run_once(trace, &every, out, &again, err);
}

void sim_cluster_result_fini(sim_cluster_result *result)
{
    free(result->rank);
    result->rank = NULL;
    result->n_ranks = 0;
}
