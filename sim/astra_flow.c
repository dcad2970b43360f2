/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Collectives on which all NPUs are alike: the time of one chunk in each phase in closed form, and
 * the chunks through a re-entrant flow shop (one station per queue, FIFO, a few slots each).
 *
 * With delay d, endpoint delay e and reduction r of a message, n members, L = log2 n:
 *   ring             e + steps (d + e) + (n - 1) r for all-reduce and reduce-scatter
 *   direct           e + d + e (+ r) a half, where all peers are equally far; else replayed for
 *                    one NPU, whose own messages stand for those it receives
 *   halving-doubling e + sum over messages (d_i + e) + r of messages 2..L of the reducing half */
#include "sim/astra_private.h"

#include <stdlib.h>
#include <string.h>

bool sim__astra_is_symmetric(const sim_astra *astra, const sim_astra_op *op,
                             const sim__astra_plan *plan)
{
    (void)astra;
    if (op->backend != SIM_ASTRA_UNAWARE)
        return false;
    for (size_t p = 0; p < plan->n_phases; p++)
        if (plan->phase[p].listed ||
            plan->phase[p].algorithm->algorithm == SIM_ALGO_DOUBLE_BINARY_TREE)
            return false;
    return true;
}

/* Dimension that carries a message to the member `shift` on, and the shift inside it. */
static const sim_astra_dim *carrier(const sim_astra_network *net, const sim__astra_phase *phase,
                                    int64_t *shift, size_t *dim)
{
    size_t d = phase->level;

    *shift = *shift < 0 ? -*shift : *shift;
    for (; phase->algorithm->one && d + 1 < net->n_dims && *shift % net->dim[d].n == 0; d++)
        *shift /= net->dim[d].n;
    *shift %= net->dim[d].n;
    *dim = d;
    return &net->dim[d];
}

static int64_t shift_delay(const sim_astra_network *net, const sim__astra_phase *phase,
                           int64_t shift, int64_t bytes)
{
    size_t d;
    const sim_astra_dim *dim = carrier(net, phase, &shift, &d);

    return sim__astra_delay(dim, sim__astra_hops(dim, shift), bytes);
}

/* ---- direct: one NPU replayed ---- */

typedef enum { TIMER, ARRIVAL } direct_kind;
typedef struct {
    int64_t at;
    int64_t seq;
    direct_kind kind;
    bool reduce; /* timer: the reduction is still to come */
} direct_event;

typedef struct {
    const sim__astra_sequence *seq;
    int64_t endpoint_ns, reduction_ns;
    const int64_t *delay_ns; /* by peer, n - 1 of them */
    direct_event *heap;
    size_t n_events;
    int64_t now, counter;
    int64_t inserted, sent, received, idle, last_send_ns;
} direct_run;

static bool direct_before(const direct_event *a, const direct_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void direct_push(direct_run *run, int64_t at, direct_kind kind, bool reduce)
{
    const direct_event event = {at, run->counter++, kind, reduce};
    size_t i = run->n_events++;

    while (i > 0 && direct_before(&event, &run->heap[(i - 1) / 2])) {
        run->heap[i] = run->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    run->heap[i] = event;
}

static direct_event direct_pop(direct_run *run)
{
    const direct_event top = run->heap[0];
    const direct_event last = run->heap[--run->n_events];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= run->n_events)
            break;
        if (child + 1 < run->n_events && direct_before(&run->heap[child + 1], &run->heap[child]))
            child++;
        if (!direct_before(&run->heap[child], &last))
            break;
        run->heap[i] = run->heap[child];
        i = child;
    }
    run->heap[i] = last;
    return top;
}

static void direct_insert(direct_run *run)
{
    const bool reduce = sim__astra_is_reduced(run->seq, run->inserted++);

    direct_push(run, run->now + run->endpoint_ns, TIMER, reduce && run->reduction_ns > 0);
}

static void direct_send(direct_run *run)
{
    if (run->inserted == run->sent || run->sent == run->seq->sends || run->idle == 0)
        return;
    direct_push(run, run->now + run->delay_ns[run->sent % (run->seq->n - 1)], ARRIVAL, false);
    run->last_send_ns = run->now;
    run->sent++;
    run->idle--;
}

/* A packet is ready.  The second half of an all-reduce starts when the first has arrived. */
static bool direct_ready(direct_run *run)
{
    const int64_t left = run->seq->sends - run->sent;
    int64_t tries = 1;

    run->idle++;
    if (run->seq->half > 0 && left <= run->seq->half) {
        if (run->received < run->seq->half)
            return false;
        tries = run->seq->window;
    }
    while (tries-- > 0)
        direct_send(run);
    return run->sent == run->seq->sends && run->idle == run->seq->window;
}

static int64_t direct_replay(direct_run *run)
{
    for (int64_t i = 0; i < run->seq->window; i++)
        direct_insert(run);
    while (run->n_events > 0) {
        const direct_event event = direct_pop(run);
        run->now = event.at;
        if (event.kind == ARRIVAL) {
            run->received++;
            direct_insert(run);
        } else if (event.reduce)
            direct_push(run, run->now + run->reduction_ns, TIMER, false);
        else if (direct_ready(run))
            break;
    }
    return run->now;
}

/* ---- phases ---- */

/* Time of a phase, and what orders phases that end together: when the timer that ends it was set,
 * and when the last message left, both counted back from the end. */
typedef struct {
    int64_t ns, timer_ns, send_ns;
    size_t queue;
} station;

static cs_status ring_station(const sim_astra *astra, const sim__astra_phase *phase,
                              const sim__astra_sequence *seq, int64_t endpoint, station *out,
                              cs_error *err)
{
    const int64_t delay = shift_delay(&astra->network, phase, 1, seq->bytes);
    const int64_t reduction = sim__astra_reduction(&astra->system, seq->bytes);
    const bool last_reduced = sim__astra_is_reduced(seq, seq->sends);

    (void)err;
    out->ns = endpoint + seq->sends * (delay + endpoint);
    if (seq->reduces)
        out->ns += (phase->n - 1) * reduction;
    out->timer_ns = last_reduced ? reduction : endpoint;
    out->send_ns = delay + endpoint + (last_reduced ? reduction : 0);
    return CS_OK;
}

static cs_status halving_station(const sim_astra *astra, const sim__astra_phase *phase,
                                 const sim__astra_sequence *seq, int64_t endpoint, station *out,
                                 cs_error *err)
{
    int64_t delay = 0;

    (void)err;
    out->ns = endpoint;
    for (int64_t k = 0; k < seq->sends; k++) {
        const int64_t bytes = sim__astra_message_bytes(phase, seq, k);
        delay =
            shift_delay(&astra->network, phase, sim__astra_message_shift(phase, seq, k, 0), bytes);
        out->ns += delay + endpoint;
        if (sim__astra_is_reduced(seq, k))
            out->ns += sim__astra_reduction(&astra->system, bytes);
    }
    out->timer_ns = endpoint;
    out->send_ns = delay + endpoint;
    return CS_OK;
}

static bool all_equal(const int64_t *values, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

static int64_t direct_equal(const direct_run *run)
{
    const int64_t way = run->delay_ns[0] + run->endpoint_ns;
    const int64_t reduction = run->seq->reduces ? run->reduction_ns : 0;

    return run->endpoint_ns + way + reduction + (run->seq->all_reduce ? way : 0);
}

static cs_status direct_station(const sim_astra *astra, const sim__astra_phase *phase,
                                const sim__astra_sequence *seq, int64_t endpoint, station *out,
                                cs_error *err)
{
    const int64_t peers = phase->n - 1;
    const size_t n_events = (size_t)(2 * seq->sends + seq->window + 2);
    const bool last_reduced = phase->type == WL_REDUCE_SCATTER;
    int64_t *delay = malloc((size_t)peers * sizeof *delay + n_events * sizeof(direct_event));
    direct_run run = {.seq = seq,
                      .endpoint_ns = endpoint,
                      .reduction_ns = sim__astra_reduction(&astra->system, seq->bytes),
                      .delay_ns = delay};

    if (delay == NULL)
        return cs_fail(err, CS_ENOMEM, "a direct collective over %lld NPUs", (long long)phase->n);
    run.heap = (direct_event *)(void *)(delay + peers);
    for (int64_t k = 0; k < peers; k++)
        delay[k] = shift_delay(&astra->network, phase, k + 1, seq->bytes);
    if (seq->window == peers && all_equal(delay, peers)) {
        out->ns = direct_equal(&run);
        out->send_ns = delay[0] + endpoint + (last_reduced ? run.reduction_ns : 0);
    } else {
        out->ns = direct_replay(&run);
        out->send_ns = out->ns - run.last_send_ns;
    }
    out->timer_ns = last_reduced ? run.reduction_ns : endpoint;
    free(delay);
    return CS_OK;
}

static cs_status station_make(const sim_astra *astra, const sim__astra_phase *phase,
                              int64_t endpoint, station *out, cs_error *err)
{
    const sim__astra_sequence seq = sim__astra_sequence_make(phase);

    switch (phase->algorithm->algorithm) {
    case SIM_ALGO_DIRECT:
        return direct_station(astra, phase, &seq, endpoint, out, err);
    case SIM_ALGO_HALVING_DOUBLING:
        return halving_station(astra, phase, &seq, endpoint, out, err);
    default:
        return ring_station(astra, phase, &seq, endpoint, out, err);
    }
}

/* What one NPU sends in a phase, booked on the dimensions that carry it. */
static void book_bytes(const sim_astra *astra, const sim__astra_plan *plan,
                       const sim__astra_phase *phase, sim_astra_result *out)
{
    const sim__astra_sequence seq = sim__astra_sequence_make(phase);
    const bool same = phase->algorithm->algorithm == SIM_ALGO_RING;

    for (int64_t k = 0; k < (same ? 1 : seq.sends); k++) {
        int64_t shift = sim__astra_message_shift(phase, &seq, k, 0);
        size_t d;
        (void)carrier(&astra->network, phase, &shift, &d);
        out->sent_bytes[d] += (double)sim__astra_message_bytes(phase, &seq, k) *
                              (double)plan->n_chunks * (same ? (double)seq.sends : 1.0);
    }
}

/* ---- flow shop ---- */

typedef struct {
    int64_t at, timer, send, seq;
    uint32_t chunk;
} completion;

typedef struct {
    uint32_t head, tail; /* waiting chunks; NONE when empty */
    int64_t running;
} server;

#define NONE UINT32_MAX

typedef struct {
    const sim__astra_plan *plan;
    const station *phase; /* n_phases times, queues by chunk in `queue` */
    uint8_t *queue;       /* n_chunks * n_phases */
    uint32_t *next;       /* waiting lists */
    uint8_t *at_phase;
    completion *heap;
    size_t n_heap;
    server *server;
    int64_t slots, seq;
} shop;

static bool completes_before(const completion *a, const completion *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if (a->timer != b->timer)
        return a->timer < b->timer;
    if (a->send != b->send)
        return a->send < b->send;
    return a->seq < b->seq;
}

static void shop_push(shop *s, completion c)
{
    size_t i = s->n_heap++;

    while (i > 0 && completes_before(&c, &s->heap[(i - 1) / 2])) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = c;
}

static completion shop_pop(shop *s)
{
    const completion top = s->heap[0];
    const completion last = s->heap[--s->n_heap];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->n_heap)
            break;
        if (child + 1 < s->n_heap && completes_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!completes_before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return top;
}

static size_t shop_queue(const shop *s, uint32_t chunk)
{
    return s->queue[(size_t)chunk * s->plan->n_phases + s->at_phase[chunk]];
}

static void shop_wait(shop *s, uint32_t chunk)
{
    server *q = &s->server[shop_queue(s, chunk)];

    s->next[chunk] = NONE;
    if (q->head == NONE)
        q->head = chunk;
    else
        s->next[q->tail] = chunk;
    q->tail = chunk;
}

static void shop_serve(shop *s, size_t queue, int64_t now)
{
    server *q = &s->server[queue];

    while (q->head != NONE && q->running < s->slots) {
        const uint32_t chunk = q->head;
        const station *phase = &s->phase[s->at_phase[chunk]];
        const int64_t end = now + phase->ns;
        q->head = s->next[chunk];
        q->running++;
        shop_push(s,
                  (completion){end, end - phase->timer_ns, end - phase->send_ns, s->seq++, chunk});
    }
}

static int64_t shop_run(shop *s)
{
    int64_t now = 0;

    for (uint32_t chunk = 0; chunk < s->plan->n_chunks; chunk++) {
        shop_wait(s, chunk);
        shop_serve(s, shop_queue(s, chunk), 0);
    }
    while (s->n_heap > 0) {
        const completion done = shop_pop(s);
        const size_t queue = shop_queue(s, done.chunk);
        const bool more = ++s->at_phase[done.chunk] < s->plan->n_phases;
        now = done.at;
        if (more)
            shop_wait(s, done.chunk);
        s->server[queue].running--;
        shop_serve(s, queue, now);
        if (more)
            shop_serve(s, shop_queue(s, done.chunk), now);
    }
    return now;
}

/* Queues of each chunk's phases are taken in the order of generation: chunk by chunk. */
static size_t assign_queues(const sim_astra *astra, shop *s)
{
    sim__astra_queues queues = {{{0}}};
    size_t n_used = 0;
    uint8_t *slot = s->queue;

    for (int64_t chunk = 0; chunk < s->plan->n_chunks; chunk++)
        for (size_t p = 0; p < s->plan->n_phases; p++) {
            bool reversed;
            const sim__astra_phase *phase = &s->plan->phase[p];
            const size_t queue = sim__astra_queue_take(&astra->system, &queues, phase, &reversed) +
                                 phase->level * (size_t)astra->system.queues_per_dim;
            *slot++ = (uint8_t)queue;
            n_used = queue + 1 > n_used ? queue + 1 : n_used;
        }
    return n_used;
}

static cs_status run_shop(const sim_astra *astra, const sim__astra_plan *plan,
                          const station *stations, int64_t *out, cs_error *err)
{
    const size_t n = (size_t)plan->n_chunks;
    server servers[256];
    shop s = {.plan = plan, .phase = stations, .slots = sim__astra_slots(&astra->system)};
    char *block = calloc(n, sizeof *s.heap + sizeof *s.next + sizeof *s.at_phase +
                                plan->n_phases * sizeof *s.queue);

    if (block == NULL)
        return cs_fail(err, CS_ENOMEM, "%zu chunks", n);
    s.heap = (completion *)(void *)block;
    s.next = (uint32_t *)(void *)(s.heap + n);
    s.at_phase = (uint8_t *)(s.next + n);
    s.queue = s.at_phase + n;
    for (size_t q = 0; q < CS_COUNT(servers); q++)
        servers[q] = (server){NONE, NONE, 0};
    s.server = servers;
    (void)assign_queues(astra, &s);
    *out = shop_run(&s);
    free(block);
    return CS_OK;
}

cs_status sim__astra_flow(const sim_astra *astra, const sim__astra_plan *plan,
                          sim_astra_result *out, cs_error *err)
{
    station stations[SIM__ASTRA_MAX_PHASES];
    cs_status status = CS_OK;

    if (plan->n_phases == 0)
        return CS_OK;
    for (size_t p = 0; p < plan->n_phases; p++) {
        CS_TRY(station_make(astra, &plan->phase[p], plan->endpoint_delay_ns, &stations[p], err));
        book_bytes(astra, plan, &plan->phase[p], out);
    }
    CS_TRY(run_shop(astra, plan, stations, &out->time_ns, err));
    out->min_time_ns = out->time_ns;
done:
    return status;
}
