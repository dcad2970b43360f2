/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Message-level network oracle: tasks (messages and joins) with dependencies, cut into packets that
 * are forwarded cut-through over individual directed links.  Nothing of it is shared with sim/: it
 * checks the models there. */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct oracle oracle;

/* How a free link chooses among the messages that have packets waiting for it.  DESIGN 5.3 names no
 * order; these are the ones found in networks. */
typedef enum {
    /* The earliest round of its program first (age-based arbitration: Abts and Weisser, SC 2007);
     * of one round the message with the most time still to go, latency ahead + bytes left
     * (furthest to go: Andrews et al., J. ACM 48(1), 2001). */
    ORACLE_AGE,
    ORACLE_FAIR, /* a packet of each message in turn */
    ORACLE_FIFO, /* packets as they came; a message enters the queue of its sender whole */
    ORACLE_N_ORDERS
} oracle_order;

/* An empty network whose messages travel in packets of `packet_bytes`; aborts the test when out of
 * memory.  The caller owns it. */
oracle *oracle_create(double packet_bytes, oracle_order order);
void oracle_destroy(oracle *o);

/* A directed link; returns its number. */
int oracle_link(oracle *o, double bytes_per_s, double latency_s);

/* A message of `bytes` over the links of `route`; n_hops 0 makes a join, done as soon as what it
 * waits for is done.  Returns its number. */
int oracle_task(oracle *o, double bytes, const int *route, size_t n_hops);

/* `task` starts no earlier than `before` has arrived or, with `sent`, has left its first link's
 * sender. Each pair must be given before oracle_run. */
void oracle_after(oracle *o, int task, int before, bool sent);

/* Round of a message, 0 by default; ORACLE_AGE alone looks at it. */
void oracle_round(oracle *o, int task, int round);

/* Runs everything; seconds at which the last task ended, NAN when tasks wait for ever. */
double oracle_run(oracle *o);

/* Seconds at which a task arrived; NAN before oracle_run. */
double oracle_arrival(const oracle *o, int task);

/* Bytes that a link carried. */
double oracle_link_bytes(const oracle *o, int link);

#endif
