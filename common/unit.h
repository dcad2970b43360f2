/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Quantities with units.  Inside the program everything is SI base: seconds, bytes, FLOPs, dollars,
 * joules; a unit is its factor and its exponents over those. */
#ifndef CS_UNIT_H
#define CS_UNIT_H

#include "common/common.h"

enum { CS_DIM_TIME, CS_DIM_BYTE, CS_DIM_FLOP, CS_DIM_DOLLAR, CS_DIM_JOULE, CS_DIM_COUNT };

/* Exponents of a physical dimension, e.g. bandwidth = {time -1, byte 1}. */
typedef struct {
    int8_t exponent[CS_DIM_COUNT];
} cs_dimension;

#define CS_DIMENSIONLESS ((cs_dimension){{0, 0, 0, 0, 0}})
#define CS_SECONDS       ((cs_dimension){{1, 0, 0, 0, 0}})
#define CS_BYTES         ((cs_dimension){{0, 1, 0, 0, 0}})
#define CS_BANDWIDTH     ((cs_dimension){{-1, 1, 0, 0, 0}})
#define CS_FLOPS         ((cs_dimension){{0, 0, 1, 0, 0}})
#define CS_FLOP_RATE     ((cs_dimension){{-1, 0, 1, 0, 0}})
#define CS_DOLLARS       ((cs_dimension){{0, 0, 0, 1, 0}})
#define CS_JOULES        ((cs_dimension){{0, 0, 0, 0, 1}})
#define CS_WATTS         ((cs_dimension){{-1, 0, 0, 0, 1}})

bool cs_dimension_equal(cs_dimension a, cs_dimension b);

/* Looks up a unit name ("GB/s", "GiB/s", "Gb/s", "us", "TFLOP/s", "GiB", "W", "pJ/bit", "$");
 * `length` bytes of `name`.  Returns false for an unknown or ambiguous one ("G", "GBps", "Gbyte").
 * factor converts to SI base. */
bool cs_unit_find(const char *name, size_t length, double *factor, cs_dimension *dimension);

/* Parses "500 GB/s" or "0.5us" wholly.  A bare number is refused when `expected` has a dimension,
 * and a unit is refused when it has none.  The message (no file position) says what was expected
 * and names examples. */
CS_MUST_USE cs_status cs_quantity_parse(const char *text, cs_dimension expected, double *value,
                                        cs_error *err);

/* Human text of an SI value in a fitting unit, e.g. 5e10 bandwidth -> "50 GB/s"; returns text. */
const char *cs_quantity_text(double value, cs_dimension dimension, char text[48]);
/* SI symbol of a dimension ("B/s", "s", "" ). */
const char *cs_dimension_symbol(cs_dimension dimension);

#endif
