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

/* How a free link chooses among the messages waiting for it. */
typedef enum {
    ORACLE_URGENT, /* lowest rank, then the message with the most time still to go: latency ahead +
                      bytes left */
    ORACLE_FIFO,   /* the packet that has waited longest */
    ORACLE_N_ARBITRATIONS
} oracle_arbitration;

/* An empty network whose messages travel in packets of `packet_bytes`; aborts the test when out of
 * memory.  The caller owns it. */
oracle *oracle_create(double packet_bytes, oracle_arbitration arbitration);
void oracle_destroy(oracle *o);

/* A directed link; returns its number. */
int oracle_link(oracle *o, double bytes_per_s, double latency_s);

/* A message of `bytes` over the links of `route`; n_hops 0 makes a join, done as soon as what it
 * waits for is done.  Returns its number. */
int oracle_task(oracle *o, double bytes, const int *route, size_t n_hops);

/* `task` starts no earlier than `before` has arrived or, with `sent`, has left its first link's
 * sender. Each pair must be given before oracle_run. */
void oracle_after(oracle *o, int task, int before, bool sent);

/* Rank of a message, 0 by default. */
void oracle_rank(oracle *o, int task, int rank);

/* Runs everything; seconds at which the last task ended, NAN when tasks wait for ever. */
double oracle_run(oracle *o);

/* Seconds at which a task arrived; NAN before oracle_run. */
double oracle_arrival(const oracle *o, int task);

/* Bytes that a link carried. */
double oracle_link_bytes(const oracle *o, int link);

#endif
