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
    w->total_s += SIM_S(op->duration);
    if (op->server == 0) {
        w->compute += op->duration;
        w->n_terms += 1;
    } else if (op->server != SIM_NO_SERVER) {
        w->n_terms += 3;
    }
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
    sim_op op = {.server = SIM_NO_SERVER, .name = -1};

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

static void put_chunk(sim_lower_work *w, sim_op_list *list, const chunk_writer *cw,
                      const sim_timed *timed, sim_op op, size_t phase, size_t chunk)
{
    op.server = timed->phase[phase].server;
    op.other_servers = timed->phase[phase].others;
    op.duration = timed->phase[phase].duration;
    op.out = chunk_slot(cw, phase, chunk);
    if (phase > 0)
        sim__set_dep(&op, chunk_slot(cw, phase - 1, chunk));
    w->sent_bytes += timed->phase[phase].bytes;
    sim__push(w, list, &op);
}

/* Each chunk over the dimensions in an order of its own. */
static cs_status put_themis(sim_lower_work *w, sim_op_list *list, const chunk_writer *cw,
                            const sim_op *op, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t c = 0; c < cw->chunks; c++) {
        sim_timed own;
        CS_TRY(sim__timed_themis(&w->l->timing, cw->timed, w->load, &own, err));
        for (size_t p = 0; p < own.n_phases; p++)
            put_chunk(w, list, cw, &own, *op, p, c);
    }
done:
    return status;
}

/* Chunks of a collective, phase-major, after the inputs in `op`; *end is the slot of its last chunk
 * (under `program` later chunks never end before earlier ones). */
cs_status sim__put_collective(sim_lower_work *w, sim_op_list *list, const sim_timed *timed,
                              size_t chunks, const sim_op *op, int cause, int16_t *end,
                              cs_error *err)
{
    cs_status status = CS_OK;
    int32_t scheduling = w->l->job->network->scheduling;
    chunk_writer cw = {timed, chunks, sim__distinct_slots(w->l) ? timed->n_phases : 1, w->n_slots};

    if (timed->n_phases == 0) {
        sim_op none = *op;
        none.server = SIM_NO_SERVER;
        none.out = *end = sim__new_slot(w, cause);
        sim__push(w, list, &none);
        return CS_OK;
    }
    for (size_t c = 0; c < chunks * cw.copies; c++)
        (void)sim__new_slot(w, cause);
    if (scheduling == SIM_THEMIS && timed->n_phases > 1 && chunks > 1)
        CS_TRY(put_themis(w, list, &cw, op, err));
    else
        for (size_t p = 0; p < timed->n_phases; p++)
            for (size_t c = 0; c < chunks; c++)
                put_chunk(w, list, &cw, timed, *op, p, c);
    *end = chunk_slot(&cw, timed->n_phases - 1, chunks - 1);
    if (scheduling != SIM_PROGRAM)
        *end = join_chunks(w, list, chunk_slot(&cw, timed->n_phases - 1, 0), chunks, cause);
done:
    return status;
}
