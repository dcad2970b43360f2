/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Signals and time. */
#include "cli/cli.h"

#include <signal.h>
#include <string.h>
#include <time.h>

static volatile int stop_signal;

static void on_signal(int number)
{
    if (stop_signal != 0) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    stop_signal = number;
}

volatile int *cli_signals_install(void)
{
    static const int handled[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CS_COUNT(handled); i++) {
        struct sigaction old;
        /* nohup ignores SIGHUP: leave that so. */
        if (handled[i] == SIGHUP && sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
            continue;
        sigaction(handled[i], &action, NULL);
    }
    signal(SIGPIPE, SIG_IGN); /* writes report EPIPE instead */
    return &stop_signal;
}

double cli_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
