/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Messages on the network.  Back end unaware: one delay, from the lowest dimension in which the
 * ends differ.  Back end aware: the whole message is stored and forwarded over individual directed
 * links, dimension by dimension from the lowest; a link holds a message for floor(m / B) ns, and
 * it is at the next device floor(latency + m / B) ns after it was taken up; others wait in order.
 * Links of an NPU: on a ring one each way (the shortest way, ties upwards), fully connected one to
 * each peer, on a switch one up and one down. */
#include "sim/astra_engine.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LINKS ((size_t)1 << 28)

cs_status sim__network_create(sim__engine *engine, cs_error *err)
{
    const sim_astra_network *net = &engine->astra->network;
    size_t n = 0;

    for (size_t d = 0; d < net->n_dims; d++) {
        const bool full = net->dim[d].topology == SIM_FULLY_CONNECTED;
        engine->links_per_npu[d] = full ? (size_t)net->dim[d].n : 2;
        engine->link_base[d] = n;
        if (engine->links_per_npu[d] > MAX_LINKS / (size_t)net->npus)
            return cs_fail(err, CS_EINVAL, "dimension %zu has too many links to simulate", d + 1);
        n += engine->links_per_npu[d] * (size_t)net->npus;
    }
    engine->link = malloc(n * sizeof *engine->link);
    if (engine->link == NULL)
        return cs_fail(err, CS_ENOMEM, "%zu links", n);
    for (size_t i = 0; i < n; i++)
        engine->link[i] = (sim__link){SIM__NONE, SIM__NONE, false};
    return CS_OK;
}

/* Next link of a message; sets where it will be after it. */
static uint32_t next_link(const sim__engine *engine, sim__message *m, size_t *dim)
{
    const sim_astra_network *net = &engine->astra->network;
    const size_t d = sim__astra_pair_dim(net, m->at, m->to);
    const int64_t n = net->dim[d].n, stride = engine->stride[d];
    const int64_t a = m->at / stride % n, b = m->to / stride % n;
    const size_t base = engine->link_base[d];
    const size_t own = base + m->at * engine->links_per_npu[d];
    const int64_t target = m->at + (b - a) * stride;
    const int64_t up = b > a ? b - a : b - a + n;

    *dim = d;
    m->switch_next = 0;
    m->at_next = (uint32_t)target;
    if (net->dim[d].topology == SIM_FULLY_CONNECTED)
        return (uint32_t)(own + (size_t)b);
    if (net->dim[d].topology == SIM_SWITCH) {
        if (m->in_switch != 0)
            return (uint32_t)(base + (size_t)target * 2 + 1);
        m->switch_next = (uint8_t)(d + 1);
        m->at_next = m->at;
        return (uint32_t)own;
    }
    if (up <= n - up) {
        m->at_next = (uint32_t)(m->at + (a + 1 == n ? (1 - n) * stride : stride));
        return (uint32_t)own;
    }
    m->at_next = (uint32_t)(m->at - (a == 0 ? (1 - n) * stride : stride));
    return (uint32_t)own + 1;
}

/* Dimension of a link. */
static size_t link_dim(const sim__engine *engine, uint32_t link)
{
    size_t d = 0;

    while (d + 1 < engine->astra->network.n_dims && link >= engine->link_base[d + 1])
        d++;
    return d;
}

static double link_share(const sim__engine *engine, uint32_t link)
{
    for (size_t i = 0; i < engine->n_slow; i++)
        if (engine->slow[i].link == link)
            return engine->slow[i].share;
    return 1.0;
}

static void transmit(sim__engine *engine, uint32_t link, size_t d, uint32_t message)
{
    sim_astra_dim dim = engine->astra->network.dim[d];
    const int64_t bytes = sim__message_at(engine, message)->bytes;

    dim.bandwidth_gib_per_s *= link_share(engine, link);
    engine->link[link].busy = true;
    sim__event_push(engine, engine->now + sim__astra_delay(&dim, 1, bytes), SIM__EVENT_ARRIVAL,
                    message);
    sim__event_push(engine, engine->now + sim__astra_delay(&dim, 0, bytes), SIM__EVENT_LINK, link);
}

static void forward(sim__engine *engine, uint32_t message)
{
    sim__message *m = sim__message_at(engine, message);
    size_t d;
    const uint32_t index = next_link(engine, m, &d);
    sim__link *link = &engine->link[index];

    if (!link->busy) {
        transmit(engine, index, d, message);
        return;
    }
    m->next = SIM__NONE;
    if (link->head == SIM__NONE)
        link->head = message;
    else
        sim__message_at(engine, link->tail)->next = message;
    link->tail = message;
}

void sim__network_send(sim__engine *engine, uint32_t message)
{
    const sim_astra_network *net = &engine->astra->network;
    const sim__message *m = sim__message_at(engine, message);

    if (engine->sent != NULL)
        engine->sent[m->at * net->n_dims + sim__astra_pair_dim(net, m->at, m->to)] +=
            (double)m->bytes;
    if (engine->link != NULL)
        forward(engine, message);
    else
        sim__event_push(engine, engine->now + sim__astra_pair_delay(net, m->at, m->to, m->bytes),
                        SIM__EVENT_ARRIVAL, message);
}

void sim__network_arrival(sim__engine *engine, uint32_t message)
{
    sim__message *m = sim__message_at(engine, message);

    if (engine->link != NULL) {
        m->at = m->at_next;
        m->in_switch = m->switch_next;
        if (m->at != m->to || m->in_switch != 0) {
            forward(engine, message);
            return;
        }
    }
    sim__message_arrived(engine, message);
}

void sim__network_link_free(sim__engine *engine, uint32_t index)
{
    sim__link *link = &engine->link[index];
    const uint32_t message = link->head;

    link->busy = false;
    if (message == SIM__NONE)
        return;
    link->head = sim__message_at(engine, message)->next;
    transmit(engine, index, link_dim(engine, index), message);
}
