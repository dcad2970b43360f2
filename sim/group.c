/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * From mesh axes to network dimensions.  NPU ids are mixed-radix numbers twice over: digits of the
 * mesh axes in placement order, and coordinates of the dimensions.  An axis whose digit covers the
 * ids [s, s*a) is a product of parts of dimensions when every dimension boundary divides, or is
 * divided by, both ends of it. */
#include "sim/group.h"

#include <string.h>

static const int64_t MOST_NPUS = INT64_C(1) << 40;

/* Digits of the mesh with more than one value, innermost first. */
static cs_status read_digits(const sim_mesh *mesh, sim_order order, sim__layout *out, cs_error *err)
{
    int64_t stride = 1;

    out->n = 0;
    for (int i = 0; i < WL_N_AXES; i++) {
        int axis = (order >> (4 * i)) & 15;
        int64_t size = axis < WL_N_AXES ? mesh->size[axis] : 0;
        if (size < 1 || size > MOST_NPUS / stride)
            return cs_fail(err, CS_EINVAL, "placement: axis %s has %lld NPUs",
                           axis < WL_N_AXES ? wl_axis_names[axis] : "?", (long long)size);
        if (size > 1)
            out->digit[out->n++] = (sim__digit){stride, size, (wl_group)(1u << axis)};
        stride *= size;
    }
    out->used = stride;
    return CS_OK;
}

cs_status sim__layout_make(const sim_network *net, const sim_mesh *mesh, sim_order order,
                           sim__layout *out, cs_error *err)
{
    int64_t npus = 1;
    cs_status status = read_digits(mesh, order, out, err);

    if (status != CS_OK)
        return status;
    for (size_t d = 0; d < net->n_dims; d++) {
        int64_t n = net->dim[d].n;
        if (n < 1 || n > MOST_NPUS / npus)
            return cs_fail(err, CS_EINVAL, "network: dimension %zu has %lld NPUs", d + 1,
                           (long long)n);
        npus *= n;
    }
    if (out->used > npus)
        return cs_fail(err, CS_EINVAL, "the degrees multiply to %lld NPUs, the network has %lld",
                       (long long)out->used, (long long)npus);
    out->npus = npus;
    return CS_OK;
}

/* One dimension boundary against a digit: parts must come out whole in every block. */
static bool boundary_fits(int64_t boundary, const sim__digit *digit, int64_t used)
{
    int64_t end = digit->stride * digit->size;

    if (boundary >= used)
        return true;
    if (boundary <= digit->stride)
        return digit->stride % boundary == 0;
    if (boundary >= end)
        return boundary % end == 0;
    return boundary % digit->stride == 0 && end % boundary == 0;
}

static void append(sim_footprint *f, size_t dim, int64_t n, int64_t stride)
{
    sim_span *last = f->n_spans > 0 ? &f->span[f->n_spans - 1] : NULL;

    if (last != NULL && last->dim == dim && last->stride * last->n == stride)
        last->n *= n;
    else
        f->span[f->n_spans++] = (sim_span){(uint8_t)dim, n, stride};
}

/* Adds the parts of one digit; false when it is no product. */
static bool split_digit(const sim_network *net, const sim__digit *digit, int64_t used,
                        sim_footprint *out)
{
    int64_t start = 1, end = digit->stride * digit->size;

    for (size_t d = 0; d < net->n_dims && start < end; d++) {
        int64_t next = start * net->dim[d].n;
        int64_t low = start > digit->stride ? start : digit->stride, high = next < end ? next : end;
        if (!boundary_fits(next, digit, used))
            return false;
        if (low < high)
            append(out, d, high / low, low / start);
        start = next;
    }
    return true;
}

cs_status sim_footprint_make(const sim_network *net, const sim_mesh *mesh, sim_order order,
                             wl_group axes, sim_footprint *out, cs_error *err)
{
    sim__layout layout;
    cs_status status = sim__layout_make(net, mesh, order, &layout, err);

    if (status != CS_OK)
        return status;
    out->n = 1;
    out->n_spans = 0;
    out->routed = out->pair = false;
    out->axes = axes;
    out->mesh = *mesh;
    out->order = order;
    for (size_t i = 0; i < layout.n; i++) {
        if ((layout.digit[i].axis & axes) == 0)
            continue;
        out->n *= layout.digit[i].size;
        if (!out->routed && !split_digit(net, &layout.digit[i], layout.used, out))
            out->routed = true;
    }
    if (out->routed)
        out->n_spans = 0;
    return CS_OK;
}

sim_footprint sim_footprint_whole(const sim_network *net)
{
    sim_footprint f = {.n = 1};

    for (size_t d = 0; d < net->n_dims; d++) {
        f.n *= net->dim[d].n;
        if (net->dim[d].n > 1)
            append(&f, d, net->dim[d].n, 1);
    }
    return f;
}
