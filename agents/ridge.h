/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A model of the energy cheap enough for every proposal: one effect per variable, linear in the
 * features of numbers and free for each value of a category, fitted by recursive least squares
 * (Haykin, Adaptive Filter Theory, chapter 10).  The change by a move is the difference of two
 * effects. */
#ifndef AGENTS_RIDGE_H
#define AGENTS_RIDGE_H

#include "agents/agents_private.h"

typedef struct agent__ridge agent__ridge;

/* For the points of `space` (borrowed).  NULL when out of memory.  O(values x terms). */
agent__ridge *agent__ridge_create(const psa_space *space);
void agent__ridge_destroy(agent__ridge *ridge); /* NULL is a no-op */

/* Takes in one evaluated point.  Energies far above the lowest seen so far count less.
 * O(terms^2). */
void agent__ridge_learn(agent__ridge *ridge, const int32_t *point, double energy);
/* Predicted energy of a point up to a constant: the sum of its effects.  O(variables). */
double agent__ridge_predict(agent__ridge *ridge, const int32_t *point);

/* Orders moves from a point by the change of energy that the model expects, the most welcome first,
 * as they were on ties; `change` gets the changes.  O(moves^2) at worst. */
void agent__ridge_sort(agent__ridge *ridge, const int32_t *from, size_t n, agent__move *moves,
                       double *change);

/* Walks the model in a snapshot. */
void agent__ridge_io(agent__io *io, agent__ridge *ridge);

#endif
