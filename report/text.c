/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Numbers as people read them. */
#include "report/report.h"

#include <math.h>
#include <string.h>

/* Copies digits into text with a comma before every third from the right. */
static void put_thousands(const char *digits, char *text, size_t size)
{
    const size_t n = strlen(digits);
    size_t at = 0;

    for (size_t i = 0; i < n && at + 2 < size; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

const char *report_count(unsigned __int128 value, char text[64])
{
    char digits[40];

    put_thousands(cs_u128_text(value, digits), text, 64);
    return text;
}

static const char *dollars(double value, char text[64])
{
    char digits[48];

    if (fabs(value) >= 1e15) {
        snprintf(text, 64, "$%.4g", value);
        return text;
    }
    snprintf(digits, sizeof digits, "%.0f", fabs(value));
    text[0] = '$';
    put_thousands(digits, text + 1, 63);
    return text;
}

/* Scaled names of the quantities results consist of; the first whose factor fits is used. */
typedef struct {
    cs_dimension unit;
    const char *name;
    double factor;
} scale;

static const scale scales[] = {
    {CS_SECONDS, "s", 1},         {CS_SECONDS, "ms", 1e-3},    {CS_SECONDS, "us", 1e-6},
    {CS_SECONDS, "ns", 1e-9},     {CS_BYTES, "TB", 1e12},      {CS_BYTES, "GB", 1e9},
    {CS_BYTES, "MB", 1e6},        {CS_BYTES, "kB", 1e3},       {CS_BYTES, "B", 1},
    {CS_BANDWIDTH, "TB/s", 1e12}, {CS_BANDWIDTH, "GB/s", 1e9}, {CS_BANDWIDTH, "MB/s", 1e6},
    {CS_BANDWIDTH, "B/s", 1},     {CS_FLOPS, "EFLOP", 1e18},   {CS_FLOPS, "PFLOP", 1e15},
    {CS_FLOPS, "TFLOP", 1e12},    {CS_FLOPS, "GFLOP", 1e9},    {CS_FLOPS, "FLOP", 1},
};

/* The largest unit that `value` fills, the smallest for less; 0 has the base unit. */
static const scale *fitting_scale(double value, cs_dimension unit)
{
    const scale *last = NULL;

    for (size_t i = 0; i < CS_COUNT(scales); i++) {
        if (!cs_dimension_equal(scales[i].unit, unit))
            continue;
        last = &scales[i];
        if (value == 0.0 ? last->factor == 1.0 : fabs(value) >= last->factor)
            return last;
    }
    return last;
}

const char *report_quantity(double value, cs_dimension unit, char text[64])
{
    const scale *s;

    if (!isfinite(value)) {
        snprintf(text, 64, "-");
        return text;
    }
    if (cs_dimension_equal(unit, CS_DOLLARS))
        return dollars(value, text);
    s = fitting_scale(value, unit);
    if (s != NULL)
        snprintf(text, 64, "%.4g %s", value / s->factor, s->name);
    else if (cs_dimension_equal(unit, CS_DIMENSIONLESS))
        snprintf(text, 64, "%.6g", value);
    else
        snprintf(text, 64, "%.6g %s", value, cs_dimension_symbol(unit));
    return text;
}

const char *report_bar(double share, size_t width, char text[64])
{
    const size_t n = width < 63 ? width : 63;
    const double clipped = isfinite(share) ? fmin(fmax(share, 0.0), 1.0) : 0.0;
    const size_t filled = (size_t)lround(clipped * (double)n);

    memset(text, '#', filled);
    memset(text + filled, '.', n - filled);
    text[n] = '\0';
    return text;
}
