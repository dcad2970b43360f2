/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Communicator groups: the comm_group.json beside a job, and the process groups that METADATA
 * nodes of PyTorch traces list. */
#include "common/doc.h"
#include "common/json.h"
#include "workloads/trace_private.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 10 * 1000 * 1000, MAX_GROUPS = 1 << 24 };

uint32_t wl__group_add(wl_trace *trace, const char *name)
{
    wl_trace_owner *owner = trace->owner;
    uint32_t g = wl__strings_add(owner->groups, name);
    uint32_t n;

    if (g == UINT32_MAX || g >= MAX_GROUPS || g < trace->n_groups)
        return g < MAX_GROUPS ? g : UINT32_MAX;
    if (!wl__grow((void **)&owner->group, trace->n_groups, &owner->cap_groups,
                  sizeof *owner->group))
        return UINT32_MAX;
    owner->group[g] = (wl_trace_group){.name = wl__strings_list(owner->groups, &n)[g]};
    trace->n_groups++;
    trace->group = owner->group;
    return g;
}

bool wl__group_declare(wl_trace *trace, uint32_t g, const uint32_t *rank, uint32_t n)
{
    wl_trace_group *group = &trace->owner->group[g];

    if (group->declared)
        return group->n == n && (n == 0 || memcmp(group->rank, rank, n * sizeof *rank) == 0);
    group->declared = true;
    group->rank = rank;
    group->n = n;
    return true;
}

int32_t wl_trace_find_group(const wl_trace *trace, const char *name)
{
    if (name[0] == 0)
        return WL_GROUP_WORLD;
    for (uint32_t g = 1; g < trace->n_groups; g++)
        if (strcmp(trace->group[g].name, name) == 0)
            return strcmp(name, "0") == 0 && !trace->group[g].declared ? WL_GROUP_WORLD
                                                                       : (int32_t)g;
    return strcmp(name, "0") == 0 ? WL_GROUP_WORLD : -1;
}

int32_t wl_trace_group_position(const wl_trace_group *group, uint32_t rank)
{
    if (rank < group->n && group->rank[rank] == rank)
        return (int32_t)rank;
    for (uint32_t k = 0; k < group->n; k++)
        if (group->rank[k] == rank)
            return (int32_t)k;
    return -1;
}

/* ---- the file ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* A rank that is listed twice, or -1. */
static int64_t repeated(const uint32_t *rank, size_t n)
{
    uint32_t *sorted = malloc((n + 1) * sizeof *sorted);
    int64_t found = -1;

    if (sorted == NULL)
        return -1;
    if (n > 0)
        memcpy(sorted, rank, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    for (size_t k = 1; k < n && found < 0; k++)
        if (sorted[k] == sorted[k - 1])
            found = sorted[k];
    free(sorted);
    return found;
}

static cs_status read_group(wl_trace *trace, const cs_doc *doc, const cs_node *key,
                            const cs_node *list, cs_error *err)
{
    uint32_t g = wl__group_add(trace, key->text);
    uint32_t *rank;
    int64_t value, twice;
    cs_status status = cs_node_expect(doc, list, CS_DOC_LIST, err);

    if (status != CS_OK)
        return status;
    rank = cs_arena_alloc(trace->owner->arena, (list->n + 1) * sizeof *rank);
    if (g == UINT32_MAX || rank == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", cs_doc_path(doc));
    for (size_t k = 0; k < list->n; k++) {
        status = cs_node_int(doc, list->item[k], 0, MAX_RANK, &value, err);
        if (status != CS_OK)
            return status;
        rank[k] = (uint32_t)value;
    }
    twice = repeated(rank, list->n);
    if (twice >= 0)
        return cs_doc_fail(doc, list, err, "group %s lists rank %lld twice", key->text,
                           (long long)twice);
    if (g != WL_GROUP_WORLD)
        (void)wl__group_declare(trace, g, rank, (uint32_t)list->n);
    return CS_OK;
}

static cs_status load_groups(wl_trace *trace, const char *path, cs_error *err)
{
    cs_doc *doc = NULL;
    const cs_node *root;
    cs_status status;

    CS_TRY(cs_doc_load(path, &doc, err));
    root = cs_doc_root(doc);
    CS_TRY(cs_node_expect(doc, root, CS_DOC_MAP, err));
    for (size_t i = 0; i < root->n; i++)
        CS_TRY(read_group(trace, doc, root->key[i], root->item[i], err));
done:
    cs_doc_destroy(doc);
    return status;
}

cs_status wl__groups_load(wl_trace *trace, const char *path, cs_error *err)
{
    cs_error own = {.text = ""};
    cs_status status = load_groups(trace, path, &own);

    if (status == CS_EPARSE || status == CS_ESCHEMA || status == CS_EINVAL)
        return cs_fail(err, CS_ETRACE, "ranks: group file %s", own.text);
    if (status != CS_OK && err != NULL)
        *err = own;
    return status;
}

/* ---- METADATA nodes ---- */

/* The list of process groups inside a Python list of one string: ['[{...}, ...]']. */
static const char *group_text(const char *values, size_t *n)
{
    const char *begin = strstr(values, "[{");
    size_t length = begin != NULL ? strlen(begin) : 0;

    while (length > 0 && begin[length - 1] != '}')
        length--;
    if (length == 0 || begin[length] != ']')
        return NULL;
    *n = length + 1;
    return begin;
}

static cs_status declare_one(wl__part *part, const cs_json *entry, cs_error *err)
{
    const cs_json *ranks = cs_json_get(entry, "ranks");
    const char *name = NULL;
    bool escaped;
    wl__declared d = {0};
    size_t n = ranks != NULL ? cs_json_size(ranks) : 0;

    if (!cs_json_get_string(cs_json_get(entry, "pg_name"), &name))
        return CS_OK;
    name = wl__printable(part->arena, name, &escaped);
    d.rank = cs_arena_alloc(part->arena, (n + 1) * sizeof *d.rank);
    if (name == NULL || d.rank == NULL ||
        !wl__grow((void **)&part->declared, part->n_declared, &part->cap_declared,
                  sizeof *part->declared))
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", part->head.path);
    for (size_t k = 0; k < n; k++) {
        int64_t value;

        if (!cs_json_get_int(cs_json_at(ranks, k), &value) || value < 0 || value > MAX_RANK)
            return CS_OK;
        d.rank[d.n++] = (uint32_t)value;
    }
    d.name = wl__strings_add(part->groups, name);
    if (d.name == UINT32_MAX)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", part->head.path);
    part->declared[part->n_declared++] = d;
    return CS_OK;
}

cs_status wl__part_declare(wl__part *part, const wl_et_node *node, cs_error *err)
{
    size_t n = 0;
    const char *text;
    cs_json *list = NULL;
    cs_status status = CS_OK;

    if (node->inputs == NULL ||
        (node->type != WL_NODE_METADATA && strncmp(node->name, "## process_group:init", 21) != 0))
        return CS_OK;
    text = group_text(node->inputs->values, &n);
    if (text == NULL || cs_json_parse(text, n, &list, NULL) != CS_OK)
        return CS_OK; /* METADATA of another kind */
    for (size_t i = 0; i < cs_json_size(list); i++)
        CS_TRY(declare_one(part, cs_json_at(list, i), err));
done:
    cs_json_destroy(list);
    return status;
}
