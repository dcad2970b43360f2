/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Degrees must divide their dimensions: every violation on a line of its own, with its arithmetic.
 */
#include "workloads/build_private.h"

typedef struct {
    cs_error *err;
    bool failed;
} report;

static void violation(report *r, const char *what, int64_t size, const char *degree, int64_t n)
{
    if (!r->failed)
        (void)cs_fail(r->err, CS_EINVAL, "%s %lld %% %s %lld = %lld", what, (long long)size, degree,
                      (long long)n, (long long)(size % n));
    else
        cs_error_append(r->err, "\n%s %lld %% %s %lld = %lld", what, (long long)size, degree,
                        (long long)n, (long long)(size % n));
    r->failed = true;
}

static void divides(report *r, const char *what, int64_t size, const char *degree, int64_t n)
{
    if (size % n != 0)
        violation(r, what, size, degree, n);
}

static void check_dims(const wl_model *model, const wl_config *c, report *r)
{
    for (size_t d = 0; d < model->n_dims; d++) {
        const wl__dim *dim = &model->dim[d];

        if (dim->role == WL__HEADS || dim->role == WL__FFN)
            divides(r, wl__role_names[dim->role], dim->size, "tp", c->tp);
        if (dim->role == WL__KV_HEADS && dim->size % c->tp != 0 && c->tp % dim->size != 0)
            violation(r, "kv_heads", dim->size, "tp", c->tp);
        if (dim->role == WL__EXPERTS)
            divides(r, "experts", dim->size, "ep", c->ep);
    }
}

static bool attends(const wl_model *model)
{
    for (size_t b = 0; b < model->n_blocks; b++)
        for (size_t o = 0; o < model->block[b].n_ops; o++)
            if (model->block[b].op[o].kernel->keys && model->block[b].op[o].causal)
                return true;
    return false;
}

/* One message for a field out of range; 0 when all are in order. */
static cs_status check_ranges(const wl_workload *w, const wl_config *c, cs_error *err)
{
    const struct {
        const char *name;
        int64_t value, max;
    } range[] = {
        {"dp", c->dp, 1 << 24},
        {"tp", c->tp, 1 << 20},
        {"sp", c->sp, 1 << 20},
        {"ep", c->ep, 1 << 20},
        {"pp", c->pp, 4096},
        {"micro_batch", c->micro_batch, 1 << 24},
        {"virtual_stages", c->virtual_stages > 0 ? c->virtual_stages : 1, 16},
        {"global_batch", w->global_batch, INT64_C(1) << 32},
        {"sequence", w->mode == WL_DECODE ? 1 : w->sequence, INT64_C(1) << 32},
    };
    const struct {
        const char *name;
        int32_t value, n;
    } kind[] = {{"sharding", c->sharding, 4},   {"recompute", c->recompute, 3},
                {"precision", c->precision, 4}, {"attention", c->attention, 2},
                {"cp_form", c->cp_form, 2},     {"offload", c->offload, 4}};

    for (size_t i = 0; i < CS_COUNT(range); i++)
        if (range[i].value < 1 || range[i].value > range[i].max)
            return cs_fail(err, CS_EINVAL, "%s is %lld, expected 1 to %lld", range[i].name,
                           (long long)range[i].value, (long long)range[i].max);
    for (size_t i = 0; i < CS_COUNT(kind); i++)
        if (kind[i].value < 0 || kind[i].value >= kind[i].n)
            return cs_fail(err, CS_EINVAL, "%s is %d, expected 0 to %d", kind[i].name,
                           (int)kind[i].value, (int)kind[i].n - 1);
    return CS_OK;
}

cs_status wl__check(const wl_workload *w, const wl_config *c, cs_error *err)
{
    cs_status status = CS_OK;
    report r = {err, false};
    const int64_t chunks = c->pp * (c->virtual_stages > 1 ? c->virtual_stages : 1);
    const char *degree = "sp";
    int64_t cut;

    CS_TRY(check_ranges(w, c, err));
    check_dims(w->model, c, &r);
    divides(&r, "dp", c->dp, "ep", c->ep);
    if (c->hsdp_shard > 0)
        divides(&r, "dp * sp", c->dp * c->sp, "hsdp_shard", c->hsdp_shard);
    divides(&r, "global batch", w->global_batch, "dp * micro_batch", c->dp * c->micro_batch);
    if (w->model->facts.layers < chunks)
        violation(&r, "layers", w->model->facts.layers, "pp * virtual_stages", chunks);
    cut = c->sp;
    if (c->tp_sequence != 0) {
        cut *= c->tp;
        degree = "sp * tp";
    }
    if (w->mode != WL_DECODE)
        divides(&r, "sequence", w->sequence, degree, cut);
    if (w->mode != WL_DECODE && c->cp_balanced != 0 && c->sp > 1 && attends(w->model))
        divides(&r, "sequence", w->sequence, "2 * sp", 2 * c->sp);
    status = r.failed ? CS_EINVAL : CS_OK;
done:
    return status;
}
