/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a trace file of every schema: read, judged, summarized. */
#define _GNU_SOURCE
#include "tests/fuzz/fuzz.h"
#include "workloads/trace_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void look(const char *path, wl_schema schema)
{
    wl_trace_options options = {.schema = schema, .chain_streams = true};
    wl_trace *trace = NULL;
    wl_trace_info *info;
    cs_arena *arena = cs_arena_create(0);
    cs_error err;

    if (arena != NULL && wl_trace_load(path, &options, &trace, &err) == CS_OK) {
        (void)!wl_trace_verdict(trace, true, &err);
        (void)!wl_trace_summarize(trace, arena, &info, &err);
    }
    wl_trace_destroy(trace);
    cs_arena_destroy(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("trace", 0);
    char path[64];

    if (fd < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size)
        for (int schema = WL_SCHEMA_AUTO; schema <= WL_SCHEMA_004; schema++)
            look(path, (wl_schema)schema);
    close(fd);
    return 0;
}

/* ---- seeds ---- */

/* Two nodes of 0.0.1: compute, then an all-gather with involved dimensions. */
static const uint8_t old[] = "\x0d\x08\x00\x12\x05"
                             "first"
                             "\x18\x03\x38\x05"
                             "\x19\x08\x01\x12\x06"
                             "second"
                             "\x18\x06\x20\x00\x68\x03\x70\x01\x70\x00\x90\x01\x80\x80\x40";

static const uint64_t one = 1;
static const int64_t sixty_four = 64, stream = 7;
static const double real = 0.5;
static const char *const text = "3";
static const int32_t flags[] = {1, 0};
static const wl_bytes blob = {2, (const uint8_t *)"ab"};
static const wl_et_io io = {"['[{\"pg_name\": \"3\", \"ranks\": [0]}]']", "[]", "[]"};
static const wl_et_attr attrs[] = {
    {"comm_size", "", WL_ARM_INT64, 1, &sixty_four},
    {"comm_type", "", WL_ARM_UINT64, 1, &one},
    {"pg_name", "", WL_ARM_STRING, 1, &text},
    {"stream", "doc", WL_ARM_SINT64, 1, &stream},
    {"involved_dim", "", WL_ARM_LIST(WL_ARM_BOOL), 2, flags},
    {"runtime", "", WL_ARM_DOUBLE, 1, &real},
    {"strings", "", WL_ARM_LIST(WL_ARM_STRING), 1, &text},
    {"bytes", "", WL_ARM_BYTES, 1, &blob},
    {"unset", "", WL_ARM_UNSET, 0, NULL},
};

static void write_nodes(wl_et_writer *writer)
{
    const wl_et_node nodes[] = {
        {.id = 1, .name = "## process_group:init ##", .type = WL_NODE_METADATA, .inputs = &io},
        {.id = 2, .name = "comp", .type = WL_NODE_COMP, .n_data = 1, .data_deps = &one},
        {.id = 3,
         .name = "coll",
         .type = WL_NODE_COLL,
         .n_ctrl = 1,
         .ctrl_deps = &one,
         .duration_micros = 5,
         .n_attrs = CS_COUNT(attrs),
         .attr = attrs},
    };

    for (size_t i = 0; i < CS_COUNT(nodes); i++)
        (void)!wl_et_writer_put(writer, &nodes[i], NULL);
}

size_t fuzz_seeds(void)
{
    return 3;
}

/* 0: 0.0.4; 1: the same compressed; 2: 0.0.1. */
size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    char path[] = "/tmp/fuzz_seed_XXXXXX.et.gz";
    wl_et_writer *writer = NULL;
    size_t n = 0;
    FILE *f;

    if (k == 2) {
        memcpy(bytes, old, sizeof old - 1);
        return sizeof old - 1;
    }
    path[sizeof path - (k == 0 ? 4 : 1)] = 0;
    close(mkstemps(path, k == 0 ? 3 : 6));
    if (wl_et_writer_open(path, NULL, &writer, NULL) == CS_OK) {
        write_nodes(writer);
        (void)!wl_et_writer_close(writer, NULL);
    }
    f = fopen(path, "rb");
    if (f != NULL) {
        n = fread(bytes, 1, capacity, f);
        fclose(f);
    }
    remove(path);
    return n;
}
