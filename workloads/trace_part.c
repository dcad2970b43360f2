/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One rank: nodes as they are read, with their sums.  trace_resolve.c finishes it. */
#include "workloads/trace_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static cs_status no_memory(const wl__part *part, cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "%s: out of memory", part->head.path);
}

cs_status wl__part_init(wl__part *part, const wl__rank_file *file, const wl_trace_options *options,
                        wl_trace_owner *owner)
{
    *part = (wl__part){.options = options, .borrowed = owner != NULL};
    part->arena = owner != NULL ? owner->arena : cs_arena_create(0);
    if (part->arena == NULL)
        return CS_ENOMEM;
    part->issues.arena = part->arena;
    part->head.path = cs_arena_strdup(part->arena, file->path);
    part->head.rank = file->rank;
    part->head.schema_text = "";
    part->names = owner != NULL ? owner->names : wl__strings_create(part->arena);
    part->groups = wl__strings_create(part->arena);
    if (part->head.path == NULL || part->names == NULL || part->groups == NULL ||
        wl__strings_add(part->groups, "") != WL_GROUP_WORLD)
        return CS_ENOMEM;
    return CS_OK;
}

void wl__edges_fini(wl__edges *edges)
{
    free(edges->id);
    free(edges->first);
    *edges = (wl__edges){0};
}

void wl__part_fini(wl__part *part)
{
    if (!part->borrowed)
        wl__strings_destroy(part->names);
    wl__strings_destroy(part->groups);
    wl__issues_fini(&part->issues);
    wl__edges_fini(&part->data);
    wl__edges_fini(&part->ctrl);
    wl__graph_fini(&part->needs);
    wl__graph_fini(&part->both);
    free(part->node);
    free(part->offset);
    free(part->declared);
    if (!part->borrowed)
        cs_arena_destroy(part->arena);
    *part = (wl__part){0};
}

/* ---- reading ---- */

/* Appends the parents of node n; ids are sorted and made distinct. */
static bool edges_add(wl__edges *edges, size_t n, const uint64_t *id, size_t count)
{
    if (!wl__grow((void **)&edges->first, n + 1, &edges->cap_first, sizeof *edges->first))
        return false;
    for (size_t k = 0; k < count; k++) {
        if (!wl__grow((void **)&edges->id, edges->n_id, &edges->cap_id, sizeof *edges->id))
            return false;
        edges->id[edges->n_id++] = id[k];
    }
    edges->first[n + 1] = (uint32_t)edges->n_id;
    if (n == 0)
        edges->first[0] = 0;
    return true;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void edges_make_distinct(wl__edges *edges, size_t n)
{
    size_t count = edges->first[n + 1] - edges->first[n], kept = 0;
    uint64_t *id;
    bool ascending = true;

    if (count < 2)
        return;
    id = edges->id + edges->first[n];
    for (size_t k = 1; k < count; k++)
        ascending = ascending && id[k - 1] < id[k];
    if (ascending)
        return;
    qsort(id, count, sizeof *id, by_id);
    for (size_t k = 0; k < count; k++)
        if (k == 0 || id[k] != id[k - 1])
            id[kept++] = id[k];
    edges->n_id -= count - kept;
    edges->first[n + 1] = (uint32_t)edges->n_id;
}

static void add_facts(wl_rank_facts *f, const wl_trace_node *node, int32_t type)
{
    uint64_t size = node->comm_size > 0 ? (uint64_t)node->comm_size : 0;

    f->nodes++;
    f->by_type[node->type] += type == node->type;
    f->cpu_nodes += (node->flags & WL_NODE_CPU) != 0;
    f->num_ops += node->num_ops > 0 ? (uint64_t)node->num_ops : 0;
    if (node->type == WL_NODE_COMP)
        f->comp_duration_ps += node->duration_ps;
    if (node->type == WL_NODE_COLL) {
        f->coll_count[node->comm == WL_CHAKRA_NONE ? WL_N_CHAKRA_COMMS : node->comm]++;
        f->coll_bytes += size;
    }
    f->send_bytes += node->type == WL_NODE_SEND ? size : 0;
    f->recv_bytes += node->type == WL_NODE_RECV ? size : 0;
}

cs_status wl__part_add(wl__part *part, const wl_et_node *from, int64_t offset, cs_error *err)
{
    size_t n = part->n;
    wl_trace_node *to;
    cs_status status;

    if (!wl__grow((void **)&part->node, n, &part->cap, sizeof *part->node) ||
        !wl__grow((void **)&part->offset, n, &part->cap_offset, sizeof *part->offset) ||
        !edges_add(&part->data, n, from->data_deps, from->n_data) ||
        !edges_add(&part->ctrl, n, from->ctrl_deps, from->n_ctrl))
        return no_memory(part, err);
    edges_make_distinct(&part->data, n);
    edges_make_distinct(&part->ctrl, n);
    part->offset[n] = offset;
    to = &part->node[n];
    status = wl__part_attributes(part, from, to, err);
    if (status != CS_OK)
        return status;
    part->n++;
    add_facts(&part->head.facts, to, from->type);
    return part->options->custom ? CS_OK : wl__part_declare(part, from, err);
}

static cs_status take_metadata(wl__part *part, const wl_et_reader *reader, cs_error *err)
{
    const wl_et_metadata *m = wl_et_reader_metadata(reader);
    const char *text = "";
    bool escaped;

    part->head.schema = (uint8_t)wl_et_reader_schema(reader);
    part->head.gzip = wl_et_reader_gzip(reader);
    part->head.file_bytes = wl_et_reader_file_bytes(reader);
    part->head.metadata = m != NULL;
    if (m == NULL && part->head.schema == WL_SCHEMA_004)
        wl__issue(&part->issues, WL_WARNING, WL_ISSUE_NODE, wl__place_of(&part->head),
                  "no metadata frame: the file starts with a node");
    if (!wl_et_reader_certain(reader))
        wl__issue(&part->issues, WL_WARNING, WL_ISSUE_TYPE, wl__place_of(&part->head),
                  "taken for schema %s, but nothing in it is sure: use --schema",
                  wl_schema_names[part->head.schema]);
    for (size_t i = 0; m != NULL && i < m->n_attrs; i++)
        if (strcmp(m->attr[i].name, "schema") == 0 && m->attr[i].arm == WL_ARM_STRING)
            text = *(const char *const *)m->attr[i].values;
    if (m != NULL && text[0] == 0)
        text = m->version;
    text = cs_arena_strdup(part->arena, text);
    part->head.schema_text = text != NULL ? wl__printable(part->arena, text, &escaped) : NULL;
    return part->head.schema_text != NULL ? CS_OK : no_memory(part, err);
}

cs_status wl__part_read(wl__part *part, cs_error *err)
{
    cs_status status = CS_OK;
    wl_et_reader *reader = NULL;
    const wl_et_node *node;

    CS_TRY(wl_et_reader_open(part->head.path, part->options->schema, &reader, err));
    CS_TRY(take_metadata(part, reader, err));
    for (;;) {
        CS_TRY(wl_et_reader_next(reader, &node, err));
        if (node == NULL)
            break;
        CS_TRY(wl__part_add(part, node, wl_et_reader_offset(reader), err));
    }
    CS_TRY(wl__part_finish(part, err));
done:
    wl_et_reader_close(reader);
    return status;
}
