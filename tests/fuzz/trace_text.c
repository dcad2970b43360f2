/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a text workload of ASTRA-sim v1 or SimAI, and as a group file beside a trace. */
#define _GNU_SOURCE
#include "tests/fuzz/fuzz.h"
#include "workloads/trace_io.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void load_one(const char *path, const wl_trace_options *options)
{
    wl_trace *trace = NULL;
    cs_error err;

    (void)!wl_trace_load(path, options, &trace, &err);
    wl_trace_destroy(trace);
}

/* A trace of one collective in group 1, to stand beside the group file. */
static int trace_file(char path[64])
{
    int fd = memfd_create("trace", 0);
    static const char bytes[] = "\x07\x0a\x05"
                                "0.0.4"
                                "\x29\x08\x01\x18\x07"
                                "\x52\x10\x0a\x09"
                                "comm_type"
                                "\x48\x00\x52\x10"
                                "\x0a\x09"
                                "comm_size"
                                "\x48\x40";

    snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, bytes, sizeof bytes - 1) < 0)
        return -1;
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], trace[64];
    int fd = memfd_create("text", 0), other = trace_file(trace);
    wl_trace_options text = {.schema = WL_SCHEMA_TEXT, .job_ranks = 4, .passes = 2};
    wl_trace_options groups = {.group_file = path};

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && other >= 0 && write(fd, data, size) == (ssize_t)size) {
        load_one(path, &text);
        load_one(trace, &groups);
    }
    if (fd >= 0)
        close(fd);
    if (other >= 0)
        close(other);
    return 0;
}

static const char *const seeds[] = {
    "DATA\t\t\r\n2\r\na\t-1\t10\tNONE\t0\t20\tNONE\t0\t30\tALLREDUCE\t100\t5\r\n"
    "b -1 11 NONE 0 21 NONE 0 31 ALLREDUCE 200 6\r\n",
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0 "
    "checkpoint_initiates: 1 1\n2\na -1 1 ALLGATHER 8 1 NONE 0 1 ALLREDUCEALLTOALL 8 0\n"
    "b -1 1 ALLTOALL_EP 8 1 NONE 0 1 ALLREDUCE_DP_EP 8 0\n",
    "HYBRID_DLRM 0\n2\na -1 1 ALLTOALL 8 1 ALLTOALL 8 1 NONE 0 0\nb -1 1 NONE 0 1 NONE 0 1 "
    "ALLREDUCE 8 0\n",
    "HYBRID_CUSTOMIZED\n1\na -1 1 ALLGATHER 8 1 NONE 0 1 ALLREDUCE 8 0 HYBRID_MODEL_DATA\n",
    "{\"1\": [0, 1], \"2\": [2, 3], \"0\": []}\n",
};

size_t fuzz_seeds(void)
{
    return sizeof seeds / sizeof *seeds;
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    return fuzz_text(seeds[k], bytes, capacity);
}
