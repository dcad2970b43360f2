/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is wrong or odd about a trace, as lines that name file, class and place. */
#include "workloads/trace_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const wl_issue_class_names[] = {"framing", "empty", "type",  "node",
                                            "value",   "graph", "ranks", NULL};

static void count(wl__issues *issues, wl_severity severity, size_t n)
{
    if (severity == WL_ERROR)
        issues->n_errors += n;
    else
        issues->n_warnings += n;
}

static void keep_issue(wl__issues *issues, const wl_trace_issue *issue)
{
    /* Errors are never crowded out by warnings. */
    if (issues->n >= WL__ISSUES_KEPT && (issue->severity == WL_WARNING || issues->n_errors > 64))
        return;
    if (!wl__grow((void **)&issues->list, issues->n, &issues->cap, sizeof *issues->list))
        return;
    issues->list[issues->n++] = *issue;
}

wl__place wl__place_of(const wl_trace_rank *rank)
{
    return (wl__place){rank->path, rank->rank};
}

void wl__issue(wl__issues *issues, wl_severity severity, wl_issue_class class_, wl__place place,
               const char *fmt, ...)
{
    wl_trace_issue issue = {.severity = severity, .class_ = class_, .rank = place.rank};
    char text[1024];
    va_list args;

    count(issues, severity, 1);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    issue.text =
        cs_arena_printf(issues->arena, "%s%s%s: %s", place.path != NULL ? place.path : "",
                        place.path != NULL ? ": " : "", wl_issue_class_names[class_], text);
    if (issue.text != NULL)
        keep_issue(issues, &issue);
}

void wl__issues_append(wl__issues *issues, const wl__issues *more)
{
    count(issues, WL_ERROR, more->n_errors);
    count(issues, WL_WARNING, more->n_warnings);
    for (size_t i = 0; i < more->n; i++) {
        wl_trace_issue issue = more->list[i];

        issue.text = cs_arena_strdup(issues->arena, issue.text);
        if (issue.text != NULL)
            keep_issue(issues, &issue);
    }
}

void wl__issues_fini(wl__issues *issues)
{
    free(issues->list);
    issues->list = NULL;
}

cs_status wl_trace_verdict(const wl_trace *trace, bool strict, cs_error *err)
{
    enum { SHOWN = 5 };
    size_t total = trace->n_errors + (strict ? trace->n_warnings : 0), shown = 0;

    if (total == 0)
        return CS_OK;
    cs_fail(err, CS_ETRACE, "%s", "");
    for (int severity = WL_ERROR; severity >= (strict ? WL_WARNING : WL_ERROR); severity--) {
        for (size_t i = 0; i < trace->n_issues && shown < SHOWN; i++) {
            if ((int)trace->issue[i].severity == severity)
                cs_error_append(err, "%s%s", shown++ > 0 ? "\n" : "", trace->issue[i].text);
        }
    }
    if (total > shown)
        cs_error_append(err, "\n... and %zu more", total - shown);
    return CS_ETRACE;
}
