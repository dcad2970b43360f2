/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Protobuf wire format by hand: what tells the schemas apart, and what is no trace at all. */
#include "workloads/trace_private.h"

#include <string.h>

int wl__varint(const uint8_t *bytes, size_t n, uint64_t *value)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && i < 10; i++) {
        uint64_t part = bytes[i] & 0x7fu;

        if (i == 9 && part > 1)
            return -1;
        v |= part << (7 * i);
        if ((bytes[i] & 0x80) == 0) {
            *value = v;
            return (int)i + 1;
        }
    }
    return n < 10 ? 0 : -1;
}

static bool take(wl_bytes *rest, uint64_t n, wl_bytes *out)
{
    if (n > rest->n)
        return false;
    *out = (wl_bytes){(size_t)n, rest->data};
    rest->data += n;
    rest->n -= (size_t)n;
    return true;
}

static bool take_varint(wl_bytes *rest, uint64_t *value)
{
    int used = wl__varint(rest->data, rest->n, value);
    wl_bytes skipped;

    return used > 0 && take(rest, (uint64_t)used, &skipped);
}

static bool take_fixed(wl_bytes *rest, unsigned bytes, uint64_t *value)
{
    wl_bytes raw;

    if (!take(rest, bytes, &raw))
        return false;
    *value = 0;
    for (unsigned i = 0; i < bytes; i++)
        *value |= (uint64_t)raw.data[i] << (8 * i);
    return true;
}

int wl__wire_next(wl_bytes *rest, wl__field *field)
{
    uint64_t tag, length;
    bool ok = false;

    if (rest->n == 0)
        return 0;
    *field = (wl__field){0};
    if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
        return -1;
    field->number = (uint32_t)(tag >> 3);
    field->type = (wl__wire_type)(tag & 7);
    switch (field->type) {
    case WL__VARINT:
        ok = take_varint(rest, &field->value);
        break;
    case WL__FIXED64:
        ok = take_fixed(rest, 8, &field->value);
        break;
    case WL__FIXED32:
        ok = take_fixed(rest, 4, &field->value);
        break;
    case WL__LENGTH:
        ok = take_varint(rest, &length) && take(rest, length, &field->bytes);
        break;
    }
    return ok ? 1 : -1;
}

/* An attribute of any schema: field 1 is its name, the rest parses. */
static bool is_attribute(wl_bytes bytes)
{
    wl__field f;
    bool named = false;
    int got;

    while ((got = wl__wire_next(&bytes, &f)) == 1) {
        if (f.number == 1 && f.type == WL__LENGTH)
            named = true;
        else if (f.number == 1 || f.number > 32)
            return false;
    }
    return got == 0 && named;
}

bool wl__is_metadata(wl_bytes frame)
{
    wl__field f;
    int got;

    while ((got = wl__wire_next(&frame, &f)) == 1) {
        if (f.type != WL__LENGTH || f.number > 2)
            return false;
        if (f.number == 2 && !is_attribute(f.bytes))
            return false;
    }
    return got == 0;
}

/* ---- schema ---- */

enum { DETECT_FRAMES = 512 };

/* What has been seen in the nodes so far. */
typedef struct {
    bool len4, len11, fixed_fields, attr10, parent, id_zero, duration;
    bool seen_002, seen_003;
} evidence;

/* An attribute of 0.0.2 / 0.0.3: which wire type stands in which field tells the two apart. */
static void weigh_old_attribute(wl_bytes bytes, evidence *e)
{
    wl__field f;

    while (wl__wire_next(&bytes, &f) == 1) {
        bool v = f.type == WL__VARINT, l = f.type == WL__LENGTH, x = f.type == WL__FIXED32;

        e->seen_002 |= (f.number == 4 && x) || (f.number == 5 && v) || (f.number == 6 && l) ||
                       (f.number == 7 && x);
        e->seen_003 |= (f.number == 4 && v) || (f.number == 5 && x) || (f.number == 6 && v) ||
                       (f.number == 7 && (v || l)) || f.number > 9;
    }
}

static void weigh_field(const wl__field *f, evidence *e)
{
    bool len = f->type == WL__LENGTH, var = f->type == WL__VARINT;

    e->id_zero |= f->number == 1 && var && f->value == 0;
    e->len4 |= f->number == 4 && len;
    e->parent |= f->number == 4 && var;
    e->duration |= f->number == 7 && var;
    e->fixed_fields |= f->number >= 8 && f->number <= 20 && var;
    e->attr10 |= f->number == 10 && len && is_attribute(f->bytes);
    if (f->number == 11 && len) {
        e->len11 = true;
        weigh_old_attribute(f->bytes, e);
    }
}

/* Nothing that can still come would change the judgement. */
static bool decided(const evidence *e)
{
    if (e->len11 && !e->len4)
        return e->seen_002 != e->seen_003;
    return e->attr10 || e->fixed_fields;
}

static wl_schema judge(const evidence *e, bool *certain)
{
    *certain = true;
    if (e->len11 && !e->len4) {
        *certain = e->seen_002 != e->seen_003;
        return e->seen_002 && !e->seen_003 ? WL_SCHEMA_002 : WL_SCHEMA_003;
    }
    if (e->fixed_fields)
        return WL_SCHEMA_001;
    if (e->attr10 || e->len4)
        return WL_SCHEMA_004;
    if (e->parent || e->id_zero) {
        *certain = e->duration; /* a run time in a field of its own: 0.0.1 only */
        return WL_SCHEMA_001;
    }
    return WL_SCHEMA_004;
}

cs_status wl__detect_schema(wl__source *source, wl_schema *schema, bool *certain, cs_error *err)
{
    evidence e = {0};
    wl_bytes frame;
    int64_t offset;

    for (int i = 0; i < DETECT_FRAMES && !decided(&e); i++) {
        wl__field f;

        /* A bad frame is judged when it is read for good. */
        if (wl__source_frame(source, &frame, &offset, NULL) != CS_OK || frame.data == NULL)
            break;
        if (i == 0 && wl__is_metadata(frame))
            continue;
        while (wl__wire_next(&frame, &f) == 1)
            weigh_field(&f, &e);
    }
    *schema = judge(&e, certain);
    return wl__source_rewind(source, err);
}

/* ---- files that are no traces ---- */

static const struct {
    const char *what;
    uint8_t n;
    uint8_t magic[8];
} magics[] = {
    {"a PNG image", 4, {0x89, 'P', 'N', 'G'}},
    {"an ELF program", 4, {0x7f, 'E', 'L', 'F'}},
    {"a JPEG image", 3, {0xff, 0xd8, 0xff}},
    {"a GIF image", 4, {'G', 'I', 'F', '8'}},
    {"a PDF document", 4, {'%', 'P', 'D', 'F'}},
    {"a ZIP archive", 4, {'P', 'K', 3, 4}},
    {"zstd-compressed: unpack it first", 4, {0x28, 0xb5, 0x2f, 0xfd}},
    {"bzip2-compressed: unpack it first", 3, {'B', 'Z', 'h'}},
    {"xz-compressed: unpack it first", 6, {0xfd, '7', 'z', 'X', 'Z', 0}},
    {"an HDF5 file", 4, {0x89, 'H', 'D', 'F'}},
    {"an SQLite database", 6, {'S', 'Q', 'L', 'i', 't', 'e'}},
    {"a Parquet file", 4, {'P', 'A', 'R', '1'}},
    {"a NumPy array", 6, {0x93, 'N', 'U', 'M', 'P', 'Y'}},
    {"a Python pickle", 2, {0x80, 4}},
    {"a WebAssembly module", 4, {0, 'a', 's', 'm'}},
};

static bool is_text(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] < 0x20 && strchr("\t\n\r\f", bytes[i]) == NULL)
            return false;
        if (bytes[i] == 0 || bytes[i] == 0x7f)
            return false;
    }
    return n > 0;
}

bool wl__is_blank(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0)
            return false;
    return n >= 16;
}

const char *wl__sniff(const uint8_t *bytes, size_t n)
{
    static const char *const policies[] = {"DATA", "MODEL", "MICRO", "HYBRID_",
                                           "DISTRIBUTED_INFERENCE"};

    for (size_t i = 0; i < CS_COUNT(magics); i++)
        if (n >= magics[i].n && memcmp(bytes, magics[i].magic, magics[i].n) == 0)
            return magics[i].what;
    if (wl__is_blank(bytes, n))
        return "nothing but zero bytes";
    if (!is_text(bytes, n))
        return NULL;
    if (n > 30 && memcmp(bytes, "version https://git-lfs", 23) == 0)
        return "a Git LFS pointer: fetch the file itself";
    for (size_t i = 0; i < CS_COUNT(policies); i++)
        if (n > strlen(policies[i]) && memcmp(bytes, policies[i], strlen(policies[i])) == 0)
            return "an ASTRA-sim text workload: name it *.txt to read it as one";
    if (bytes[0] == '{' || bytes[0] == '[')
        return "a JSON text";
    return "a text file";
}
