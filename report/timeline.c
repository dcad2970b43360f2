/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chrome-trace JSON (the "JSON Array Format" of the Trace Event specification): complete events in
 * microseconds.  https://ui.perfetto.dev opens it. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 32

struct report_trace {
    FILE *out;
    const char *process;
    int32_t first;
    const char *const *threads;
    uint64_t events;
    uint32_t *used; /* per stage: bit set of its threads */
    size_t capacity;
    bool failed; /* out of memory */
};

report_trace *report_trace_begin(FILE *out, const char *process, int32_t first,
                                 const char *const *threads)
{
    report_trace *trace = calloc(1, sizeof *trace);

    if (trace == NULL)
        return NULL;
    *trace = (report_trace){.out = out, .process = process, .first = first, .threads = threads};
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
    return trace;
}

void report_trace_destroy(report_trace *trace)
{
    if (trace == NULL)
        return;
    free(trace->used);
    free(trace);
}

/* A name as a JSON string; names are operators of a model file, so quotes must be escaped. */
static void put_name(FILE *out, const char *name)
{
    fputc('"', out);
    for (const unsigned char *p = (const unsigned char *)name; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20)
            fprintf(out, "\\u%04x", *p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

/* Picoseconds as microseconds with all digits, without going through a double. */
static void put_time(FILE *out, sim_time t)
{
    fprintf(out, "%lld.%06lld", (long long)(t / 1000000), (long long)(t % 1000000));
}

/* Remembers that a stage has a thread, for the names at the end. */
static void note(report_trace *trace, const sim_span_event *event)
{
    const size_t stage = (size_t)event->stage;

    if (stage >= trace->capacity) {
        const size_t capacity = 2 * stage + 16;
        uint32_t *larger = realloc(trace->used, capacity * sizeof *larger);
        if (larger == NULL) {
            trace->failed = true;
            return;
        }
        memset(larger + trace->capacity, 0, (capacity - trace->capacity) * sizeof *larger);
        trace->used = larger;
        trace->capacity = capacity;
    }
    trace->used[stage] |= UINT32_C(1) << event->thread;
}

/* A sample of a counter track. */
static void put_memory(report_trace *trace, const sim_span_event *event)
{
    fprintf(trace->out, "%s{\"ph\":\"C\",\"pid\":%d,\"name\":\"memory\",\"ts\":",
            trace->events > 0 ? ",\n" : "", event->stage);
    put_time(trace->out, event->start);
    fprintf(trace->out, ",\"args\":{\"bytes\":%.0f}}", event->bytes);
    trace->events++;
}

void report_trace_event(report_trace *trace, const sim_span_event *event)
{
    if (event->stage >= 0 && event->thread == SIM_THREAD_MEMORY)
        put_memory(trace, event);
    if (event->stage < 0 || event->thread < 0 || event->thread >= MOST_THREADS)
        return;
    note(trace, event);
    fprintf(trace->out,
            "%s{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":", trace->events > 0 ? ",\n" : "",
            event->stage, event->thread);
    put_name(trace->out, event->name);
    fputs(",\"ts\":", trace->out);
    put_time(trace->out, event->start);
    fputs(",\"dur\":", trace->out);
    put_time(trace->out, event->length);
    fputc('}', trace->out);
    trace->events++;
}

static void put_label(report_trace *trace, const char *kind, int32_t stage, int32_t thread,
                      const char *text)
{
    fprintf(trace->out, "%s{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":",
            trace->events > 0 ? ",\n" : "", stage, thread, kind);
    put_name(trace->out, text);
    fputs("}}", trace->out);
    trace->events++;
}

static void put_thread_names(report_trace *trace, int32_t stage)
{
    size_t n_named = 0;
    char text[48];

    while (trace->threads[n_named] != NULL)
        n_named++;
    for (int32_t t = 0; t < MOST_THREADS; t++) {
        if ((trace->used[stage] >> t & 1) == 0)
            continue;
        if ((size_t)t < n_named)
            snprintf(text, sizeof text, "%s", trace->threads[t]);
        else
            snprintf(text, sizeof text, "network dimension %d", t + 1 - (int32_t)n_named);
        put_label(trace, "thread_name", stage, t, text);
    }
}

cs_status report_trace_end(report_trace *trace, cs_error *err)
{
    char text[96];

    for (size_t s = 0; s < trace->capacity; s++) {
        if (trace->used[s] == 0)
            continue;
        snprintf(text, sizeof text, "%.64s %lld", trace->process,
                 (long long)s + (long long)trace->first);
        put_label(trace, "process_name", (int32_t)s, 0, text);
        put_thread_names(trace, (int32_t)s);
    }
    fputs("\n]}\n", trace->out);
    if (trace->failed)
        return cs_fail(err, CS_ENOMEM, "out of memory for the timeline");
    return ferror(trace->out) ? cs_fail(err, CS_EIO, "cannot write the timeline") : CS_OK;
}

static void put_span(void *context, const sim_span_event *event)
{
    report_trace_event(context, event);
}

cs_status report_timeline(const sim_model *model, size_t w, const sim_config *config,
                          sim_scratch *scratch, FILE *out, cs_error *err)
{
    static const char *const threads[] = {"compute", NULL};
    report_trace *trace = report_trace_begin(out, "stage", 1, threads);
    cs_status status = CS_OK;

    if (trace == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory for the timeline");
    CS_TRY(sim_timeline(model, w, config, scratch, &(sim_observer){put_span, trace}, err));
    CS_TRY(report_trace_end(trace, err));
done:
    report_trace_destroy(trace);
    return status;
}
