/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Nodes and metadata of schema 0.0.4 through protobuf-c.  The 30 kinds of attribute value are
 * reached through the message descriptors, not by 30 cases. */
#include "workloads/trace_private.h"

#include "chakra.pb-c.h"

#include <string.h>

typedef WlChakra__Attribute pb_attr;

static void *pool_alloc(void *data, size_t size)
{
    return wl__pool_alloc(data, size);
}

static void pool_free(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

/* Bytes of one value of an arm, in protobuf-c's memory and in ours (they agree but for bytes). */
static size_t value_size(uint8_t arm)
{
    static const uint8_t size[] = {
        sizeof(double),
        sizeof(float),
        sizeof(int32_t),
        sizeof(int64_t),
        sizeof(uint32_t),
        sizeof(uint64_t),
        sizeof(int32_t),
        sizeof(int64_t),
        sizeof(uint32_t),
        sizeof(uint64_t),
        sizeof(int32_t),
        sizeof(int64_t),
        sizeof(protobuf_c_boolean),
        sizeof(char *),
        sizeof(ProtobufCBinaryData),
    };

    return size[(arm - WL_ARM_DOUBLE) / 2];
}

/* Where a list message of an arm keeps its values: every list has the one field `values`. */
static const ProtobufCFieldDescriptor *list_field(uint8_t arm)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(&wl_chakra__attribute__descriptor, arm);

    return ((const ProtobufCMessageDescriptor *)f->descriptor)->fields;
}

/* protobuf-c has {len, data}, wl_bytes {n, data}: copied, so that neither layout matters. */
static bool bytes_from_pb(const ProtobufCBinaryData *from, size_t n, wl__pool *pool,
                          const void **out)
{
    wl_bytes *to = wl__pool_alloc(pool, (n + 1) * sizeof *to);

    for (size_t i = 0; to != NULL && i < n; i++)
        to[i] = (wl_bytes){from[i].len, from[i].data};
    *out = to;
    return to != NULL;
}

static bool attr_from_pb(const pb_attr *from, wl__pool *pool, wl_et_attr *to)
{
    *to = (wl_et_attr){.name = from->name, .doc = from->doc, .arm = (uint8_t)from->value_case};
    if (to->arm == WL_ARM_UNSET)
        return true;
    if (WL_ARM_IS_LIST(to->arm)) {
        const ProtobufCFieldDescriptor *f = list_field(to->arm);
        const char *list = (const char *)from->double_list;

        memcpy(&to->n, list + f->quantifier_offset, sizeof to->n);
        memcpy(&to->values, list + f->offset, sizeof to->values);
    } else {
        to->n = 1;
        to->values = &from->double_val; /* the union's address */
    }
    if (to->arm == WL_ARM_BYTES || to->arm == WL_ARM_LIST(WL_ARM_BYTES))
        return bytes_from_pb(to->values, to->n, pool, &to->values);
    return true;
}

static bool attrs_from_pb(pb_attr *const *from, size_t n, wl__pool *pool, const wl_et_attr **out)
{
    wl_et_attr *to = wl__pool_alloc(pool, (n + 1) * sizeof *to);

    if (to == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!attr_from_pb(from[i], pool, &to[i]))
            return false;
    *out = to;
    return true;
}

static bool io_from_pb(const WlChakra__TensorText *from, wl__pool *pool, const wl_et_io **out)
{
    wl_et_io *to;

    *out = NULL;
    if (from == NULL)
        return true;
    to = wl__pool_alloc(pool, sizeof *to);
    if (to == NULL)
        return false;
    *to = (wl_et_io){from->values, from->shapes, from->types};
    *out = to;
    return true;
}

bool wl__pb_node(wl_bytes frame, wl__pool *pool, wl_et_node *out)
{
    ProtobufCAllocator memory = {pool_alloc, pool_free, pool};
    WlChakra__Node *node = wl_chakra__node__unpack(&memory, frame.n, frame.data);

    if (node == NULL)
        return false;
    *out = (wl_et_node){
        .id = node->id,
        .name = node->name,
        .type = node->type,
        .n_ctrl = node->n_ctrl_deps,
        .n_data = node->n_data_deps,
        .n_attrs = node->n_attr,
        .ctrl_deps = node->ctrl_deps,
        .data_deps = node->data_deps,
        .start_micros = node->start_time_micros,
        .duration_micros = node->duration_micros,
        .n_unknown = node->base.n_unknown_fields,
        .unknown = node->base.unknown_fields,
    };
    return io_from_pb(node->inputs, pool, &out->inputs) &&
           io_from_pb(node->outputs, pool, &out->outputs) &&
           attrs_from_pb(node->attr, node->n_attr, pool, &out->attr);
}

bool wl__pb_metadata(wl_bytes frame, wl__pool *pool, wl_et_metadata *out, size_t *n_unknown)
{
    ProtobufCAllocator memory = {pool_alloc, pool_free, pool};
    WlChakra__Metadata *m = wl_chakra__metadata__unpack(&memory, frame.n, frame.data);

    if (m == NULL)
        return false;
    *n_unknown = m->base.n_unknown_fields;
    *out = (wl_et_metadata){.version = m->version, .n_attrs = m->n_attr};
    return attrs_from_pb(m->attr, m->n_attr, pool, &out->attr);
}

/* ---- packing ---- */

static bool bytes_to_pb(const wl_bytes *from, size_t n, wl__pool *pool, const void **out)
{
    ProtobufCBinaryData *to = wl__pool_alloc(pool, (n + 1) * sizeof *to);

    for (size_t i = 0; to != NULL && i < n; i++) {
        union {
            const uint8_t *in;
            uint8_t *out;
        } data = {from[i].data};
        to[i] = (ProtobufCBinaryData){from[i].n, data.out};
    }
    *out = to;
    return to != NULL;
}

/* A list message of the arm's type holding borrowed values. */
static bool list_to_pb(const wl_et_attr *from, const void *values, wl__pool *pool, pb_attr *to)
{
    const ProtobufCFieldDescriptor *f = list_field(from->arm);
    const ProtobufCFieldDescriptor *own =
        protobuf_c_message_descriptor_get_field(&wl_chakra__attribute__descriptor, from->arm);
    const ProtobufCMessageDescriptor *type = own->descriptor;
    char *list = wl__pool_alloc(pool, type->sizeof_message);

    if (list == NULL)
        return false;
    protobuf_c_message_init(type, list);
    memcpy(list + f->quantifier_offset, &from->n, sizeof from->n);
    memcpy(list + f->offset, &values, sizeof values);
    memcpy((char *)to + own->offset, &list, sizeof list);
    return true;
}

static char *unconst(const char *text)
{
    union {
        const char *in;
        char *out;
    } u = {text};
    return u.out;
}

static bool attr_to_pb(const wl_et_attr *from, wl__pool *pool, pb_attr *to)
{
    const void *values = from->values;
    bool is_bytes = from->arm == WL_ARM_BYTES || from->arm == WL_ARM_LIST(WL_ARM_BYTES);

    wl_chakra__attribute__init(to);
    to->name = unconst(from->name);
    to->doc = unconst(from->doc);
    to->value_case = (WlChakra__Attribute__ValueCase)from->arm;
    if (from->arm == WL_ARM_UNSET)
        return true;
    if (from->arm < WL_ARM_DOUBLE || from->arm > WL_ARM_LAST)
        return false;
    if (is_bytes && !bytes_to_pb(values, from->n, pool, &values))
        return false;
    if (WL_ARM_IS_LIST(from->arm))
        return list_to_pb(from, values, pool, to);
    memcpy(&to->double_val, values, value_size(from->arm));
    return true;
}

static bool attrs_to_pb(const wl_et_attr *from, size_t n, wl__pool *pool, pb_attr ***out)
{
    pb_attr **list = wl__pool_alloc(pool, (n + 1) * sizeof *list);
    pb_attr *each = wl__pool_alloc(pool, (n + 1) * sizeof *each);

    if (list == NULL || each == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        list[i] = &each[i];
        if (!attr_to_pb(&from[i], pool, &each[i]))
            return false;
    }
    *out = list;
    return true;
}

static void io_to_pb(const wl_et_io *from, WlChakra__TensorText *to)
{
    wl_chakra__tensor_text__init(to);
    to->values = unconst(from->values);
    to->shapes = unconst(from->shapes);
    to->types = unconst(from->types);
}

static uint64_t *unconst_ids(const uint64_t *ids)
{
    union {
        const uint64_t *in;
        uint64_t *out;
    } u = {ids};
    return u.out;
}

static void keep_unknown(const wl_et_node *from, ProtobufCMessage *base)
{
    union {
        const void *in;
        ProtobufCMessageUnknownField *out;
    } u = {from->unknown};

    base->n_unknown_fields = (unsigned)from->n_unknown;
    base->unknown_fields = u.out;
}

bool wl__pb_pack_node(const wl_et_node *from, wl__pool *pool, wl_bytes *out)
{
    WlChakra__Node node = WL_CHAKRA__NODE__INIT;
    WlChakra__TensorText io[2];
    uint8_t *bytes;

    node.id = from->id;
    node.name = unconst(from->name);
    node.type = from->type;
    node.n_ctrl_deps = from->n_ctrl;
    node.ctrl_deps = unconst_ids(from->ctrl_deps);
    node.n_data_deps = from->n_data;
    node.data_deps = unconst_ids(from->data_deps);
    node.start_time_micros = from->start_micros;
    node.duration_micros = from->duration_micros;
    keep_unknown(from, &node.base);
    for (int i = 0; i < 2; i++) {
        const wl_et_io *side = i == 0 ? from->inputs : from->outputs;

        if (side == NULL)
            continue;
        io_to_pb(side, &io[i]);
        *(i == 0 ? &node.inputs : &node.outputs) = &io[i];
    }
    node.n_attr = from->n_attrs;
    if (!attrs_to_pb(from->attr, from->n_attrs, pool, &node.attr))
        return false;
    bytes = wl__pool_alloc(pool, wl_chakra__node__get_packed_size(&node) + 1);
    if (bytes == NULL)
        return false;
    *out = (wl_bytes){wl_chakra__node__pack(&node, bytes), bytes};
    return true;
}

bool wl__pb_pack_metadata(const wl_et_metadata *from, wl__pool *pool, wl_bytes *out)
{
    WlChakra__Metadata metadata = WL_CHAKRA__METADATA__INIT;
    uint8_t *bytes;

    metadata.version = unconst(from->version);
    metadata.n_attr = from->n_attrs;
    if (!attrs_to_pb(from->attr, from->n_attrs, pool, &metadata.attr))
        return false;
    bytes = wl__pool_alloc(pool, wl_chakra__metadata__get_packed_size(&metadata) + 1);
    if (bytes == NULL)
        return false;
    *out = (wl_bytes){wl_chakra__metadata__pack(&metadata, bytes), bytes};
    return true;
}
