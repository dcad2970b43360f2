/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The report page: one self-contained HTML file that opens offline.  Its data is one JSON element;
 * everything a study says (names, reasons, paths) is escaped there and shown as text. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "report/analysis.h"

/* A study to show, and what the file does not hold. */
typedef struct {
    const search_study *study;
    const char *path;  /* as the user named it */
    double bound, gap; /* proven bound of the first objective; NAN: none */
} report_source;

typedef struct {
    const report_source *source; /* at least one; charts overlay them */
    size_t n;
    /* Criteria of the front shown first, "latency,network_cost"; NULL: chosen from what varies. */
    const char *front;
    size_t explained;  /* best designs of each study that are explained */
    size_t most_bytes; /* aim for the page's data; more trials than fit are thinned.  0: 12 MB */
} report_page;

/* Writes the page.  Trials are thinned evenly when they do not fit; the best, every improvement and
 * the fronts of all pairs of metrics stay, and the page says how many it shows.  The same studies
 * give the same bytes.  CS_EINVAL without a study, CS_EIO when a study or `out` fails.
 * O(trials * log trials). */
CS_MUST_USE cs_status report_html(const report_page *page, FILE *out, cs_error *err);

/* A comparison of agents, and its file of runs (JSON lines) opened for reading. */
typedef struct {
    const search_compare_result *result;
    FILE *runs;
} report_comparison;

/* Writes its page: convergence with bands, runs to target, performance profiles, ranks. */
CS_MUST_USE cs_status report_html_compare(const report_comparison *comparison, FILE *out,
                                          cs_error *err);

#endif
