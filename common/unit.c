/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Units as one table; a compound unit is at most numerator "/" denominator. */
#include "common/unit.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    double factor;
    int dimension; /* CS_DIM_*; -1 none */
} unit;

static const unit units[] = {
    {"s", 1, CS_DIM_TIME},        {"ms", 1e-3, CS_DIM_TIME},    {"us", 1e-6, CS_DIM_TIME},
    {"ns", 1e-9, CS_DIM_TIME},    {"ps", 1e-12, CS_DIM_TIME},   {"min", 60, CS_DIM_TIME},
    {"h", 3600, CS_DIM_TIME},     {"B", 1, CS_DIM_BYTE},        {"KB", 1e3, CS_DIM_BYTE},
    {"kB", 1e3, CS_DIM_BYTE},     {"MB", 1e6, CS_DIM_BYTE},     {"GB", 1e9, CS_DIM_BYTE},
    {"TB", 1e12, CS_DIM_BYTE},    {"KiB", 0x1p10, CS_DIM_BYTE}, {"MiB", 0x1p20, CS_DIM_BYTE},
    {"GiB", 0x1p30, CS_DIM_BYTE}, {"TiB", 0x1p40, CS_DIM_BYTE}, {"b", 0.125, CS_DIM_BYTE},
    {"bit", 0.125, CS_DIM_BYTE},  {"Kb", 125, CS_DIM_BYTE},     {"Mb", 125e3, CS_DIM_BYTE},
    {"Gb", 125e6, CS_DIM_BYTE},   {"Tb", 125e9, CS_DIM_BYTE},   {"FLOP", 1, CS_DIM_FLOP},
    {"MFLOP", 1e6, CS_DIM_FLOP},  {"GFLOP", 1e9, CS_DIM_FLOP},  {"TFLOP", 1e12, CS_DIM_FLOP},
    {"PFLOP", 1e15, CS_DIM_FLOP}, {"EFLOP", 1e18, CS_DIM_FLOP}, {"$", 1, CS_DIM_DOLLAR},
    {"USD", 1, CS_DIM_DOLLAR},    {"k$", 1e3, CS_DIM_DOLLAR},   {"M$", 1e6, CS_DIM_DOLLAR},
    {"J", 1, CS_DIM_JOULE},       {"mJ", 1e-3, CS_DIM_JOULE},   {"kJ", 1e3, CS_DIM_JOULE},
    {"MJ", 1e6, CS_DIM_JOULE},    {"pJ", 1e-12, CS_DIM_JOULE},  {"nJ", 1e-9, CS_DIM_JOULE},
    {"Wh", 3600, CS_DIM_JOULE},   {"kWh", 3.6e6, CS_DIM_JOULE},
};

/* Units that are quotients themselves. */
static const struct {
    const char *name;
    double factor;
    cs_dimension dimension;
} derived_units[] = {
    {"W", 1, CS_WATTS},    {"mW", 1e-3, CS_WATTS},        {"kW", 1e3, CS_WATTS},
    {"MW", 1e6, CS_WATTS}, {"Hz", 1, {{-1, 0, 0, 0, 0}}},
};

bool cs_dimension_equal(cs_dimension a, cs_dimension b)
{
    return memcmp(a.exponent, b.exponent, sizeof a.exponent) == 0;
}

static const unit *find_simple(const char *name, size_t length)
{
    for (size_t i = 0; i < CS_COUNT(units); i++)
        if (strlen(units[i].name) == length && strncmp(units[i].name, name, length) == 0)
            return &units[i];
    return NULL;
}

static bool find_derived(const char *name, size_t length, double *factor, cs_dimension *dimension)
{
    for (size_t i = 0; i < CS_COUNT(derived_units); i++)
        if (strlen(derived_units[i].name) == length &&
            strncmp(derived_units[i].name, name, length) == 0) {
            *factor = derived_units[i].factor;
            *dimension = derived_units[i].dimension;
            return true;
        }
    return false;
}

bool cs_unit_find(const char *name, size_t length, double *factor, cs_dimension *dimension)
{
    const char *slash = memchr(name, '/', length);
    size_t top = slash == NULL ? length : (size_t)(slash - name);
    const unit *numerator = find_simple(name, top);
    const unit *denominator = NULL;

    if (numerator == NULL)
        return slash == NULL && find_derived(name, length, factor, dimension);
    if (slash != NULL) {
        denominator = find_simple(slash + 1, length - top - 1);
        if (denominator == NULL)
            return false;
    }
    *dimension = CS_DIMENSIONLESS;
    *factor = numerator->factor;
    dimension->exponent[numerator->dimension]++;
    if (denominator != NULL) {
        *factor /= denominator->factor;
        dimension->exponent[denominator->dimension]--;
    }
    return true;
}

/* Names of units to suggest for a dimension, and its symbol and human prefixes. */
static const struct {
    cs_dimension dimension;
    const char *examples, *symbol;
    const char *unit_name[6];
    double unit_factor[6];
} dimension_names[] = {
    {CS_SECONDS, "500 ns, 1.7 us, 2 ms", "s", {"ns", "us", "ms", "s"}, {1e-9, 1e-6, 1e-3, 1}},
    {CS_BYTES, "24 GB, 80 GiB", "B", {"B", "KB", "MB", "GB", "TB"}, {1, 1e3, 1e6, 1e9, 1e12}},
    {CS_BANDWIDTH,
     "50 GB/s, 25 GiB/s, 400 Gb/s",
     "B/s",
     {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"},
     {1, 1e3, 1e6, 1e9, 1e12}},
    {CS_FLOPS,
     "1 TFLOP",
     "FLOP",
     {"FLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"},
     {1, 1e6, 1e9, 1e12, 1e15, 1e18}},
    {CS_FLOP_RATE,
     "989 TFLOP/s",
     "FLOP/s",
     {"FLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"},
     {1, 1e6, 1e9, 1e12, 1e15}},
    {CS_DOLLARS, "1000 $", "$", {"$", "k$", "M$"}, {1, 1e3, 1e6}},
    {CS_JOULES, "3 kJ", "J", {"pJ", "J", "kJ", "MJ"}, {1e-12, 1, 1e3, 1e6}},
    {CS_WATTS, "700 W", "W", {"W", "kW", "MW"}, {1, 1e3, 1e6}},
    {{{0, -1, 0, 0, 1}}, "10 pJ/bit", "J/B", {"J/B"}, {1}},
};

static const char *examples_of(cs_dimension dimension)
{
    for (size_t i = 0; i < CS_COUNT(dimension_names); i++)
        if (cs_dimension_equal(dimension_names[i].dimension, dimension))
            return dimension_names[i].examples;
    return "a number with a unit";
}

const char *cs_dimension_symbol(cs_dimension dimension)
{
    for (size_t i = 0; i < CS_COUNT(dimension_names); i++)
        if (cs_dimension_equal(dimension_names[i].dimension, dimension))
            return dimension_names[i].symbol;
    return "";
}

cs_status cs_quantity_parse(const char *text, cs_dimension expected, double *value, cs_error *err)
{
    bool bare_wanted = cs_dimension_equal(expected, CS_DIMENSIONLESS);
    char *end;
    double number, factor = 1;
    cs_dimension dimension = CS_DIMENSIONLESS;

    number = strtod(text, &end);
    if (end == text || !isfinite(number) || strpbrk(text, "xX") == text + 1)
        return cs_fail(err, CS_EPARSE, "expected a number%s%s, found '%.60s'",
                       bare_wanted ? "" : " with a unit, such as ",
                       bare_wanted ? "" : examples_of(expected), text);
    while (isspace((unsigned char)*end))
        end++;
    if (*end == '\0' && !bare_wanted)
        return cs_fail(err, CS_EPARSE, "'%.60s' has no unit; write it as, for example, %s", text,
                       examples_of(expected));
    if (*end != '\0' && !cs_unit_find(end, strlen(end), &factor, &dimension))
        return cs_fail(err, CS_EPARSE, "unknown unit '%.40s'; write, for example, %s", end,
                       examples_of(expected));
    if (!cs_dimension_equal(dimension, expected))
        return cs_fail(err, CS_EPARSE, "unit '%.40s' does not fit here; expected %s%s", end,
                       bare_wanted ? "a number without a unit" : "for example ",
                       bare_wanted ? "" : examples_of(expected));
    *value = number * factor;
    if (!isfinite(*value))
        return cs_fail(err, CS_EPARSE, "'%.60s' is too large", text);
    return CS_OK;
}

const char *cs_quantity_text(double value, cs_dimension dimension, char text[48])
{
    for (size_t i = 0; i < CS_COUNT(dimension_names); i++) {
        size_t u = 0;

        if (!cs_dimension_equal(dimension_names[i].dimension, dimension))
            continue;
        while (u + 1 < 6 && dimension_names[i].unit_name[u + 1] != NULL &&
               fabs(value) >= dimension_names[i].unit_factor[u + 1] * (1 - 1e-9))
            u++;
        (void)snprintf(text, 48, "%.6g %s", value / dimension_names[i].unit_factor[u],
                       dimension_names[i].unit_name[u]);
        return text;
    }
    return cs_double_text(value, text);
}
