/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * run --agent-command: another program proposes the designs.  It is started with its standard
 * output and input connected to the serve protocol: it writes requests and reads answers. */
#include "cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS         1000 /* between the end of the conversation and SIGTERM */
#define PATIENCE_STOPPED_MS 200  /* likewise after a signal or in time */
#define MOST_REFUSED        100  /* requests in a row: this is no agent */

typedef struct {
    pid_t pid;
    int from; /* what it writes */
    FILE *to; /* what it reads */
} child;

/* In the child: connects the pipes and becomes the command; never returns. */
static void become(const char *command, int in, int out)
{
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static cs_status start(const char *command, child *c, cs_error *err)
{
    int requests[2] = {-1, -1}, answers[2] = {-1, -1};

    if (pipe(requests) != 0 || pipe(answers) != 0)
        return cs_fail(err, CS_EIO, "--agent-command: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        (void)fcntl(requests[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(answers[i], F_SETFD, FD_CLOEXEC);
    }
    c->pid = fork();
    if (c->pid == 0)
        become(command, answers[0], requests[1]);
    close(answers[0]);
    close(requests[1]);
    c->from = requests[0];
    c->to = c->pid < 0 ? NULL : fdopen(answers[1], "w");
    if (c->to == NULL)
        return cs_fail(err, CS_EIO, "--agent-command: %s", strerror(errno));
    return CS_OK;
}

/* Its exit status; a program that goes on after the end of the conversation is ended. */
static int finish(child *c, int patience_ms)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int status = 0;

    if (c->to != NULL)
        fclose(c->to);
    if (c->from >= 0)
        close(c->from);
    if (c->pid <= 0)
        return 0;
    for (int waited = 0; waitpid(c->pid, &status, WNOHANG) == 0; waited += 10) {
        if (waited == patience_ms)
            kill(c->pid, SIGTERM);
        if (waited == 2 * patience_ms)
            kill(c->pid, SIGKILL);
        nanosleep(&pause, NULL);
    }
    return status;
}

cs_status cli_run_external(const cli_context *cli, const search_problem *problem,
                           const search_options *options, search_outcome *out, cs_error *err)
{
    const search_serve_options serve = {.evaluations = options->evaluations,
                                        .timeout_s = options->timeout_s,
                                        .seed = options->seed,
                                        .jobs = options->jobs,
                                        .study_path = options->study_path,
                                        .stop = cli->stop,
                                        .most_refused = MOST_REFUSED,
                                        .trial_json = cli_serve_trial};
    child c = {.pid = -1, .from = -1};
    cli_channel *lines = NULL;
    search_channel channel;
    cs_status status = CS_OK;
    cs_error why = {""};
    int ended;

    if (options->resume)
        return cs_fail(err, CS_EINVAL,
                       "--agent-command: --resume is not possible, the state of "
                       "the program is not in the study");
    CS_TRY(start(cli->args.agent_command, &c, err));
    lines = cli_channel_create(c.from, c.to, cli->stop, options->timeout_s);
    if (lines == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    channel = cli_channel_view(lines);
    status = search_serve(problem, &serve, &channel, out, &why);
    if (status == CS_OK)
        status = cli_channel_check(lines, &why);
    if (status != CS_OK)
        CS_TRY(cs_fail(err, status, "--agent-command %.200s: %.1500s", cli->args.agent_command,
                       why.text));
done:
    cli_channel_destroy(lines);
    ended =
        finish(&c, out->stop == SEARCH_SIGNAL || out->stop == SEARCH_TIMEOUT ? PATIENCE_STOPPED_MS
                                                                             : PATIENCE_MS);
    if (status == CS_OK && out->unique == 0 && out->stop != SEARCH_SIGNAL)
        status = cs_fail(err, CS_EINVAL, "--agent-command %s: it proposed no design (exit code %d)",
                         cli->args.agent_command, WIFEXITED(ended) ? WEXITSTATUS(ended) : -1);
    return status;
}
