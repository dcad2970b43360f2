/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A set of input files in memory.  The set in use belongs to the thread, so that two problems can
 * be read side by side. */
#include "common/files.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    char *path, *text;
    size_t n;
} entry;

struct cs_files {
    entry *list;
    size_t n, capacity;
};

static _Thread_local cs_files *recording;
static _Thread_local const cs_files *standing_in;

cs_files *cs_files_create(void)
{
    return calloc(1, sizeof(cs_files));
}

void cs_files_destroy(cs_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < files->n; i++) {
        free(files->list[i].path);
        free(files->list[i].text);
    }
    free(files->list);
    free(files);
}

static const entry *find(const cs_files *files, const char *path)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return &files->list[i];
    return NULL;
}

cs_status cs_files_add(cs_files *files, const char *path, const char *text, size_t n)
{
    if (find(files, path) != NULL)
        return CS_OK;
    entry *list = cs_room(files->list, &files->capacity, files->n + 1, sizeof *list);
    if (list == NULL)
        return CS_ENOMEM;
    files->list = list;
    entry e = {.path = strdup(path), .text = malloc(n + 1), .n = n};
    if (e.path == NULL || e.text == NULL) {
        free(e.path);
        free(e.text);
        return CS_ENOMEM;
    }
    memcpy(e.text, text, n);
    e.text[n] = 0;
    files->list[files->n++] = e;
    return CS_OK;
}

size_t cs_files_count(const cs_files *files)
{
    return files->n;
}

const char *cs_files_path(const cs_files *files, size_t i)
{
    return files->list[i].path;
}

const char *cs_files_text(const cs_files *files, size_t i, size_t *n)
{
    *n = files->list[i].n;
    return files->list[i].text;
}

uint64_t cs_files_hash(const cs_files *files)
{
    uint64_t hash = CS_HASH_START;

    for (size_t i = 0; i < files->n; i++) {
        hash = cs_hash(hash, &files->list[i].n, sizeof files->list[i].n);
        hash = cs_hash(hash, files->list[i].text, files->list[i].n);
    }
    return hash;
}

void cs_files_record_begin(cs_files *files)
{
    recording = files;
}

void cs_files_stand_in(const cs_files *files)
{
    standing_in = files;
}

bool cs_files_intercept(const char *path, const char **text, size_t *n)
{
    *text = NULL;
    *n = 0;
    if (standing_in == NULL)
        return false;
    const entry *e = find(standing_in, path);
    if (e != NULL) {
        *text = e->text;
        *n = e->n;
    }
    return true;
}

cs_status cs_files_record(const char *path, const char *text, size_t n)
{
    return recording == NULL ? CS_OK : cs_files_add(recording, path, text, n);
}
