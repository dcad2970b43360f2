/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * `trace convert`: any schema or a text workload -> 0.0.4 in the forms that every known reader
 * accepts (SCHEMA 12): ascending ids from 1, parents before children, data dependencies only,
 * fixed arms, group names from "1".  Attributes that have no such form are kept as they are. */
#include "workloads/trace_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const wl_trace *trace;
    const char *prefix;
    wl_trace_options options;
    wl_trace_group *group; /* of the trace, renamed where a name is no number from 1 */
    uint64_t bytes;
} converter;

static cs_status no_memory(const char *path, cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
}

static char *out_path(const char *prefix, uint32_t rank)
{
    char *path = malloc(strlen(prefix) + 24);

    if (path != NULL)
        sprintf(path, "%s.%u.et", prefix, rank);
    return path;
}

/* ---- groups ---- */

static bool is_number(const char *name)
{
    return name[0] >= '1' && name[0] <= '9' && strlen(name) < 9 &&
           strspn(name, "0123456789") == strlen(name);
}

/* Groups with the names that ASTRA-sim reads; all are renumbered when one is not. */
static cs_status rename_groups(converter *c, cs_arena *arena, cs_error *err)
{
    const wl_trace *t = c->trace;
    bool keep = true;

    c->group = cs_arena_alloc(arena, (t->n_groups + 1) * sizeof *c->group);
    if (c->group == NULL)
        return no_memory(c->prefix, err);
    for (uint32_t g = 1; g < t->n_groups; g++)
        keep = keep && is_number(t->group[g].name);
    for (uint32_t g = 0; g < t->n_groups; g++) {
        c->group[g] = t->group[g];
        if (g > 0 && !keep)
            c->group[g].name = cs_arena_printf(arena, "%u", g);
        if (c->group[g].name == NULL)
            return no_memory(c->prefix, err);
    }
    return CS_OK;
}

static cs_status write_groups(const char *prefix, const wl_trace_group *group, size_t n,
                              cs_error *err)
{
    char *path = malloc(strlen(prefix) + 8);
    wl_trace_group *declared = malloc((n + 1) * sizeof *declared);
    size_t kept = 0;
    cs_status status = CS_OK;

    if (path == NULL || declared == NULL) {
        status = no_memory(prefix, err);
        goto done;
    }
    sprintf(path, "%s.json", prefix);
    for (size_t g = 0; g < n; g++)
        if (group[g].declared && group[g].name[0] != 0)
            declared[kept++] = group[g];
    if (kept > 0)
        status = wl_et_write_groups(path, declared, kept, err);
done:
    free(path);
    free(declared);
    return status;
}

/* ---- one node ---- */

/* What the plain form states; the rest of a node's attributes follow it. */
static bool plain_states(const char *name)
{
    static const char *const names[] = {"comm_dst",    "comm_group", "comm_priority", "comm_size",
                                        "comm_src",    "comm_tag",   "comm_type",     "duration_ps",
                                        "is_cpu_op",   "num_ops",    "pg_id",         "pg_name",
                                        "tensor_size", "runtime"};

    for (size_t i = 0; i < CS_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* A launcher on the CPU becomes the compute node it is: other readers refuse the collective. */
static wl_node_type plain_type(const wl_trace_node *node)
{
    return node->flags & WL_NODE_HOST_COLL ? WL_NODE_COMP : (wl_node_type)node->type;
}

static void to_plain(const converter *c, const wl_trace_node *node, const char *name,
                     wl_et_plain *out)
{
    *out = (wl_et_plain){.name = name,
                         .type = plain_type(node),
                         .duration_ps = node->duration_ps,
                         .cpu = (node->flags & WL_NODE_CPU) != 0,
                         .comm = (wl_chakra_comm)node->comm,
                         .comm_size = node->comm_size,
                         .src = node->src,
                         .dst = node->dst,
                         .tag = (int32_t)node->tag,
                         .priority = node->priority,
                         .group = node->group > 0 ? c->group[node->group].name : NULL,
                         .has_ops = node->num_ops >= 0 || node->tensor_size >= 0,
                         .num_ops = node->num_ops >= 0 ? node->num_ops : 0,
                         .tensor_size = node->tensor_size >= 0 ? node->tensor_size : 0};
    if (node->flags & WL_NODE_HOST_COLL)
        out->has_ops = false;
}

static bool drops(const wl_trace_node *node, const wl_et_attr *attr)
{
    bool share = (node->flags & WL_NODE_CHUNKED) != 0 && strcmp(attr->name, "comm_size") == 0;

    return plain_states(attr->name) || share ||
           ((node->flags & WL_NODE_HOST_COLL) != 0 && strncmp(attr->name, "comm_", 5) == 0);
}

/* One rank being written. */
typedef struct {
    wl_et_writer *writer;
    const uint64_t *new_id; /* of every node of the job */
    cs_arena *held;         /* frames wait here when file order has to change, else NULL */
    wl_bytes *frame;        /* by file order */
} rank_output;

/* The node as read, with its plain attributes first and its other ones behind. */
static cs_status convert_node(const converter *c, const wl_trace_rank *rank, uint32_t local,
                              const wl_et_node *from, rank_output *o, cs_error *err)
{
    const wl_trace *t = c->trace;
    uint32_t index = rank->first + local;
    const wl_trace_node *node = &t->node[index];
    uint32_t first = t->dep_first[index], n_deps = t->dep_first[index + 1] - first;
    wl_et_attr *attr = malloc((from->n_attrs + WL__PLAIN_ATTRS) * sizeof *attr);
    uint64_t *deps = malloc((n_deps + 1) * sizeof *deps);
    wl__plain_attrs plain_attrs;
    wl_et_plain plain;
    wl_et_node out;
    cs_status status;

    if (attr == NULL || deps == NULL) {
        free(attr);
        free(deps);
        return no_memory(c->prefix, err);
    }
    for (uint32_t k = 0; k < n_deps; k++)
        deps[k] = o->new_id[t->dep[first + k]];
    to_plain(c, node, from->name, &plain);
    plain.id = o->new_id[index];
    plain.data_deps = deps;
    plain.n_deps = n_deps;
    wl__plain_node(&plain, &plain_attrs, &out);
    memcpy(attr, out.attr, out.n_attrs * sizeof *attr);
    for (size_t i = 0; i < from->n_attrs; i++)
        if (!drops(node, &from->attr[i]))
            attr[out.n_attrs++] = from->attr[i];
    out.attr = attr;
    out.start_micros = from->start_micros;
    out.inputs = from->inputs;
    out.outputs = from->outputs;
    status = o->held != NULL ? wl__writer_pack(o->writer, &out, o->held, &o->frame[local], err)
                             : wl_et_writer_put(o->writer, &out, err);
    free(attr);
    free(deps);
    return status;
}

/* ---- one rank ---- */

/* New ids in an order that puts parents first; `order` lists nodes of the rank by new id. */
static bool renumber(const wl_trace *t, const wl_trace_rank *rank, uint64_t *new_id,
                     uint32_t *order)
{
    wl__graph g = {.n = rank->n, .first = malloc((rank->n + 1) * sizeof *g.first)};
    uint32_t base = t->dep_first[rank->first];
    uint32_t edges = t->dep_first[rank->first + rank->n] - base;
    bool ok;

    g.dep = malloc((edges + 1) * sizeof *g.dep);
    ok = g.first != NULL && g.dep != NULL;
    for (uint32_t i = 0; ok && i <= rank->n; i++)
        g.first[i] = t->dep_first[rank->first + i] - base;
    for (uint32_t e = 0; ok && e < edges; e++)
        g.dep[e] = t->dep[base + e] - rank->first;
    ok = ok && wl__graph_order(&g, order) == rank->n;
    for (uint32_t k = 0; ok && k < rank->n; k++)
        new_id[rank->first + order[k]] = k + 1;
    wl__graph_fini(&g);
    return ok;
}

static bool in_file_order(const uint32_t *order, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (order[k] != k)
            return false;
    return true;
}

static cs_status write_nodes(const converter *c, const wl_trace_rank *rank, rank_output *o,
                             cs_error *err)
{
    wl_et_reader *reader = NULL;
    const wl_et_node *node;
    cs_status status = wl_et_reader_open(rank->path, c->options.schema, &reader, err);

    for (uint32_t i = 0; i < rank->n && status == CS_OK; i++) {
        status = wl_et_reader_next(reader, &node, err);
        if (status == CS_OK && node == NULL)
            status = cs_fail(err, CS_ETRACE, "%s: framing: the file changed while it was read",
                             rank->path);
        if (status == CS_OK)
            status = convert_node(c, rank, i, node, o, err);
    }
    wl_et_reader_close(reader);
    return status;
}

static cs_status write_rank(converter *c, const wl_trace_rank *rank, uint64_t *new_id,
                            cs_error *err)
{
    static const wl_et_attr source = {.name = "source", .doc = "", .arm = WL_ARM_STRING, .n = 1};
    wl_et_attr attr = source;
    wl_et_metadata metadata = {.version = "0.0.4", .n_attrs = 1, .attr = &attr};
    rank_output o = {.new_id = new_id};
    uint32_t *order = malloc((rank->n + 1) * sizeof *order);
    char *path = out_path(c->prefix, rank->rank);
    cs_status status = CS_OK;

    attr.values = &rank->schema_text;
    if (order == NULL || path == NULL || !renumber(c->trace, rank, new_id, order)) {
        status = no_memory(rank->path, err);
        goto done;
    }
    if (!in_file_order(order, rank->n)) {
        o.held = cs_arena_create(0);
        o.frame = malloc((rank->n + 1) * sizeof *o.frame);
        if (o.held == NULL || o.frame == NULL) {
            status = no_memory(rank->path, err);
            goto done;
        }
    }
    CS_TRY(wl_et_writer_open(path, &metadata, &o.writer, err));
    CS_TRY(write_nodes(c, rank, &o, err));
    for (uint32_t k = 0; o.held != NULL && k < rank->n; k++)
        CS_TRY(wl__writer_frame(o.writer, o.frame[order[k]], err));
    c->bytes += wl_et_writer_bytes(o.writer);
    status = wl_et_writer_close(o.writer, err);
    o.writer = NULL;
done:
    wl_et_writer_abandon(o.writer);
    cs_arena_destroy(o.held);
    free(o.frame);
    free(order);
    free(path);
    return status;
}

/* ---- a job ---- */

static cs_status convert_trace(const char *path, const wl_trace_options *options,
                               const char *prefix, wl_convert_report *report, cs_error *err)
{
    converter c = {.prefix = prefix, .options = *options};
    wl_trace *trace = NULL;
    cs_arena *arena = cs_arena_create(0);
    uint64_t *new_id = NULL;
    cs_status status = CS_OK;

    if (arena == NULL)
        return no_memory(path, err);
    CS_TRY(wl_trace_load(path, options, &trace, err));
    CS_TRY(wl_trace_verdict(trace, false, err));
    c.trace = trace;
    new_id = malloc((trace->n_nodes + (size_t)1) * sizeof *new_id);
    if (new_id == NULL) {
        status = no_memory(path, err);
        goto done;
    }
    CS_TRY(rename_groups(&c, arena, err));
    for (uint32_t r = 0; r < trace->n_ranks; r++)
        CS_TRY(write_rank(&c, &trace->rank[r], new_id, err));
    CS_TRY(write_groups(prefix, c.group, trace->n_groups, err));
    *report = (wl_convert_report){trace->n_ranks, trace->n_nodes, c.bytes};
done:
    free(new_id);
    wl_trace_destroy(trace);
    cs_arena_destroy(arena);
    return status;
}

/* ---- text workloads ---- */

static cs_status write_text_rank(const wl__text_program *program, uint32_t rank, const char *prefix,
                                 uint64_t *bytes, cs_error *err)
{
    char *path = out_path(prefix, rank);
    wl_et_writer *writer = NULL;
    cs_status status = CS_OK;

    if (path == NULL)
        return no_memory(prefix, err);
    CS_TRY(wl_et_writer_open(path, NULL, &writer, err));
    for (size_t i = 0; i < program->n; i++) {
        uint64_t deps[4];
        int32_t involved[4];
        wl_et_plain plain;

        wl__text_plain(program, i, rank, deps, involved, &plain);
        CS_TRY(wl_et_writer_plain(writer, &plain, err));
    }
    *bytes += wl_et_writer_bytes(writer);
    status = wl_et_writer_close(writer, err);
    writer = NULL;
done:
    wl_et_writer_abandon(writer);
    free(path);
    return status;
}

static cs_status convert_text(const char *path, const wl_trace_options *options, const char *prefix,
                              wl_convert_report *report, cs_error *err)
{
    wl__text text;
    wl__text_program program = {0};
    uint64_t bytes = 0;
    cs_status status = wl__text_read(path, &text, err);

    if (status != CS_OK)
        return status;
    CS_TRY(wl__text_program_make(&text, options->job_ranks, options->passes, &program, err));
    for (uint32_t r = 0; r < (uint32_t)program.ranks; r++)
        CS_TRY(write_text_rank(&program, r, prefix, &bytes, err));
    CS_TRY(write_groups(prefix, program.group, program.n_groups, err));
    *report =
        (wl_convert_report){(uint64_t)program.ranks, (uint64_t)program.ranks * program.n, bytes};
done:
    wl__text_program_fini(&program);
    wl__text_fini(&text);
    return status;
}

static bool is_text(const wl__set *set, const wl_trace_options *options)
{
    return set->text || options->schema == WL_SCHEMA_TEXT;
}

cs_status wl_trace_convert(const char *path, const wl_trace_options *options,
                           const char *out_prefix, wl_convert_report *report, cs_error *err)
{
    wl_trace_options defaults = {0};
    wl_convert_report done = {0};
    wl__set set;
    cs_status status = wl__set_find(path, &set, err);

    if (status != CS_OK)
        return status;
    if (options == NULL)
        options = &defaults;
    status = is_text(&set, options)
                 ? convert_text(set.file[0].path, options, out_prefix, &done, err)
                 : convert_trace(path, options, out_prefix, &done, err);
    wl__set_fini(&set);
    if (status == CS_OK && report != NULL)
        *report = done;
    return status;
}

/* Bytes of a plain node in a file, frame length included: measured on the packed node. */
static cs_status text_size(const char *path, const wl_trace_options *options, uint64_t *bytes,
                           cs_error *err)
{
    wl__text text;
    wl__text_program program = {0};
    wl__pool *pool = wl__pool_create((size_t)1 << 26);
    uint64_t one = 0;
    cs_status status = wl__text_read(path, &text, err);

    if (status != CS_OK) {
        wl__pool_destroy(pool);
        return status;
    }
    CS_TRY(wl__text_program_make(&text, options->job_ranks, options->passes, &program, err));
    for (size_t i = 0; i < program.n; i++) {
        uint64_t deps[4];
        int32_t involved[4];
        wl_et_plain plain;
        wl__plain_attrs attrs;
        wl_et_node node;
        wl_bytes frame;

        wl__text_plain(&program, i, (uint32_t)program.ranks - 1, deps, involved, &plain);
        wl__plain_node(&plain, &attrs, &node);
        wl__pool_reset(pool);
        if (!wl__pb_pack_node(&node, pool, &frame)) {
            status = no_memory(path, err);
            goto done;
        }
        one += frame.n + (frame.n > 127 ? 2 : 1);
    }
    *bytes = one * (uint64_t)program.ranks;
done:
    wl__pool_destroy(pool);
    wl__text_program_fini(&program);
    wl__text_fini(&text);
    return status;
}

cs_status wl_trace_convert_size(const char *path, const wl_trace_options *options, uint64_t *bytes,
                                cs_error *err)
{
    wl_trace_options defaults = {0};
    wl__set set;
    cs_status status = wl__set_find(path, &set, err);

    if (status != CS_OK)
        return status;
    if (options == NULL)
        options = &defaults;
    *bytes = 0;
    if (is_text(&set, options))
        status = text_size(set.file[0].path, options, bytes, err);
    for (size_t i = 0; !is_text(&set, options) && i < set.n; i++) {
        FILE *f = fopen(set.file[i].path, "rb");
        long size = -1;

        if (f != NULL && fseek(f, 0, SEEK_END) == 0)
            size = ftell(f);
        if (f != NULL)
            fclose(f);
        *bytes += size > 0 ? (uint64_t)size : 0;
    }
    wl__set_fini(&set);
    return status;
}
