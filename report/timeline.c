/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Chrome-trace JSON (the "JSON Array Format" of the Trace Event specification): complete events in
 * microseconds.  https://ui.perfetto.dev opens it. */
#include "report/report.h"

#include <stdlib.h>

typedef struct {
    FILE *out;
    int32_t n_stages, n_threads; /* seen so far, for the names at the end */
    uint64_t events;
} trace_writer;

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

static void put_event(void *context, const sim_span_event *event)
{
    trace_writer *w = context;

    fprintf(w->out, "%s{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":", w->events > 0 ? ",\n" : "",
            event->stage, event->thread);
    put_name(w->out, event->name);
    fputs(",\"ts\":", w->out);
    put_time(w->out, event->start);
    fputs(",\"dur\":", w->out);
    put_time(w->out, event->length);
    fputc('}', w->out);
    w->events++;
    if (event->stage >= w->n_stages)
        w->n_stages = event->stage + 1;
    if (event->thread >= w->n_threads)
        w->n_threads = event->thread + 1;
}

static void put_label(trace_writer *w, const char *kind, int32_t stage, int32_t thread,
                      const char *text)
{
    fprintf(w->out, "%s{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{\"name\":",
            w->events > 0 ? ",\n" : "", stage, thread, kind);
    put_name(w->out, text);
    fputs("}}", w->out);
    w->events++;
}

static void put_labels(trace_writer *w)
{
    const int32_t n_stages = w->n_stages;
    char text[48];

    for (int32_t s = 0; s < n_stages; s++) {
        snprintf(text, sizeof text, "stage %d", s + 1);
        put_label(w, "process_name", s, 0, text);
        for (int32_t t = 0; t < w->n_threads; t++) {
            snprintf(text, sizeof text, t == 0 ? "compute" : "network dimension %d", t);
            put_label(w, "thread_name", s, t, text);
        }
    }
}

cs_status report_timeline(const sim_model *model, size_t w, const sim_config *config,
                          sim_scratch *scratch, FILE *out, cs_error *err)
{
    trace_writer writer = {.out = out};
    cs_status status = CS_OK;

    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
    CS_TRY(sim_timeline(model, w, config, scratch, put_event, &writer, err));
    put_labels(&writer);
    fputs("\n]}\n", out);
    if (ferror(out))
        return cs_fail(err, CS_EIO, "cannot write the timeline");
done:
    return status;
}
