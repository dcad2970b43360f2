/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The progress line: done/total, rate, time left, best, gap.  Only on a terminal. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define REFRESH_S 0.1

void cli_progress_start(cli_progress *line, const cli_context *cli)
{
    memset(line, 0, sizeof *line);
    line->active = !cli->args.quiet && isatty(STDERR_FILENO) == 1;
}

static void put_time_left(const search_progress *p, char text[32])
{
    const double left = p->evaluations_per_s > 0.0 && p->budget >= p->done
                            ? (double)(p->budget - p->done) / p->evaluations_per_s
                            : NAN;

    if (!(left < 1e6))
        snprintf(text, 32, "-");
    else if (left >= 3600)
        snprintf(text, 32, "%.0fh%02.0fm", floor(left / 3600), floor(fmod(left, 3600) / 60));
    else if (left >= 60)
        snprintf(text, 32, "%.0fm%02.0fs", floor(left / 60), floor(fmod(left, 60)));
    else
        snprintf(text, 32, "%.0fs", left);
}

void cli_progress_show(void *context, const search_progress *progress)
{
    cli_progress *line = context;
    const double now = cli_now_s();
    char left[32];
    char best[64] = "-";
    char gap[64] = "";

    if (!line->active || (line->shown && now - line->last_s < REFRESH_S))
        return;
    put_time_left(progress, left);
    if (progress->has_best)
        snprintf(best, sizeof best, "%.6g", progress->best);
    if (isfinite(progress->gap))
        snprintf(gap, sizeof gap, " | gap %.2f %%", 100.0 * progress->gap);
    fprintf(stderr, "\r\033[K%llu/%llu | %.0f/s | %s left | best %s%s",
            (unsigned long long)progress->done, (unsigned long long)progress->budget,
            progress->evaluations_per_s, left, best, gap);
    fflush(stderr);
    line->shown = true;
    line->last_s = now;
}

void cli_progress_end(cli_progress *line)
{
    if (line->shown)
        fputs("\r\033[K", stderr);
    line->shown = false;
}
