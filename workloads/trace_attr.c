/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The attribute dialects of Chakra writers -> the facts of a node.  Any integer arm is read; the
 * first of several attributes of one name counts, as in ASTRA-sim's reader. */
#include "workloads/trace_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_LIMIT ((int64_t)1 << 60) /* bytes or operations of one node */
#define PS_PER_US  1000000
#define LONGEST_PS (INT64_MAX / 8)

const char *const wl_node_type_names[] = {"INVALID",   "METADATA",  "MEM_LOAD",
                                          "MEM_STORE", "COMP",      "COMM_SEND",
                                          "COMM_RECV", "COMM_COLL", NULL};
const char *const wl_chakra_comm_names[] = {
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER",  "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER", NULL};

typedef struct {
    wl__part *part;
    wl_trace_node *to;
    const wl_et_attr *attr;
    bool ok;  /* memory held out */
    bool bad; /* a value was reported: what is missing because of it is not */
} context;

static void bad_value(context *c, const char *expected)
{
    const wl_et_attr *a = c->attr;
    char value[48] = "a list or an unset value";
    int64_t number;

    c->bad = true;
    if (a->arm == WL_ARM_STRING)
        snprintf(value, sizeof value, "a string");
    else if (a->arm == WL_ARM_BYTES)
        snprintf(value, sizeof value, "bytes");
    else if (wl_et_attr_int(a, &number))
        snprintf(value, sizeof value, "%" PRId64, number);
    else if (a->arm == WL_ARM_UINT64 || a->arm == WL_ARM_FIXED64)
        snprintf(value, sizeof value, "%" PRIu64, *(const uint64_t *)a->values);
    else if (a->arm == WL_ARM_DOUBLE || a->arm == WL_ARM_FLOAT)
        snprintf(value, sizeof value, "a fraction or too large");
    wl__issue(&c->part->issues, WL_ERROR, WL_ISSUE_VALUE, wl__place_of(&c->part->head),
              "node %" PRIu64 ": %s is %s; expected %s", c->to->id, a->name, value, expected);
}

static bool take_int(context *c, int64_t min, int64_t max, int64_t *out)
{
    char expected[80];
    int64_t value;

    if (wl_et_attr_int(c->attr, &value) && value >= min && value <= max) {
        *out = value;
        return true;
    }
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, min, max);
    bad_value(c, expected);
    return false;
}

/* ---- one function for each kind of attribute that is no plain integer ---- */

static void take_comm_type(context *c)
{
    int64_t value;

    if (c->to->type != WL_NODE_COLL) /* custom collectives put the node type here */
        return;
    if (take_int(c, 0, WL_N_CHAKRA_COMMS - 1, &value))
        c->to->comm = (uint8_t)value;
}

static void take_cpu(context *c)
{
    int64_t value;

    c->to->flags &= (uint8_t)~WL_NODE_CPU_ABSENT;
    if (take_int(c, 0, 1, &value) && value == 1)
        c->to->flags |= WL_NODE_CPU;
}

static bool communicates(const wl_trace_node *node)
{
    return node->type == WL_NODE_COLL || node->type == WL_NODE_SEND || node->type == WL_NODE_RECV;
}

static void set_group(context *c, const char *name)
{
    uint32_t group;

    if (!communicates(c->to))
        return;
    group = wl__strings_add(c->part->groups, name);
    if (group == UINT32_MAX)
        c->ok = false;
    else
        c->to->group = (int32_t)group;
}

static void take_group(context *c)
{
    char text[24];
    int64_t value;
    bool escaped;

    if (c->attr->arm == WL_ARM_STRING) {
        const char *name =
            wl__printable(c->part->arena, *(const char *const *)c->attr->values, &escaped);

        if (name == NULL)
            c->ok = false;
        else
            set_group(c, name);
    } else if (wl_et_attr_int(c->attr, &value)) {
        snprintf(text, sizeof text, "%" PRId64, value);
        set_group(c, text);
    } else {
        bad_value(c, "a group name or number");
    }
}

/* Booleans by the schema; some writers use integers. */
static void take_involved(context *c)
{
    const wl_et_attr *a = c->attr;
    bool narrow = a->arm == WL_ARM_LIST(WL_ARM_BOOL) || a->arm == WL_ARM_LIST(WL_ARM_INT32);
    bool wide = a->arm == WL_ARM_LIST(WL_ARM_INT64);

    if ((!narrow && !wide) || a->n > 8) {
        bad_value(c, "a list of at most 8 booleans");
        return;
    }
    for (size_t d = 0; d < a->n; d++) {
        bool in =
            narrow ? ((const int32_t *)a->values)[d] != 0 : ((const int64_t *)a->values)[d] != 0;

        c->to->involved |= (uint8_t)(in ? 1u << d : 0u);
    }
}

static void take_runtime(context *c)
{
    double us = -1;
    int64_t value;

    if (wl_et_attr_int(c->attr, &value))
        us = (double)value;
    else if (c->attr->arm == WL_ARM_DOUBLE)
        us = *(const double *)c->attr->values;
    else if (c->attr->arm == WL_ARM_FLOAT)
        us = (double)*(const float *)c->attr->values;
    if (!(us >= 0 && us <= (double)LONGEST_PS / PS_PER_US)) {
        bad_value(c, "microseconds");
        return;
    }
    c->to->duration_ps = llround(us * PS_PER_US);
    c->to->flags |= WL_NODE_DURATION;
}

static void take_duration_ps(context *c)
{
    if (take_int(c, 0, LONGEST_PS, &c->to->duration_ps))
        c->to->flags |= WL_NODE_DURATION;
}

/* ---- the table ---- */

typedef struct {
    const char *name;
    void (*take)(context *c); /* NULL: an integer stored at offset */
    size_t offset;
    bool wide; /* int64_t, else int32_t */
    int64_t min, max;
} attr_rule;

#define WIDE(name, field, min, max)                                                                \
    {                                                                                              \
        name, NULL, offsetof(wl_trace_node, field), true, min, max                                 \
    }
#define NARROW(name, field, min)                                                                   \
    {                                                                                              \
        name, NULL, offsetof(wl_trace_node, field), false, min, INT32_MAX                          \
    }
#define CODED(name, take)                                                                          \
    {                                                                                              \
        name, take, 0, false, 0, 0                                                                 \
    }

static const attr_rule rules[] = {
    /* ascending by name */
    NARROW("comm_dst", dst, 0),
    CODED("comm_group", take_group),
    NARROW("comm_priority", priority, INT32_MIN),
    WIDE("comm_size", comm_size, 0, SIZE_LIMIT),
    NARROW("comm_src", src, 0),
    WIDE("comm_tag", tag, INT64_MIN, INT64_MAX),
    CODED("comm_type", take_comm_type),
    CODED("duration_ps", take_duration_ps),
    CODED("involved_dim", take_involved),
    CODED("is_cpu_op", take_cpu),
    NARROW("msg_chunk_cnt", chunk_count, 0),
    WIDE("num_ops", num_ops, 0, SIZE_LIMIT),
    CODED("pg_id", take_group),
    CODED("pg_name", take_group),
    CODED("runtime", take_runtime),
    NARROW("splits", splits, 0),
    NARROW("stream", stream, -1),
    WIDE("tensor_size", tensor_size, 0, SIZE_LIMIT),
    NARROW("total_chunk_cnt", chunk_total, 0),
};

static int by_name(const void *key, const void *rule)
{
    return strcmp(key, ((const attr_rule *)rule)->name);
}

static void apply(context *c, const attr_rule *rule)
{
    int64_t value;
    int32_t narrow;

    if (rule->take != NULL) {
        rule->take(c);
    } else if (take_int(c, rule->min, rule->max, &value)) {
        narrow = (int32_t)value;
        memcpy((char *)c->to + rule->offset, rule->wide ? (void *)&value : (void *)&narrow,
               rule->wide ? sizeof value : sizeof narrow);
    }
}

/* Values that only some node types use are not judged on the others. */
static bool concerns(const wl_trace_node *node, const attr_rule *rule)
{
    bool comm = strncmp(rule->name, "comm_", 5) == 0;

    return !comm || communicates(node);
}

static void set_duration(context *c, const wl_et_node *from)
{
    if (from->duration_micros > LONGEST_PS / PS_PER_US) {
        wl__issue(&c->part->issues, WL_ERROR, WL_ISSUE_VALUE, wl__place_of(&c->part->head),
                  "node %" PRIu64 ": duration_micros is %" PRIu64 "; expected at most %d days",
                  from->id, from->duration_micros, 13);
        return;
    }
    c->to->duration_ps = (int64_t)from->duration_micros * PS_PER_US;
    if (from->duration_micros > 0)
        c->to->flags |= WL_NODE_DURATION;
}

static void read_attributes(context *c, const wl_et_node *from)
{
    uint32_t seen = 0;

    for (size_t i = 0; i < from->n_attrs; i++) {
        const attr_rule *rule =
            bsearch(from->attr[i].name, rules, CS_COUNT(rules), sizeof *rules, by_name);
        uint32_t bit;

        if (rule == NULL || !concerns(c->to, rule))
            continue;
        bit = 1u << (rule - rules);
        if (seen & bit) {
            c->part->repeated_attrs++;
            continue;
        }
        seen |= bit;
        c->attr = &from->attr[i];
        apply(c, rule);
    }
}

/* ---- what a node must have, by its type ---- */

static void missing(wl__part *part, const wl_trace_node *node, const char *what)
{
    wl__issue(&part->issues, WL_ERROR, WL_ISSUE_VALUE, wl__place_of(&part->head),
              "node %" PRIu64 ": %s without %s", node->id, wl_node_type_names[node->type], what);
}

/* A collective node of the host (a launcher) moves nothing: its kernel does. */
static void judge_collective(wl__part *part, wl_trace_node *node)
{
    bool no_type = node->comm == WL_CHAKRA_NONE, no_size = node->comm_size < 0;

    if (!no_type && (!no_size || node->comm == WL_CHAKRA_BARRIER)) {
        node->comm_size = no_size ? 0 : node->comm_size;
        return;
    }
    if (node->flags & WL_NODE_CPU) {
        node->flags |= WL_NODE_HOST_COLL;
        part->host_collectives++;
    } else if (!no_type && part->head.schema < WL_SCHEMA_004) {
        part->unsized++; /* converters of 2023 left it out; simulating it is refused */
    } else {
        missing(part, node, no_size ? "comm_size" : "comm_type");
    }
}

/* A converter of late 2024 states sizes as shares of the collective. */
static void judge_message(wl__part *part, wl_trace_node *node)
{
    bool send = node->type == WL_NODE_SEND;

    if (node->comm_size < 0 && node->chunk_total > 0 && node->chunk_count <= node->chunk_total)
        node->flags |= WL_NODE_CHUNKED;
    else if (node->comm_size < 0)
        missing(part, node, "comm_size");
    if ((send ? node->dst : node->src) < 0)
        missing(part, node, send ? "comm_dst" : "comm_src");
}

static void judge(wl__part *part, wl_trace_node *node, int32_t type, bool bad)
{
    if (bad)
        return;
    if (type < 0 || type >= WL_N_NODE_TYPES)
        wl__issue(&part->issues, WL_ERROR, WL_ISSUE_VALUE, wl__place_of(&part->head),
                  "node %" PRIu64 ": node type %d; the schema has 0 to %d", node->id, (int)type,
                  WL_N_NODE_TYPES - 1);
    else if (type == WL_NODE_INVALID)
        part->invalid_nodes++;
    else if (type == WL_NODE_COLL)
        judge_collective(part, node);
    else if (type == WL_NODE_SEND || type == WL_NODE_RECV)
        judge_message(part, node);
    else if ((type == WL_NODE_MEM_LOAD || type == WL_NODE_MEM_STORE) && node->tensor_size < 0)
        missing(part, node, "tensor_size");
}

cs_status wl__part_attributes(wl__part *part, const wl_et_node *from, wl_trace_node *to,
                              cs_error *err)
{
    context c = {.part = part, .to = to, .ok = true};
    bool escaped;
    const char *name = wl__printable(part->arena, from->name, &escaped);
    bool known = from->type >= 0 && from->type < WL_N_NODE_TYPES;

    *to = (wl_trace_node){
        .id = from->id,
        .num_ops = WL_ABSENT,
        .tensor_size = WL_ABSENT,
        .comm_size = WL_ABSENT,
        .src = WL_ABSENT,
        .dst = WL_ABSENT,
        .stream = WL_ABSENT,
        .type = known ? (uint8_t)from->type : WL_NODE_INVALID,
        .comm = WL_CHAKRA_NONE,
        .flags = WL_NODE_CPU_ABSENT,
    };
    part->bad_names += escaped;
    to->name = name != NULL ? wl__strings_add(part->names, name) : UINT32_MAX;
    set_duration(&c, from);
    read_attributes(&c, from);
    judge(part, to, from->type, c.bad);
    if (to->name == UINT32_MAX || !c.ok)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", part->head.path);
    return CS_OK;
}
