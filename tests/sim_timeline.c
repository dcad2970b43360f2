/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Timelines against the result of the same design: the last interval ends with the iteration, the
 * intervals of a thread do not overlap and add up to what was booked, and the fullest sample is the
 * peak memory. */
#include "tests/sim_design.h"

enum { MOST_STAGES = 8, MOST_THREADS = 4 };

/* An interval and its thread. */
typedef struct {
    int32_t stage, thread;
    sim_time start, end;
} interval;

typedef struct {
    interval *list;
    size_t n, capacity;
    sim_time busy[MOST_STAGES][MOST_THREADS];
    sim_time last, sampled[MOST_STAGES];
    double most, least;
    size_t samples;
} record;

static int by_start(const void *a, const void *b)
{
    const interval *x = a, *y = b;

    if (x->stage != y->stage || x->thread != y->thread)
        return x->stage != y->stage ? x->stage - y->stage : x->thread - y->thread;
    return (x->start > y->start) - (x->start < y->start);
}

/* Intervals of a thread that begin before the one before has ended; frees the list. */
static size_t overlaps(record *r)
{
    size_t n = 0;

    qsort(r->list, r->n, sizeof *r->list, by_start);
    for (size_t i = 1; i < r->n; i++)
        n += r->list[i].stage == r->list[i - 1].stage &&
             r->list[i].thread == r->list[i - 1].thread && r->list[i].start < r->list[i - 1].end;
    free(r->list);
    return n;
}

static void take(void *context, const sim_span_event *event)
{
    record *r = context;

    assert_in_range(event->stage, 0, MOST_STAGES - 1);
    if (event->thread == SIM_THREAD_MEMORY) {
        assert_true(event->start >= r->sampled[event->stage]);
        r->sampled[event->stage] = event->start;
        r->most = fmax(r->most, event->bytes);
        r->least = fmin(r->least, event->bytes);
        r->samples++;
        return;
    }
    assert_in_range(event->thread, 0, MOST_THREADS - 1);
    if (r->n == r->capacity) {
        r->capacity = 2 * r->capacity + 1024;
        r->list = realloc(r->list, r->capacity * sizeof *r->list);
        assert_non_null(r->list);
    }
    r->list[r->n++] =
        (interval){event->stage, event->thread, event->start, event->start + event->length};
    r->busy[event->stage][event->thread] += event->length;
    if (event->start + event->length > r->last)
        r->last = event->start + event->length;
}

static record look(design *d)
{
    record r = {.least = INFINITY};
    sim_observer observer = {take, &r};
    cs_error err = {""};

    if (sim_timeline(d->model, 0, &d->config, d->scratch, &observer, &err) != CS_OK)
        fail_msg("%s", err.text);
    return r;
}

static bool booked(const record *r, double compute)
{
    for (size_t s = 0; s < MOST_STAGES; s++)
        if (fabs(SIM_S(r->busy[s][0]) - compute) <= 1e-12)
            return true;
    return false;
}

static void test_timelines_show_what_the_engine_booked(void **state)
{
    static const struct {
        const char *settings;
        int stages, actions; /* actions: forward, backward (and weight) of a stage */
    } cases[] = {
        {"workload.dp=8", 1, 4 * 2},
        {"workload.dp=8 workload.sharding=weights", 1, 4 * 2},
        {"workload.dp=2 workload.pp=4", 4, 16 * 2},
        {"workload.dp=2 workload.pp=4 workload.schedule=gpipe", 4, 16 * 2},
        {"workload.dp=2 workload.pp=4 workload.schedule=zb_h1", 4, 16 * 3},
        {"workload.dp=2 workload.pp=4 workload.schedule=zb_h2", 4, 16 * 3},
        {"workload.dp=2 workload.pp=4 workload.schedule=interleaved workload.virtual_stages=2", 4,
         2 * 16 * 2},
        {"workload.dp=2 workload.tp=4 workload.tp_sequence=true compute.tp_overlap=1", 1, 16 * 2},
        {"workload.dp=2 workload.pp=4 workload.overlap=false", 4, 16 * 2},
        {"workload.dp=2 workload.pp=4 collective.scheduling=fifo", 4, 16 * 2},
        {"workload.dp=2 workload.pp=4 workload.recompute=full workload.slow_stage=2 "
         "compute.slow_factor=0.5",
         4, 16 * 2},
    };
    design d;

    (void)state;
    design_open(&d, "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\n"
                    "workloads: [{model: ../models/gpt3-1.3b.yaml, mode: train, global_batch: 32, "
                    "sequence: 256}]\n"
                    "knobs:\n  workload.pp: {values: [1]}\n"
                    "objectives: {latency: {minimize: latency}}\n");
    for (size_t i = 0; i < CS_COUNT(cases); i++) {
        sim_result r;
        record seen;

        psa_schema_baseline(d.schema, &d.config);
        design_set(&d, cases[i].settings);
        r = design_run(&d);
        seen = look(&d);
        assert_close(SIM_S(seen.last), r.latency_s, 1e-15);
        assert_true(booked(&seen, r.compute_s));
        assert_int_equal(overlaps(&seen), 0);
        assert_close(seen.most, r.peak_memory_bytes, 1e-15);
        assert_true(seen.least > 0 && seen.least < seen.most);
        assert_int_equal(seen.samples, 2 * cases[i].stages * cases[i].actions);
    }
    design_close(&d);
}

/* Of requests: the prefill, then the first 8 of 20 steps, one after another. */
static void test_the_timeline_of_a_request_goes_on_with_its_steps(void **state)
{
    design d;
    sim_result r;
    record seen;

    (void)state;
    design_open(&d, "psa: 1\nname: test\nsystem: ../systems/ring-8.yaml\n"
                    "workloads: [{model: ../models/gpt3-1.3b.yaml, mode: serve, global_batch: 8, "
                    "sequence: 256, output: 8}]\n"
                    "knobs:\n  workload.pp: {values: [1]}\n"
                    "objectives: {latency: {minimize: latency}}\n");
    design_set(&d, "workload.dp=2 workload.tp=4");
    r = design_unroll(&d);
    seen = look(&d);
    assert_close(SIM_S(seen.last), r.latency_s, 1e-9);
    assert_int_equal(overlaps(&seen), 0);
    assert_close(seen.most, r.peak_memory_bytes, 0.05); /* caches grow, the peak reserves them */
    assert_true(seen.most <= r.peak_memory_bytes);
    design_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timelines_show_what_the_engine_booked),
        cmocka_unit_test(test_the_timeline_of_a_request_goes_on_with_its_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
