/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The oracle's machine: individual links of every dimension, routes from NPU to NPU, messages over
 * them. */
#ifndef ORACLE_MACHINE_H
#define ORACLE_MACHINE_H

#include <stdint.h>

#include "oracle.h"
#include "sim/network.h"

/* The machine: links of every dimension, numbered first[dim] + npu * ports[dim] + port. */
typedef struct {
    oracle *o;
    const sim_network *net;
    int64_t npus, step[SIM_MAX_DIMS]; /* NPU ids between neighbours of a dimension */
    int first[SIM_MAX_DIMS], ports[SIM_MAX_DIMS];
    int *enter, *leave; /* per NPU: joins around the phase being built */
} machine;

/* A transfer: one message, or two halves that take the two ways round a ring. */
typedef struct {
    int part[2], n;
} transfer;

/* Builds the links of a network for transfers of about `bytes`; machine_free releases it. */
void machine_make(machine *m, const sim_network *net, double bytes, oracle_order order);
void machine_free(machine *m);

/* A message by the dimension-ordered route; where a ring is a tie, half of it goes each way. */
transfer machine_send(const machine *m, int64_t src, int64_t dst, double bytes);
/* t starts when task `before` (each part of a transfer) has arrived or, with `sent`, has left. */
void machine_after(const machine *m, transfer t, int before, bool sent);
void machine_after_transfer(const machine *m, transfer t, transfer before, bool sent);
void machine_round(const machine *m, transfer t, int value);
/* `npu` leaves the phase only when t has arrived and (as sender) has left. */
void machine_leave_after(const machine *m, int64_t npu, transfer t, bool sent);
/* Joins of the next phase: an NPU enters when it has left the one before. */
void machine_next_phase(machine *m);

#endif
