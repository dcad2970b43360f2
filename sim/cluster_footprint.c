/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A group given as a list of ranks, seen as a product of parts of the dimensions. */
#include "sim/cluster_private.h"

#include <stdlib.h>
#include <string.h>

/* Coordinates the ranks take on one dimension, ascending. */
static uint32_t coordinates(const int64_t *rank, uint32_t n, int64_t stride, int64_t size,
                            int64_t *out)
{
    unsigned char *seen = calloc((size_t)size, 1);
    uint32_t count = 0;

    if (seen == NULL)
        return 0;
    for (uint32_t j = 0; j < n; j++)
        seen[rank[j] / stride % size] = 1;
    for (int64_t x = 0; x < size; x++)
        if (seen[x] != 0)
            out[count++] = x;
    free(seen);
    return count;
}

/* Cuts ascending coordinates into progressions inside progressions; false when they are not. */
static bool cut_into_spans(uint8_t dim, int64_t *x, uint32_t n, sim_footprint *out)
{
    while (n > 1) {
        const int64_t stride = x[1] - x[0];
        uint32_t run = 1;
        while (run < n && x[run] == x[0] + (int64_t)run * stride)
            run++;
        if (n % run != 0 || out->n_spans == CS_COUNT(out->span))
            return false;
        for (uint32_t i = 0; i < n; i++)
            if (x[i] - x[i - i % run] != (int64_t)(i % run) * stride)
                return false;
        out->span[out->n_spans++] = (sim_span){dim, run, stride};
        for (uint32_t i = 0; i < n / run; i++)
            x[i] = x[i * run];
        n /= run;
    }
    return true;
}

/* Whether the spans on a dimension come out whole wherever they start: 2 of 8, 6 apart, do not. */
static bool spans_tile(const sim_network *net, uint8_t dim, const sim_footprint *f)
{
    for (size_t i = 0; i < f->n_spans; i++)
        if (f->span[i].dim == dim && net->dim[dim].n % (f->span[i].n * f->span[i].stride) != 0)
            return false;
    return true;
}

/* Two ranks apart in several dimensions, or by what is no part of one: on a ring, and where any
 * distance is the same, the other way round may be. */
static bool pair_of_ranks(const sim_network *net, const int64_t *rank, sim_footprint *out)
{
    int64_t stride = 1;

    *out = (sim_footprint){.n = 2, .routed = true, .pair = true};
    for (size_t d = 0; d < net->n_dims; stride *= net->dim[d++].n) {
        const int64_t size = net->dim[d].n;
        int64_t apart = llabs(rank[1] / stride % size - rank[0] / stride % size);
        if (apart == 0)
            continue;
        if (size % (2 * apart) != 0 && net->dim[d].topology != SIM_MESH)
            apart = size - apart;
        if (size % (2 * apart) != 0)
            return false;
        out->span[out->n_spans++] = (sim_span){(uint8_t)d, 2, apart};
    }
    return out->n_spans > 0;
}

bool sim__footprint_of_ranks(const sim_network *net, const int64_t *rank, uint32_t n,
                             sim_footprint *out)
{
    int64_t stride = 1, product = 1, longest = 1;
    int64_t *x;
    bool is_product = true;

    *out = (sim_footprint){.n = n};
    for (size_t d = 0; d < net->n_dims; d++)
        longest = net->dim[d].n > longest ? net->dim[d].n : longest;
    x = malloc((size_t)longest * sizeof *x);
    for (size_t d = 0; d < net->n_dims && x != NULL && is_product; stride *= net->dim[d++].n) {
        const uint32_t count = coordinates(rank, n, stride, net->dim[d].n, x);
        product *= count;
        is_product = count > 0 && product <= n && cut_into_spans((uint8_t)d, x, count, out) &&
                     spans_tile(net, (uint8_t)d, out);
    }
    is_product = x != NULL && is_product && product == n;
    free(x);
    return is_product || (n == 2 && pair_of_ranks(net, rank, out));
}
