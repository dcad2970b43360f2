/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Files of an export.  All ranks of a stage run the same nodes: they are packed once; a rank's file
 * is those bytes with its own group names and peers. */
#include "sim/export_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "out of memory for the export of a design");
}

/* ---- groups ---- */

/* Groups of an export: by class and rank their number from 1, 0 for all ranks of the job. */
typedef struct {
    const sim_export *x;
    cs_arena *arena;
    wl_trace_group *group;
    size_t n, cap;
    uint32_t **number; /* by class: by rank; NULL when the class is not used */
    uint32_t *member;  /* room for the members of any group */
} groups;

static int64_t stage_of(const sim_export *x, int64_t npu)
{
    for (size_t i = 0; i < x->layout.n; i++)
        if (x->layout.digit[i].axis == WL_GROUP(WL_PP))
            return npu / x->layout.digit[i].stride % x->layout.digit[i].size;
    return 0;
}

/* The NPU with the same coordinates on another stage. */
static int64_t peer_of(const sim_export *x, int64_t npu, bool next)
{
    for (size_t i = 0; i < x->layout.n; i++) {
        const sim__digit *d = &x->layout.digit[i];
        int64_t own = npu / d->stride % d->size;

        if (d->axis == WL_GROUP(WL_PP))
            return npu + ((own + (next ? 1 : d->size - 1)) % d->size - own) * d->stride;
    }
    return npu;
}

/* Numbers the group of a rank in a class; all of its members get the number. */
static bool number_group(groups *g, int32_t class_, int64_t rank)
{
    const sim_export *x = g->x;
    size_t n = sim__class_members(x, &x->classes[class_], rank, g->member);
    uint32_t *kept;

    if (n == (size_t)x->layout.npus)
        return true; /* all ranks: no name */
    kept = cs_arena_alloc(g->arena, (n + 1) * sizeof *kept);
    if (g->n == g->cap) {
        size_t cap = g->cap == 0 ? 256 : 2 * g->cap;
        wl_trace_group *grown = realloc(g->group, cap * sizeof *grown);

        if (grown == NULL)
            return false;
        g->group = grown;
        g->cap = cap;
    }
    if (kept == NULL)
        return false;
    memcpy(kept, g->member, n * sizeof *kept);
    g->group[g->n] = (wl_trace_group){.name = cs_arena_printf(g->arena, "%zu", g->n + 1),
                                      .rank = kept,
                                      .n = (uint32_t)n,
                                      .declared = true};
    g->n++;
    for (size_t i = 0; i < n; i++)
        g->number[class_][kept[i]] = (uint32_t)g->n;
    return g->group[g->n - 1].name != NULL;
}

static bool number_class(groups *g, int32_t class_, const bool *used_by_stage)
{
    const sim_export *x = g->x;

    if (g->number[class_] == NULL)
        g->number[class_] =
            cs_arena_alloc(g->arena, ((size_t)x->layout.npus + 1) * sizeof **g->number);
    if (g->number[class_] == NULL)
        return false;
    for (int64_t rank = 0; rank < x->layout.used; rank++)
        if (used_by_stage[stage_of(x, rank)] && g->number[class_][rank] == 0 &&
            !number_group(g, class_, rank))
            return false;
    return true;
}

static bool uses(const sim__stage *stage, int32_t class_)
{
    for (size_t i = 0; i < stage->n; i++)
        if (stage->node[i].type == WL_NODE_COLL && stage->node[i].class_ == class_)
            return true;
    return false;
}

static cs_status make_groups(groups *g, cs_error *err)
{
    const sim_export *x = g->x;
    bool *used = calloc(x->n_stages + 1, sizeof *used);
    bool ok = used != NULL;

    g->number = cs_arena_alloc(g->arena, (x->n_classes + 1) * sizeof *g->number);
    g->member = malloc(((size_t)x->layout.npus + 1) * sizeof *g->member);
    ok = ok && g->number != NULL && g->member != NULL;
    for (size_t c = 0; ok && c < x->n_classes; c++) {
        for (size_t s = 0; s < x->n_stages; s++)
            used[s] = uses(&x->stage[s], (int32_t)c);
        ok = number_class(g, (int32_t)c, used);
    }
    free(used);
    return ok ? CS_OK : no_memory(err);
}

/* ---- packed nodes of a stage ---- */

typedef struct {
    wl_bytes bytes;
    int32_t class_; /* -1: the same for all ranks */
    bool message;
} packed;

static const char *node_name(const sim_export *x, const sim__node *node)
{
    static const char *const others[] = {"gather_weights", "send", "recv", "idle"};

    if (node->name < 0)
        return others[-node->name - 1];
    return (size_t)node->name < x->n_ops ? x->op_name[node->name] : "op";
}

/* For readers that time compute by operations: as many as take the node's time at the device's peak
 * (the true number where compute bounds it).  system.json leaves memory out. */
static void set_work(const sim_export *x, const sim__node *node, wl_et_plain *out)
{
    out->has_ops = true;
    out->num_ops = llround(fmax((double)node->duration_ps * 1e-12 * x->peak, 1));
    out->tensor_size = llround(fmax(node->bytes, 1));
}

static wl_chakra_comm chakra_comm(uint8_t type)
{
    static const uint8_t names[WL_N_COLLECTIVES] = {
        [WL_ALL_REDUCE] = WL_CHAKRA_ALL_REDUCE, [WL_REDUCE_SCATTER] = WL_CHAKRA_REDUCE_SCATTER,
        [WL_ALL_GATHER] = WL_CHAKRA_ALL_GATHER, [WL_ALL_TO_ALL] = WL_CHAKRA_ALL_TO_ALL,
        [WL_BROADCAST] = WL_CHAKRA_BROADCAST,   [WL_REDUCE] = WL_CHAKRA_REDUCE,
        [WL_SCATTER] = WL_CHAKRA_SCATTER,       [WL_GATHER] = WL_CHAKRA_GATHER};

    return (wl_chakra_comm)names[type];
}

/* Chakra states what is gathered by the share of one member. */
static int64_t chakra_size(const sim_export *x, const sim__node *node)
{
    bool share = node->comm == WL_ALL_GATHER || node->comm == WL_GATHER;

    return llround(share ? node->bytes / x->classes[node->class_].size : node->bytes);
}

/* The node as the plain form states it; `id` holds its dependencies. */
static void describe(const sim_export *x, const sim__stage *stage, size_t i, uint64_t *id,
                     wl_et_plain *out)
{
    const sim__node *node = &stage->node[i];

    for (size_t k = 0; k < (size_t)node->n_data + node->n_ctrl; k++)
        id[k] = stage->dep[node->dep + k];
    *out = (wl_et_plain){.id = i + 1,
                         .name = node_name(x, node),
                         .type = (wl_node_type)node->type,
                         .data_deps = id,
                         .n_deps = node->n_data,
                         .ctrl_deps = id + node->n_data,
                         .n_ctrl = node->n_ctrl,
                         .duration_ps = node->duration_ps};
    if (node->type == WL_NODE_COMP) {
        set_work(x, node, out);
    } else if (node->type == WL_NODE_COLL) {
        out->comm = chakra_comm(node->comm);
        out->comm_size = chakra_size(x, node);
        out->splits = node->splits;
    } else {
        out->comm_size = llround(node->bytes);
        out->tag = node->tag;
    }
}

static cs_status pack_stage(const sim_export *x, const sim__stage *stage, cs_arena *arena,
                            packed **out, cs_error *err)
{
    packed *list = cs_arena_alloc(arena, (stage->n + 1) * sizeof *list);
    uint64_t id[2 * SIM__EXPORT_SET];
    cs_status status = CS_OK;

    if (list == NULL)
        return no_memory(err);
    for (size_t i = 0; i < stage->n && status == CS_OK; i++) {
        wl_et_plain plain;

        list[i].class_ = stage->node[i].type == WL_NODE_COLL ? stage->node[i].class_ : -1;
        list[i].message =
            stage->node[i].type == WL_NODE_SEND || stage->node[i].type == WL_NODE_RECV;
        if (list[i].message)
            continue;
        describe(x, stage, i, id, &plain);
        status = wl_et_pack_plain(&plain, arena, &list[i].bytes, err);
    }
    *out = list;
    return status;
}

/* ---- ranks ---- */

static cs_status write_message(const sim_export *x, const sim__stage *stage, size_t i, int64_t rank,
                               wl_et_writer *writer, cs_error *err)
{
    uint64_t id[2 * SIM__EXPORT_SET];
    wl_et_plain plain;
    int32_t peer = (int32_t)peer_of(x, rank, stage->node[i].to_next);
    bool send = stage->node[i].type == WL_NODE_SEND;

    describe(x, stage, i, id, &plain);
    plain.src = send ? (int32_t)rank : peer;
    plain.dst = send ? peer : (int32_t)rank;
    return wl_et_writer_plain(writer, &plain, err);
}

static cs_status write_nodes(const groups *g, const wl_bytes *names, const packed *list,
                             int64_t rank, wl_et_writer *writer, cs_error *err)
{
    const sim__stage *stage = &g->x->stage[stage_of(g->x, rank)];
    const wl_bytes nothing = {0, NULL};
    cs_status status = CS_OK;

    for (size_t i = 0; i < stage->n && status == CS_OK; i++) {
        uint32_t number = list[i].class_ >= 0 ? g->number[list[i].class_][rank] : 0;

        if (list[i].message)
            status = write_message(g->x, stage, i, rank, writer, err);
        else
            status = wl_et_writer_packed(writer, list[i].bytes,
                                         number > 0 ? names[number - 1] : nothing, err);
    }
    return status;
}

/* NPUs beyond the mesh have a node that takes no time. */
static cs_status write_idle(wl_et_writer *writer, cs_error *err)
{
    return wl_et_writer_plain(
        writer, &(wl_et_plain){.id = 1, .name = "idle", .type = WL_NODE_METADATA}, err);
}

static cs_status write_rank(const groups *g, const wl_bytes *names, packed *const *list,
                            int64_t rank, const char *folder, cs_error *err)
{
    char path[4096];
    wl_et_writer *writer = NULL;
    cs_status status;

    if (snprintf(path, sizeof path, "%s/trace.%lld.et", folder, (long long)rank) >=
        (int)sizeof path)
        return cs_fail(err, CS_EINVAL, "%s: the path is too long", folder);
    CS_TRY(wl_et_writer_open(path, NULL, &writer, err));
    if (rank < g->x->layout.used)
        CS_TRY(write_nodes(g, names, list[stage_of(g->x, rank)], rank, writer, err));
    else
        CS_TRY(write_idle(writer, err));
    status = wl_et_writer_close(writer, err);
    writer = NULL;
done:
    wl_et_writer_abandon(writer);
    return status;
}

/* The attribute that names each group, packed. */
static cs_status pack_names(const groups *g, wl_bytes **out, cs_error *err)
{
    wl_bytes *names = cs_arena_alloc(g->arena, (g->n + 1) * sizeof *names);
    cs_status status = names != NULL ? CS_OK : no_memory(err);

    for (size_t i = 0; i < g->n && status == CS_OK; i++)
        status = wl_et_pack_text("pg_name", g->group[i].name, g->arena, &names[i], err);
    *out = names;
    return status;
}

static cs_status write_ranks(const groups *g, const char *folder, cs_error *err)
{
    const sim_export *x = g->x;
    packed **list = cs_arena_alloc(g->arena, (x->n_stages + 1) * sizeof *list);
    wl_bytes *names;
    int64_t n = x->layout.npus, failed = n;
    cs_status status = list != NULL ? CS_OK : no_memory(err), worst = CS_OK;

    for (size_t s = 0; s < x->n_stages && status == CS_OK; s++)
        status = pack_stage(x, &x->stage[s], g->arena, &list[s], err);
    if (status == CS_OK)
        status = pack_names(g, &names, err);
    if (status != CS_OK)
        return status;
#pragma omp parallel for schedule(dynamic) default(none)                                           \
    shared(g, names, list, folder, n, failed, worst, err)
    for (int64_t rank = 0; rank < n; rank++) {
        cs_error own = {.text = ""};
        cs_status result = write_rank(g, names, list, rank, folder, &own);

#pragma omp critical(sim_export_failed)
        if (result != CS_OK && rank < failed) {
            failed = rank;
            worst = result;
            if (err != NULL)
                *err = own;
        }
    }
    return worst;
}

static cs_status write_groups(const groups *g, const char *folder, cs_error *err)
{
    char path[4096];

    if (snprintf(path, sizeof path, "%s/trace.json", folder) >= (int)sizeof path)
        return cs_fail(err, CS_EINVAL, "%s: the path is too long", folder);
    return wl_et_write_groups(path, g->group, g->n, err);
}

cs_status sim_export_write(const sim_export *x, const char *folder, cs_error *err)
{
    groups g = {.x = x, .arena = cs_arena_create(0)};
    cs_status status = CS_OK;

    if (g.arena == NULL)
        return no_memory(err);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        status = cs_fail(err, CS_EIO, "%s: %s", folder, strerror(errno));
        goto done;
    }
    CS_TRY(sim__export_files(x, folder, err));
    CS_TRY(make_groups(&g, err));
    CS_TRY(write_groups(&g, folder, err));
    CS_TRY(write_ranks(&g, folder, err));
done:
    free(g.group);
    free(g.member);
    cs_arena_destroy(g.arena);
    return status;
}

/* ---- size ---- */

/* Bytes of a node in a file: measured forms, with a few bytes of room for ids. */
static uint64_t node_bytes(const sim_export *x, const sim__node *node)
{
    uint64_t id_bytes = 4, deps = (uint64_t)(node->n_data + node->n_ctrl) * id_bytes;
    uint64_t name = strlen(node_name(x, node));

    return node->type == WL_NODE_COMP ? 98 + name + deps : 110 + name + deps;
}

sim_export_size sim_export_measure(const sim_export *x)
{
    sim_export_size size = {.ranks = (uint64_t)x->layout.npus};

    for (size_t s = 0; s < x->n_stages; s++) {
        uint64_t ranks = (uint64_t)x->layout.used / x->n_stages;

        size.nodes += ranks * x->stage[s].n;
        for (size_t i = 0; i < x->stage[s].n; i++)
            size.bytes += ranks * node_bytes(x, &x->stage[s].node[i]);
    }
    return size;
}
