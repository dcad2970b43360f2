/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Frames of a trace file: varint length, then that many bytes, plain or gzip.  Lengths are 64 bits
 * and compared with what is left before anything is allocated; in a compressed file, where that is
 * unknown, the buffer grows only as bytes arrive. */
#include "workloads/trace_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { READ_BUFFER = 256 * 1024, GROWTH = 1024 * 1024 };
#define FRAME_LIMIT ((uint64_t)1 << 31) /* what the format's own library can read */

struct wl__source {
    char *path;
    gzFile file;
    bool gzip;
    uint64_t file_bytes;
    uint64_t at; /* offset of the next byte to hand out, unpacked */
    uint8_t *buffer;
    size_t begin, end, cap; /* unread bytes of buffer */
    bool whole;             /* the buffer still starts with the file's first byte */
};

static cs_status open_failed(const char *path, cs_error *err)
{
    return cs_fail(err, errno == ENOENT || errno == ENOTDIR ? CS_ENOENT : CS_EIO, "%s: %s", path,
                   strerror(errno));
}

/* Size and kind of the file, and whether it starts with the gzip magic. */
static cs_status look(wl__source *source, int file, cs_error *err)
{
    unsigned char magic[2] = {0};
    struct stat st;

    if (fstat(file, &st) != 0)
        return open_failed(source->path, err);
    if (!S_ISREG(st.st_mode))
        return cs_fail(err, CS_EIO, "%s: not a regular file", source->path);
    source->file_bytes = (uint64_t)st.st_size;
    source->gzip = pread(file, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    return CS_OK;
}

cs_status wl__source_open(const char *path, wl__source **out, cs_error *err)
{
    cs_status status = CS_OK;
    wl__source *source = calloc(1, sizeof *source);
    int file = -1;

    if (source == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    source->path = strdup(path);
    source->cap = READ_BUFFER;
    source->buffer = malloc(source->cap);
    if (source->path == NULL || source->buffer == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "%s: out of memory", path));
    file = open(path, O_RDONLY | O_NONBLOCK); /* a named pipe must not be waited for */
    if (file < 0)
        CS_TRY(open_failed(path, err));
    CS_TRY(look(source, file, err));
    source->file = gzdopen(file, "rb");
    if (source->file == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "%s: out of memory", path));
    file = -1;
    gzbuffer(source->file, 64 * 1024);
    source->whole = true;
    *out = source;
    source = NULL;
done:
    if (file >= 0)
        close(file);
    wl__source_close(source);
    return status;
}

void wl__source_close(wl__source *source)
{
    if (source == NULL)
        return;
    if (source->file != NULL)
        gzclose(source->file);
    free(source->buffer);
    free(source->path);
    free(source);
}

bool wl__source_gzip(const wl__source *source)
{
    return source->gzip;
}

uint64_t wl__source_file_bytes(const wl__source *source)
{
    return source->file_bytes;
}

const char *wl__source_path(const wl__source *source)
{
    return source->path;
}

static cs_status framing(const wl__source *source, uint64_t at, cs_error *err, const char *what)
{
    return cs_fail(err, CS_ETRACE, "%s: framing: offset %llu: %s", source->path,
                   (unsigned long long)at, what);
}

/* Reads until `want` unread bytes are in the buffer or the file ends.  The buffer's capacity
 * follows the bytes that arrived, never the wish alone. */
static cs_status fill(wl__source *source, size_t want, cs_error *err)
{
    if (source->begin > 0) {
        memmove(source->buffer, source->buffer + source->begin, source->end - source->begin);
        source->end -= source->begin;
        source->begin = 0;
        source->whole = false;
    }
    while (source->end < want) {
        int got;

        if (source->end == source->cap) {
            uint8_t *grown = realloc(source->buffer, source->cap + GROWTH + source->cap / 4);

            if (grown == NULL)
                return cs_fail(err, CS_ENOMEM, "%s: out of memory", source->path);
            source->buffer = grown;
            source->cap += GROWTH + source->cap / 4;
        }
        got = gzread(source->file, source->buffer + source->end,
                     (unsigned)(source->cap - source->end < READ_BUFFER ? source->cap - source->end
                                                                        : READ_BUFFER));
        if (got < 0)
            return framing(source, source->at, err, "the gzip data is damaged or cut off");
        if (got == 0)
            break;
        source->end += (size_t)got;
    }
    return CS_OK;
}

static cs_status check_end(const wl__source *source, cs_error *err)
{
    int code;

    gzerror(source->file, &code);
    if (code != Z_OK && code != Z_STREAM_END)
        return framing(source, source->at, err, "the gzip data is damaged or cut off");
    return CS_OK;
}

/* Decodes the length at the front; *used is 0 at the end of the file. */
static cs_status frame_length(wl__source *source, uint64_t *length, size_t *used, cs_error *err)
{
    size_t left;
    int n;

    *used = 0;
    if (source->end - source->begin < 10) {
        cs_status status = fill(source, 10, err);
        if (status != CS_OK)
            return status;
    }
    left = source->end - source->begin;
    if (left == 0)
        return check_end(source, err);
    n = wl__varint(source->buffer + source->begin, left, length);
    if (n == 0)
        return framing(source, source->at, err, "the frame length is cut off by the end of file");
    if (n < 0)
        return framing(source, source->at, err,
                       "the frame length is no varint of at most 10 bytes and 64 bits");
    *used = (size_t)n;
    return CS_OK;
}

static cs_status too_long(const wl__source *source, uint64_t length, uint64_t left, cs_error *err)
{
    return cs_fail(err, CS_ETRACE,
                   "%s: framing: offset %llu: a frame of %llu bytes, but only %llu are left",
                   source->path, (unsigned long long)source->at, (unsigned long long)length,
                   (unsigned long long)left);
}

cs_status wl__source_frame(wl__source *source, wl_bytes *frame, int64_t *offset, cs_error *err)
{
    uint64_t length = 0, here;
    size_t used = 0;
    cs_status status = frame_length(source, &length, &used, err);

    *offset = (int64_t)source->at;
    *frame = (wl_bytes){0, NULL};
    if (status != CS_OK || used == 0)
        return status;
    here = source->at + used;
    if (!source->gzip && (here > source->file_bytes || length > source->file_bytes - here))
        return too_long(source, length, source->file_bytes > here ? source->file_bytes - here : 0,
                        err);
    if (length >= FRAME_LIMIT)
        return framing(source, source->at, err, "a frame of 2 GiB or more");
    if (source->end - source->begin < used + length) {
        status = fill(source, used + (size_t)length, err);
        if (status != CS_OK)
            return status;
    }
    if (source->end - source->begin < used + length)
        return too_long(source, length, source->end - source->begin - used, err);
    *frame = (wl_bytes){(size_t)length, source->buffer + source->begin + used};
    source->begin += used + (size_t)length;
    source->at = here + length;
    return CS_OK;
}

cs_status wl__source_rewind(wl__source *source, cs_error *err)
{
    source->begin = 0;
    source->at = 0;
    if (source->whole)
        return CS_OK;
    source->end = 0;
    source->whole = true;
    if (gzrewind(source->file) != 0)
        return cs_fail(err, CS_EIO, "%s: cannot read again from the start", source->path);
    return CS_OK;
}

size_t wl__source_peek(wl__source *source, uint8_t *bytes, size_t size)
{
    size_t n;

    if (wl__source_rewind(source, NULL) != CS_OK || fill(source, size, NULL) != CS_OK)
        return 0;
    n = source->end < size ? source->end : size;
    memcpy(bytes, source->buffer, n);
    return n;
}

/* ---- writing ---- */

struct wl__sink {
    char *path, *temporary;
    FILE *plain;
    gzFile packed;
    uint64_t bytes;
};

static cs_status write_failed(const wl__sink *sink, cs_error *err)
{
    return cs_fail(err, CS_EIO, "%s: cannot write: %s", sink->path,
                   errno != 0 ? strerror(errno) : "compression failed");
}

static void sink_free(wl__sink *sink)
{
    free(sink->path);
    free(sink->temporary);
    free(sink);
}

cs_status wl__sink_open(const char *path, wl__sink **out, cs_error *err)
{
    size_t n = strlen(path);
    bool gzip = n > 3 && strcmp(path + n - 3, ".gz") == 0;
    wl__sink *sink = calloc(1, sizeof *sink);
    cs_status status;

    if (sink == NULL)
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    sink->path = strdup(path);
    sink->temporary = malloc(n + sizeof ".part");
    if (sink->path == NULL || sink->temporary == NULL) {
        sink_free(sink);
        return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
    }
    sprintf(sink->temporary, "%s.part", path);
    errno = 0;
    if (gzip)
        sink->packed = gzopen(sink->temporary, "wb");
    else
        sink->plain = fopen(sink->temporary, "wb");
    if (sink->plain != NULL)
        setvbuf(sink->plain, NULL, _IOFBF, READ_BUFFER);
    if (sink->packed == NULL && sink->plain == NULL) {
        status = write_failed(sink, err);
        sink_free(sink);
        return status;
    }
    *out = sink;
    return CS_OK;
}

static bool sink_write(wl__sink *sink, const void *bytes, size_t n)
{
    errno = 0;
    sink->bytes += n;
    if (n == 0)
        return true;
    if (sink->packed != NULL)
        return gzwrite(sink->packed, bytes, (unsigned)n) == (int)n;
    return fwrite(bytes, 1, n, sink->plain) == n;
}

cs_status wl__sink_frame2(wl__sink *sink, wl_bytes frame, wl_bytes tail, cs_error *err)
{
    uint8_t head[10];
    size_t used = 0;
    uint64_t rest = (uint64_t)frame.n + tail.n;

    if (rest >= FRAME_LIMIT)
        return cs_fail(err, CS_EINVAL, "%s: a node of 2 GiB or more cannot be written", sink->path);
    do {
        head[used++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        rest >>= 7;
    } while (rest != 0);
    if (!sink_write(sink, head, used) || !sink_write(sink, frame.data, frame.n) ||
        !sink_write(sink, tail.data, tail.n))
        return write_failed(sink, err);
    return CS_OK;
}

cs_status wl__sink_frame(wl__sink *sink, wl_bytes frame, cs_error *err)
{
    return wl__sink_frame2(sink, frame, (wl_bytes){0, NULL}, err);
}

static bool sink_finish(wl__sink *sink)
{
    bool ok = sink->packed != NULL ? gzclose(sink->packed) == Z_OK : fclose(sink->plain) == 0;

    sink->packed = NULL;
    sink->plain = NULL;
    return ok;
}

cs_status wl__sink_close(wl__sink *sink, cs_error *err)
{
    cs_status status = CS_OK;

    errno = 0;
    if (!sink_finish(sink) || rename(sink->temporary, sink->path) != 0) {
        status = write_failed(sink, err);
        remove(sink->temporary);
    }
    sink_free(sink);
    return status;
}

void wl__sink_abandon(wl__sink *sink)
{
    if (sink == NULL)
        return;
    (void)sink_finish(sink);
    remove(sink->temporary);
    sink_free(sink);
}

uint64_t wl__sink_bytes(const wl__sink *sink)
{
    return sink->bytes;
}
