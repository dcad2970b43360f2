/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * serve: an ask/tell environment, one JSON object a line on standard input and output. */
#include "cli/commands.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES (16u << 20) /* of a line */
#define POLL_MS    100

/* Standard input is read without stdio, so that a signal ends the wait for a line. */
typedef struct {
    const volatile int *stop;
    FILE *out;
    char *line;
    size_t capacity;
    unsigned char buffer[65536];
    size_t at, n;
} input_line;

/* Grows the line's storage; false at the limit, which ends the conversation. */
static bool grow(input_line *c)
{
    const size_t capacity = c->capacity == 0 ? 4096 : 2 * c->capacity;
    char *larger = capacity > 2 * (size_t)MOST_BYTES ? NULL : realloc(c->line, capacity);

    if (larger == NULL)
        return false;
    c->line = larger;
    c->capacity = capacity;
    return true;
}

/* EOF also when a signal asks to stop. */
static int next_byte(input_line *c)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    while (c->at == c->n) {
        ssize_t got;
        if (*c->stop != 0)
            return EOF;
        if (poll(&input, 1, POLL_MS) <= 0)
            continue;
        got = read(STDIN_FILENO, c->buffer, sizeof c->buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return EOF;
        c->at = 0;
        c->n = (size_t)got;
    }
    return c->buffer[c->at++];
}

static bool read_line(void *context, const char **line, size_t *length)
{
    input_line *c = context;
    size_t n = 0;
    int byte;

    while ((byte = next_byte(c)) != EOF && byte != '\n') {
        if (n + 1 >= c->capacity && !grow(c))
            return false;
        c->line[n++] = (char)byte;
    }
    if (byte == EOF && n == 0)
        return false;
    if (c->capacity == 0 && !grow(c))
        return false;
    c->line[n] = '\0';
    *line = c->line;
    *length = n;
    return true;
}

static bool write_line(void *context, const char *line, size_t length)
{
    input_line *c = context;

    fwrite(line, 1, length, c->out);
    fputc('\n', c->out);
    return fflush(c->out) == 0 && !ferror(c->out);
}

static cs_json *trial_json(void *context, const search_problem *problem, const search_trial *trial)
{
    (void)context;
    return report_trial_json(problem, trial, NULL);
}

static cs_status run_serve(cli_context *cli, cs_error *err)
{
    input_line *state = calloc(1, sizeof *state);
    const search_channel channel = {read_line, write_line, state};
    search_serve_options options = {.params = cli->args.params.item,
                                    .n_params = cli->args.params.n,
                                    .evaluations = (uint64_t)cli->args.budget,
                                    .timeout_s = cli->args.timeout_s,
                                    .seed = (uint64_t)cli->args.seed,
                                    .jobs = (int)cli->args.jobs,
                                    .study_path = cli->args.study,
                                    .stop = cli->stop,
                                    .trial_json = trial_json};
    search_problem problem = {0};
    search_outcome outcome = {0};
    cs_status status = CS_OK;

    if (state == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    state->stop = cli->stop;
    state->out = cli->out;
    if (cli->args.agent != NULL)
        CS_TRY(agent_find(cli->args.agent, &options.agent, err));
    CS_TRY(cli_load_problem(cli, &problem, err));
    CS_TRY(search_serve(&problem, &options, &channel, &outcome, err));
    if (*cli->stop != 0)
        status = cs_fail(err, CS_ESTOPPED, "stopped by a signal");
done:
    search_outcome_fini(&outcome);
    search_problem_fini(&problem);
    free(state->line);
    free(state);
    return status;
}

const cli_command cli_serve = {
    .name = "serve",
    .summary = "ask/tell environment for agents outside: JSON lines on stdin and stdout",
    .usage = "PSA [--study F.db] [--budget N] [--agent A]",
    .example = "echo '{\"cmd\":\"sample\",\"n\":2}' | cosmic-search serve "
               "configs/psa/llama3-70b-h100.yaml",
    .options = "study budget timeout seed jobs agent param objective stack fix",
    .min_files = 1,
    .max_files = 1,
    .trial_keys = true,
    .run = run_serve,
};
