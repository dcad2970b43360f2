/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lines of the serve protocol over a pair of descriptors. */
#include "cli/commands.h"

#include <errno.h>
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
    int in;
    FILE *out;
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
    c->out = out;
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

bool cli_channel_too_long(const cli_channel *channel)
{
    return channel->too_long;
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

static bool write_line(void *context, const char *line, size_t length)
{
    cli_channel *c = context;

    fwrite(line, 1, length, c->out);
    fputc('\n', c->out);
    return fflush(c->out) == 0 && !ferror(c->out);
}

search_channel cli_channel_view(cli_channel *c)
{
    return (search_channel){read_line, write_line, c};
}
