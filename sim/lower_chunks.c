/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sim/lower_private.h"

int16_t sim__new_slot(sim_lower_work *w, int cause)
{
    w->cause[w->n_slots] = (uint8_t)cause;
    return (int16_t)w->n_slots++;
}

void sim__push(sim_lower_work *w, sim_op_list *list, const sim_op *op)
{
    list->op[list->n++] = *op;
    list->total += (size_t)op->count;
    w->total_s += SIM_S(op->duration) * (op->server == SIM_FLOW ? 1 : op->count);
    if (op->server == 0)
        w->compute += op->duration;
}

void sim__set_dep(sim_op *op, int16_t slot)
{
    op->dep[0] = slot;
    op->n_deps = 1;
}

bool sim__distinct_slots(const sim_lowering *l)
{
    return l->job->timeline != NULL || l->job->network->scheduling != SIM_PROGRAM;
}

/* The latest of several chunks, where they may end in any order. */
static int16_t join_chunks(sim_lower_work *w, sim_op_list *list, int16_t first, size_t n, int cause)
{
    sim_op op = {.server = SIM_NO_SERVER, .name = -1, .count = 1};

    sim__set_dep(&op, first);
    for (size_t c = 1; c < n; c++) {
        op.dep[op.n_deps++] = (int16_t)(first + (int16_t)c);
        if (op.n_deps < WL_MAX_DEPS && c + 1 < n)
            continue;
        op.out = sim__new_slot(w, cause);
        sim__push(w, list, &op);
        sim__set_dep(&op, op.out);
    }
    return op.dep[0];
}

/* Chunks of one collective as they are written. */
typedef struct {
    const sim_timed *timed;
    size_t chunks, copies; /* copies: slots of a chunk, 1 or one for each phase */
    size_t first;          /* slot */
} chunk_writer;

static int16_t chunk_slot(const chunk_writer *cw, size_t phase, size_t chunk)
{
    return (int16_t)(cw->first + (cw->copies > 1 ? phase * cw->chunks : 0) + chunk);
}

/* Moves `n` chunks of a background list to the foreground. */
static void merge_chunks(sim_lower_work *w, sim_op_list *list, size_t n)
{
    sim_op_list *out = &w->list[SIM_LIST_OUT];

    list->merged += n;
    while (n > 0) {
        sim_op op = list->op[list->at];
        size_t left = (size_t)op.count - list->offset, some = left < n ? left : n;
        bool in_place = op.dep[0] == op.out, begun = op.server == SIM_FLOW && list->offset > 0;
        if (op.server != SIM_FLOW)
            op.out = (int16_t)(op.out + (int16_t)list->offset);
        if (in_place)
            op.dep[0] = op.out;
        op.count = (int16_t)some;
        if (!begun)
            out->op[out->n++] = op;
        list->offset = some == left ? 0 : list->offset + some;
        list->at += some == left;
        n -= some;
    }
}

/* Before which of u urgent operations the i-th of b in the background stands: the first k with
 * (2i + 1) u < (2k + 1) b. */
static size_t place_of(const sim_lower_work *w, const sim_op_list *list, size_t i)
{
    size_t position = (2 * i + 1) * w->urgent;

    if (i == list->total)
        return SIZE_MAX;
    return position < list->total ? 0 : (position - list->total) / (2 * list->total) + 1;
}

/* Moves what stands before the k-th urgent one or an earlier one: (2i + 1) u < (2k + 1) b. */
static void merge_list(sim_lower_work *w, sim_op_list *list, size_t k)
{
    size_t due = list->total, position = (2 * k + 1) * list->total;

    if (w->urgent > 0)
        due = position <= w->urgent ? 0
                                    : (position - w->urgent + 2 * w->urgent - 1) / (2 * w->urgent);
    if (due > list->total)
        due = list->total;
    if (due > list->merged)
        merge_chunks(w, list, due - list->merged);
}

/* Moves what stands before the k-th urgent one or an earlier one, in the order of places. */
static void merge_background(sim_lower_work *w, size_t k)
{
    sim_op_list *gather = &w->list[SIM_LIST_GATHER], *reduce = &w->list[SIM_LIST_REDUCE];

    for (;;) {
        size_t next = place_of(w, gather, gather->merged);
        size_t other = place_of(w, reduce, reduce->merged);
        if (next > k && other > k)
            return;
        if (next <= other)
            merge_list(w, gather, other < k ? other : k);
        else
            merge_list(w, reduce, next <= k ? next - 1 : k);
    }
}

void sim__merge_rest(sim_lower_work *w)
{
    if (w->merged_urgent > 0)
        merge_background(w, w->merged_urgent - 1);
    for (int i = SIM_LIST_GATHER; i < SIM_N_LISTS; i++)
        if (w->list[i].total > w->list[i].merged)
            merge_chunks(w, &w->list[i], w->list[i].total - w->list[i].merged);
}

/* Dimensions that an operation occupies (bit set); those of a flow are of no other list. */
static unsigned servers_of(const sim_op *op)
{
    return op->server == SIM_FLOW        ? 0
           : op->server == SIM_NO_SERVER ? ~0u
                                         : 1u << (op->server - 1) | op->other_servers;
}

/* Place of the next of a background list that is served on one of `servers` (bit set); SIZE_MAX
 * when there is none. */
static size_t next_on(const sim_lower_work *w, const sim_op_list *list, unsigned servers)
{
    size_t ahead = list->merged, skip = list->offset;

    for (size_t at = list->at; at < list->n; at++) {
        if ((servers_of(&list->op[at]) & servers) != 0)
            return place_of(w, list, ahead);
        ahead += (size_t)list->op[at].count - skip;
        skip = 0;
    }
    return SIZE_MAX;
}

/* How many urgent ones on `servers` come before the next in the background that is served there
 * too; others in the background may as well come later in the program. */
static size_t until_next(sim_lower_work *w, unsigned servers)
{
    for (;;) {
        size_t gather = next_on(w, &w->list[SIM_LIST_GATHER], servers);
        size_t reduce = next_on(w, &w->list[SIM_LIST_REDUCE], servers);
        size_t next = gather < reduce ? gather : reduce;
        if (next > w->merged_urgent)
            return next - w->merged_urgent;
        merge_background(w, w->merged_urgent);
    }
}

static bool meets_background(const sim_lower_work *w, const sim_timed *timed)
{
    return (timed->dims & (w->dims[SIM_LIST_GATHER] | w->dims[SIM_LIST_REDUCE])) != 0;
}

/* Chunks from `chunk` on, of one phase and one server on end. */
static void put_run(sim_lower_work *w, int which, const chunk_writer *cw, const sim_op *op,
                    const size_t at[2], size_t count)
{
    size_t phase = at[0], chunk = at[1];
    sim_op run = *op;

    run.server = cw->timed->phase[phase].server;
    run.other_servers = cw->timed->phase[phase].others;
    run.duration = cw->timed->phase[phase].duration;
    run.out = chunk_slot(cw, phase, chunk);
    run.count = (int16_t)count;
    if (phase > 0)
        sim__set_dep(&run, chunk_slot(cw, phase - 1, chunk));
    w->sent_bytes += cw->timed->phase[phase].bytes * (int64_t)count;
    sim__push(w, &w->list[which], &run);
}

/* All chunks of one phase, with what stands between them. */
static void put_phase(sim_lower_work *w, int which, const chunk_writer *cw, const sim_op *op,
                      size_t phase)
{
    bool merges = which == SIM_LIST_OUT && meets_background(w, cw->timed);
    size_t longest = sim__distinct_slots(w->l) ? 1 : cw->chunks;
    unsigned servers = sim__distinct_slots(w->l) ? ~0u
                                                 : 1u << (cw->timed->phase[phase].server - 1) |
                                                       cw->timed->phase[phase].others;

    for (size_t c = 0, n; c < cw->chunks; c += n) {
        n = cw->chunks - c < longest ? cw->chunks - c : longest;
        if (merges) {
            size_t until = until_next(w, servers);
            n = n < until ? n : until;
            w->merged_urgent += n;
        }
        put_run(w, which, cw, op, (size_t[2]){phase, c}, n);
    }
}

/* Each chunk over the dimensions in an order of its own. */
static cs_status put_themis(sim_lower_work *w, int which, const chunk_writer *cw, const sim_op *op,
                            cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t c = 0; c < cw->chunks; c++) {
        sim_timed own;
        chunk_writer one = *cw;
        CS_TRY(sim__timed_themis(w->timing, cw->timed, w->load, &own, err));
        one.timed = &own;
        for (size_t p = 0; p < own.n_phases; p++)
            put_run(w, which, &one, op, (size_t[2]){p, c}, 1);
    }
done:
    return status;
}

/* Whether nothing of the other lists is served on the dimensions of this collective. */
static bool is_alone(const sim_lower_work *w, int which, const sim_timed *timed)
{
    unsigned others = 0;

    if (w->l->job->unrolled || sim__distinct_slots(w->l) || w->n_flows == SIM_MOST_FLOWS)
        return false;
    for (int i = 0; i < SIM_N_LISTS; i++)
        others |= i == which ? 0 : w->dims[i];
    return (timed->dims & others) == 0;
}

static cs_status put_flow(sim_lower_work *w, int which, const sim_piece *piece, const sim_op *op,
                          int16_t out, cs_error *err)
{
    const sim_timed *timed = piece->timed;
    size_t chunks = piece->chunks;
    sim_op whole = *op;
    sim_flow_phase *phase = sim__pool_alloc(&w->l->pool, timed->n_phases * sizeof *phase);

    if (phase == NULL)
        return cs_fail(err, CS_ENOMEM, "operations of a block");
    for (size_t p = 0; p < timed->n_phases; p++) {
        phase[p] = (sim_flow_phase){timed->phase[p].duration, timed->phase[p].server,
                                    timed->phase[p].others};
        w->sent_bytes += timed->phase[p].bytes * (int64_t)chunks;
        whole.duration += timed->phase[p].duration * (sim_time)chunks;
    }
    whole.server = SIM_FLOW;
    whole.count = (int16_t)(chunks * timed->n_phases); /* places in a list, as chunk by chunk */
    whole.out = out;
    whole.flow = (int16_t)w->n_flows;
    w->l->flow[w->n_flows++] = (sim_flow){(int64_t)chunks, timed->n_phases, phase};
    sim__push(w, &w->list[which], &whole);
    return CS_OK;
}

static cs_status put_chunks(sim_lower_work *w, int which, const chunk_writer *cw, const sim_op *op,
                            int16_t *end, cs_error *err)
{
    cs_status status = CS_OK;
    const sim_timed *timed = cw->timed;
    int32_t scheduling = w->l->job->network->scheduling;
    int cause = w->cause[cw->first];

    for (size_t c = 1; c < cw->chunks * cw->copies; c++)
        (void)sim__new_slot(w, cause);
    if (scheduling == SIM_THEMIS && timed->n_phases > 1 && cw->chunks > 1)
        CS_TRY(put_themis(w, which, cw, op, err));
    else
        for (size_t p = 0; p < timed->n_phases; p++)
            put_phase(w, which, cw, op, p);
    *end = chunk_slot(cw, timed->n_phases - 1, cw->chunks - 1);
    if (scheduling != SIM_PROGRAM)
        *end = join_chunks(w, &w->list[which], chunk_slot(cw, timed->n_phases - 1, 0), cw->chunks,
                           cause);
done:
    return status;
}

cs_status sim__put_collective(sim_lower_work *w, int which, const sim_piece *piece,
                              const sim_op *op, int16_t *end, cs_error *err)
{
    const sim_timed *timed = piece->timed;
    size_t chunks = piece->chunks;
    int cause = piece->cause;
    chunk_writer cw = {timed, chunks, sim__distinct_slots(w->l) ? timed->n_phases : 1, w->n_slots};
    sim_timed own;

    for (size_t i = 0; i < op->n_deps; i++)
        if (op->dep[i] == SIM_SLOT_INPUT || (w->cause[op->dep[i]] & SIM_OF_INPUT) != 0)
            cause |= SIM_OF_INPUT;
    *end = sim__new_slot(w, cause);
    if (timed->n_phases == 0) {
        sim_op none = *op;
        none.server = SIM_NO_SERVER;
        none.out = *end;
        sim__push(w, &w->list[which], &none);
        return CS_OK;
    }
    if (is_alone(w, which, timed))
        return put_flow(w, which, piece, op, *end, err);
    own = *timed; /* the table of collectives may drop it meanwhile */
    cw.timed = &own;
    return put_chunks(w, which, &cw, op, end, err);
}
