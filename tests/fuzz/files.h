/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Seeds made from the shipped configs when they are needed (the folder is the repository's root),
 * and files that stand in for the disk. */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include "common/files.h"
#include "tests/fuzz/fuzz.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Contents of the k-th file of a pattern into `bytes`; its length, 0 when there is none. */
static inline size_t fuzz_read(const char *pattern, size_t k, uint8_t *bytes, size_t capacity)
{
    glob_t found;
    FILE *file = NULL;
    size_t n = 0;

    if (glob(pattern, 0, NULL, &found) == 0 && k < found.gl_pathc)
        file = fopen(found.gl_pathv[k], "rb");
    globfree(&found);
    if (file == NULL)
        return 0;
    n = fread(bytes, 1, capacity, file);
    fclose(file);
    return n;
}

static inline size_t fuzz_count(const char *pattern)
{
    glob_t found;
    size_t n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;

    globfree(&found);
    return n;
}

/* Adds bytes, or a shipped file, under a name. */
static inline void fuzz_put(cs_files *files, const char *name, const void *bytes, size_t n)
{
    if (cs_files_add(files, name, bytes, n) != CS_OK)
        abort();
}

static inline void fuzz_put_file(cs_files *files, const char *name, const char *path)
{
    static uint8_t bytes[1 << 18];
    const size_t n = fuzz_read(path, 0, bytes, sizeof bytes);

    if (n == 0) {
        fprintf(stderr, "%s: not found; run from the root of the repository\n", path);
        abort();
    }
    fuzz_put(files, name, bytes, n);
}

#endif
