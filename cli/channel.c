/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lines of the serve protocol over a pair of descriptors. */
#include "cli/commands.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_BYTES (16u << 20) /* of a line */
#define POLL_MS    100

struct cli_channel {
    const volatile int *stop;
    double deadline_s; /* of cli_now_s; 0: none */
    bool too_long;     /* a line over the limit was begun */
    int lost;          /* errno of a write that failed */
    int in, out;
    char *line;
    size_t capacity;
    unsigned char buffer[65536];
    size_t at, n;
};

cli_channel *cli_channel_create(int in, FILE *out, const volatile int *stop, double timeout_s)
{
    cli_channel *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->in = in;
    c->out = fileno(out);
    c->stop = stop;
    c->deadline_s = timeout_s > 0.0 ? cli_now_s() + timeout_s : 0.0;
    return c;
}

void cli_channel_destroy(cli_channel *c)
{
    if (c == NULL)
        return;
    free(c->line);
    free(c);
}

cs_status cli_channel_check(const cli_channel *channel, cs_error *err)
{
    if (channel->too_long)
        return cs_fail(err, CS_EINVAL, "a request is longer than 16 MiB");
    if (channel->lost != 0 && channel->lost != EPIPE)
        return cs_fail(err, CS_EIO, "cannot write an answer: %s", strerror(channel->lost));
    return CS_OK;
}

/* Grows the line's storage; false at the limit, which ends the conversation. */
static bool grow(cli_channel *c)
{
    const size_t capacity = c->capacity == 0 ? 4096 : 2 * c->capacity;
    char *larger;

    c->too_long = capacity > 2 * (size_t)MOST_BYTES;
    larger = c->too_long ? NULL : realloc(c->line, capacity);
    if (larger == NULL)
        return false;
    c->line = larger;
    c->capacity = capacity;
    return true;
}

static bool over(const cli_channel *c)
{
    return *c->stop != 0 || (c->deadline_s > 0.0 && cli_now_s() >= c->deadline_s);
}

/* EOF also when a signal asks to stop, or when the time is up. */
static int next_byte(cli_channel *c)
{
    struct pollfd input = {.fd = c->in, .events = POLLIN};

    while (c->at == c->n) {
        ssize_t got;
        if (over(c))
            return EOF;
        if (poll(&input, 1, POLL_MS) <= 0)
            continue;
        got = read(c->in, c->buffer, sizeof c->buffer);
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
    cli_channel *c = context;
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

/* Never blocks on a reader that does not read: a pipe that is ready takes PIPE_BUF bytes at once.
 */
static bool write_bytes(cli_channel *c, const char *bytes, size_t n)
{
    struct pollfd output = {.fd = c->out, .events = POLLOUT};

    while (n > 0) {
        ssize_t put;
        if (over(c))
            return false;
        if (poll(&output, 1, POLL_MS) <= 0)
            continue;
        put = write(c->out, bytes, n < PIPE_BUF ? n : PIPE_BUF);
        if (put < 0 && errno != EINTR) {
            c->lost = errno;
            return false;
        }
        bytes += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool write_line(void *context, const char *line, size_t length)
{
    return write_bytes(context, line, length) && write_bytes(context, "\n", 1);
}

search_channel cli_channel_view(cli_channel *c)
{
    return (search_channel){read_line, write_line, c};
}
