/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Nodes of schemas 0.0.1, 0.0.2 and 0.0.3, restated as 0.0.4: node and collective types
 * renumbered, `parent` as data dependencies, run time as duration, facts as attributes in the arms
 * that writers of 0.0.4 use. */
#include "workloads/trace_private.h"

#include <string.h>

enum { OLD_MAX_ATTRS = 64 };

/* A node under construction. */
typedef struct {
    wl__pool *pool;
    wl_schema schema;
    wl_et_attr attr[OLD_MAX_ATTRS];
    size_t n_attrs;
    uint64_t *dep;
    size_t n_deps, cap_deps;
    bool failed;
} old_node;

static const void *keep(old_node *node, const void *value, size_t size)
{
    void *copy = wl__pool_alloc(node->pool, size);

    if (copy == NULL)
        node->failed = true;
    else
        memcpy(copy, value, size);
    return copy;
}

static const char *keep_text(old_node *node, wl_bytes bytes)
{
    char *copy = wl__pool_alloc(node->pool, bytes.n + 1);

    if (copy == NULL) {
        node->failed = true;
        return "";
    }
    memcpy(copy, bytes.data, bytes.n);
    copy[bytes.n] = 0;
    return copy;
}

static void add_attr(old_node *node, const char *name, uint8_t arm, size_t n, const void *values)
{
    if (node->n_attrs == OLD_MAX_ATTRS) {
        node->failed = true;
        return;
    }
    node->attr[node->n_attrs++] =
        (wl_et_attr){.name = name, .doc = "", .arm = arm, .n = n, .values = values};
}

static void add_int(old_node *node, const char *name, uint64_t value)
{
    add_attr(node, name, WL_ARM_INT64, 1, keep(node, &value, sizeof value));
}

static void add_dep(old_node *node, uint64_t id)
{
    if (node->n_deps == node->cap_deps) {
        size_t cap = node->cap_deps == 0 ? 16 : 2 * node->cap_deps;
        uint64_t *grown = wl__pool_alloc(node->pool, cap * sizeof *grown);

        if (grown == NULL) {
            node->failed = true;
            return;
        }
        if (node->n_deps > 0)
            memcpy(grown, node->dep, node->n_deps * sizeof *grown);
        node->dep = grown;
        node->cap_deps = cap;
    }
    node->dep[node->n_deps++] = id;
}

/* A repeated integer field: one value a field, or packed. */
static void add_deps(old_node *node, const wl__field *f)
{
    wl_bytes rest = f->bytes;
    uint64_t id;

    if (f->type == WL__VARINT) {
        add_dep(node, f->value);
        return;
    }
    while (rest.n > 0 && !node->failed) {
        int used = wl__varint(rest.data, rest.n, &id);

        if (used <= 0) {
            node->failed = true;
            return;
        }
        add_dep(node, id);
        rest.data += used;
        rest.n -= (size_t)used;
    }
}

/* ---- renumbering ---- */

/* 0.0.1 and 0.0.2 had no METADATA, so every type was one lower. */
static int32_t node_type(wl_schema schema, uint64_t type)
{
    if (type > WL_N_NODE_TYPES)
        return WL_N_NODE_TYPES; /* unknown: reported by whoever looks at it */
    if (schema == WL_SCHEMA_003 || type == 0)
        return (int32_t)type;
    return (int32_t)type + 1;
}

static uint64_t comm_type(wl_schema schema, uint64_t type)
{
    static const uint8_t later[] = {WL_CHAKRA_ALL_REDUCE, WL_CHAKRA_ALL_TO_ALL,
                                    WL_CHAKRA_ALL_GATHER, WL_CHAKRA_REDUCE_SCATTER,
                                    WL_CHAKRA_BROADCAST};

    if (schema == WL_SCHEMA_001)
        type = type - 1; /* 0 was INVALID; it wraps and stays unknown */
    return type < CS_COUNT(later) ? later[type] : WL_N_CHAKRA_COMMS;
}

/* ---- 0.0.1: everything in fields of its own ---- */

static const struct {
    uint32_t field;
    const char *name;
} fields_001[] = {{5, "tensor_loc"},        {6, "tensor_size"},        {8, "input_tensor_loc"},
                  {9, "input_tensor_size"}, {10, "output_tensor_loc"}, {11, "output_tensor_size"},
                  {12, "num_ops"},          {15, "comm_group"},        {16, "comm_src"},
                  {17, "comm_dst"},         {18, "comm_size"},         {19, "comm_tag"},
                  {20, "comm_priority"}};

enum { OLD_MAX_DIMS = 32 };

static void field_001(old_node *node, const wl__field *f, wl_et_node *out)
{
    if (f->type != WL__VARINT)
        return;
    if (f->number == 7)
        out->duration_micros = f->value;
    if (f->number == 13)
        add_int(node, "comm_type", comm_type(WL_SCHEMA_001, f->value));
    for (size_t i = 0; i < CS_COUNT(fields_001); i++)
        if (fields_001[i].field == f->number)
            add_int(node, fields_001[i].name, f->value);
}

/* involved_dim of 0.0.1: one bool a field, or packed. */
static void involved_dims(old_node *node, wl_bytes rest)
{
    int32_t dims[OLD_MAX_DIMS];
    size_t n = 0;
    wl__field f;

    while (wl__wire_next(&rest, &f) == 1) {
        if (f.number != 14)
            continue;
        if (f.type == WL__VARINT && n < OLD_MAX_DIMS)
            dims[n++] = f.value != 0;
        for (size_t i = 0; f.type == WL__LENGTH && i < f.bytes.n && n < OLD_MAX_DIMS; i++)
            dims[n++] = f.bytes.data[i] != 0;
    }
    if (n > 0)
        add_attr(node, "involved_dim", WL_ARM_LIST(WL_ARM_BOOL), n,
                 keep(node, dims, n * sizeof *dims));
}

/* ---- 0.0.2 and 0.0.3: typed attributes ---- */

/* Arm of a scalar attribute value by field number and wire type; the wire type settles what the
 * field number alone does not (0.0.3 was renumbered while it lasted). */
static uint8_t old_arm(wl_schema schema, const wl__field *f)
{
    if (f->type == WL__LENGTH)
        return WL_ARM_STRING;
    if (f->type == WL__FIXED32)
        return WL_ARM_FLOAT;
    if (f->type == WL__FIXED64)
        return WL_ARM_DOUBLE;
    return schema == WL_SCHEMA_003 && f->number == 4 ? WL_ARM_BOOL : WL_ARM_INT64;
}

/* Field numbers of lists: 7-9 in 0.0.2; in 0.0.3 a list can start at 8, but 8 with a length is the
 * string of the later numbering. */
static bool old_is_list(wl_schema schema, const wl__field *f)
{
    if (schema == WL_SCHEMA_002)
        return f->number >= 7;
    return f->number >= 9 || (f->number == 8 && f->type != WL__LENGTH);
}

static const void *old_value(old_node *node, uint8_t arm, const wl__field *f)
{
    uint32_t bits = (uint32_t)f->value;
    const char *text;
    int32_t flag = f->value != 0;

    switch (arm) {
    case WL_ARM_STRING:
        text = keep_text(node, f->bytes);
        return keep(node, &text, sizeof text);
    case WL_ARM_FLOAT:
        return keep(node, &bits, sizeof bits);
    case WL_ARM_BOOL:
        return keep(node, &flag, sizeof flag);
    default:
        return keep(node, &f->value, sizeof f->value);
    }
}

static size_t old_value_size(uint8_t arm)
{
    return arm == WL_ARM_FLOAT || arm == WL_ARM_BOOL ? 4 : 8;
}

/* Gathers the repeated field `number` of an attribute into one list. */
static void old_list(old_node *node, const char *name, wl_bytes bytes, const wl__field *first)
{
    bool flags = strcmp(name, "involved_dim") == 0 && first->type == WL__VARINT;
    uint8_t arm = flags ? WL_ARM_BOOL : old_arm(node->schema, first);
    size_t size = old_value_size(arm), n = 0, count = 0;
    wl_bytes rest = bytes;
    wl__field f;
    char *values;

    while (wl__wire_next(&rest, &f) == 1)
        count += f.number == first->number && f.type == first->type;
    values = wl__pool_alloc(node->pool, (count + 1) * size);
    if (values == NULL) {
        node->failed = true;
        return;
    }
    while (wl__wire_next(&bytes, &f) == 1) {
        const void *value;

        if (f.number != first->number || f.type != first->type)
            continue;
        value = old_value(node, arm, &f);
        if (value == NULL)
            return;
        memcpy(values + n++ * size, value, size);
    }
    add_attr(node, name, WL_ARM_LIST(arm), n, values);
}

static void old_scalar(old_node *node, const char *name, const wl__field *f, wl_et_node *out)
{
    uint8_t arm = old_arm(node->schema, f);

    if (strcmp(name, "runtime") == 0 && arm == WL_ARM_INT64)
        out->duration_micros = f->value;
    else if (strcmp(name, "comm_type") == 0 && arm == WL_ARM_INT64)
        add_int(node, name, comm_type(node->schema, f->value));
    else
        add_attr(node, name, arm, 1, old_value(node, arm, f));
}

static bool old_attribute(old_node *node, wl_bytes bytes, wl_et_node *out)
{
    wl_bytes rest = bytes;
    const char *name = "";
    wl__field f, value = {0};
    int got;

    while ((got = wl__wire_next(&rest, &f)) == 1) {
        if (f.number == 1 && f.type == WL__LENGTH)
            name = keep_text(node, f.bytes);
        else if (f.number >= 4 && value.number == 0)
            value = f;
    }
    if (got < 0)
        return false;
    if (value.number == 0)
        add_attr(node, name, WL_ARM_UNSET, 0, NULL);
    else if (old_is_list(node->schema, &value))
        old_list(node, name, bytes, &value);
    else
        old_scalar(node, name, &value, out);
    return true;
}

/* Text fields 5-10 of 0.0.2 / 0.0.3, joined into lists as 0.0.4 has them. */
static void old_io(old_node *node, wl_bytes frame, wl_et_node *out)
{
    const char *text[6] = {"", "", "", "", "", ""};
    wl__field f;
    wl_et_io io[2];

    while (wl__wire_next(&frame, &f) == 1)
        if (f.number >= 5 && f.number <= 10 && f.type == WL__LENGTH)
            text[f.number - 5] = keep_text(node, f.bytes);
    for (int i = 0; i < 2; i++) {
        io[i] = (wl_et_io){text[3 * i], text[3 * i + 1], text[3 * i + 2]};
        if (io[i].values[0] != 0 || io[i].shapes[0] != 0 || io[i].types[0] != 0)
            *(i == 0 ? &out->inputs : &out->outputs) = keep(node, &io[i], sizeof io[i]);
    }
}

/* ---- a whole node ---- */

static bool old_field(old_node *node, const wl__field *f, wl_et_node *out)
{
    if (f->number == 1 && f->type == WL__VARINT)
        out->id = f->value;
    else if (f->number == 2 && f->type == WL__LENGTH)
        out->name = keep_text(node, f->bytes);
    else if (f->number == 3 && f->type == WL__VARINT)
        out->type = node_type(node->schema, f->value);
    else if (f->number == 4 && (f->type == WL__VARINT || f->type == WL__LENGTH))
        add_deps(node, f);
    else if (node->schema == WL_SCHEMA_001)
        field_001(node, f, out);
    else if (f->number == 11 && f->type == WL__LENGTH)
        return old_attribute(node, f->bytes, out);
    return true;
}

bool wl__old_node(wl_bytes frame, wl_schema schema, wl__pool *pool, wl_et_node *out)
{
    old_node node = {.pool = pool, .schema = schema};
    wl_bytes rest = frame;
    wl__field f;
    int got;

    *out = (wl_et_node){.name = ""};
    while ((got = wl__wire_next(&rest, &f)) == 1)
        if (!old_field(&node, &f, out))
            return false;
    if (got < 0)
        return false;
    if (schema == WL_SCHEMA_001)
        involved_dims(&node, frame);
    else
        old_io(&node, frame, out);
    out->n_data = node.n_deps;
    out->data_deps = node.dep;
    out->n_attrs = node.n_attrs;
    if (node.n_attrs > 0)
        out->attr = keep(&node, node.attr, node.n_attrs * sizeof *node.attr);
    return !node.failed;
}
