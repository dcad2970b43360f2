/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Which files make up a job: PREFIX.<rank>.et, one file named in full, a folder with one set, or a
 * text workload. */
#include "workloads/trace_private.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const endings[] = {".et", ".eg", ".et.gz", ".eg.gz"};
enum { MAX_RANK = 10 * 1000 * 1000 };

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Splits "<stem>.<rank><ending>"; false when the name has another form. */
static bool split_name(const char *name, size_t *stem, uint32_t *rank)
{
    size_t n = strlen(name);

    for (size_t e = 0; e < CS_COUNT(endings); e++) {
        size_t tail = strlen(endings[e]), i;
        unsigned long value = 0;

        if (n <= tail || strcmp(name + n - tail, endings[e]) != 0)
            continue;
        i = n - tail;
        while (i > 0 && isdigit((unsigned char)name[i - 1]))
            i--;
        if (i == 0 || i == n - tail || n - tail - i > 8 || name[i - 1] != '.')
            return false;
        value = strtoul(name + i, NULL, 10);
        if (value > MAX_RANK || (name[i] == '0' && n - tail - i > 1))
            return false;
        *stem = i - 1;
        *rank = (uint32_t)value;
        return true;
    }
    return false;
}

static char *join(const char *folder, const char *name)
{
    char *path = malloc(strlen(folder) + strlen(name) + 2);

    if (path != NULL)
        sprintf(path, "%s%s%s", folder, folder[0] != 0 ? "/" : "", name);
    return path;
}

static bool set_add(wl__set *set, size_t *cap, char *path, uint32_t rank)
{
    if (path == NULL || !wl__grow((void **)&set->file, set->n, cap, sizeof *set->file)) {
        free(path);
        return false;
    }
    set->file[set->n++] = (wl__rank_file){path, rank};
    return true;
}

void wl__set_fini(wl__set *set)
{
    for (size_t i = 0; i < set->n; i++)
        free(set->file[i].path);
    free(set->file);
    free(set->group_file);
    *set = (wl__set){0};
}

static int by_rank(const void *a, const void *b)
{
    const wl__rank_file *x = a, *y = b;

    if (x->rank != y->rank)
        return (x->rank > y->rank) - (x->rank < y->rank);
    return strcmp(x->path, y->path);
}

static cs_status no_memory(const char *path, cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "%s: out of memory", path);
}

/* Takes every file of `folder` whose stem is `stem` (NULL: any one stem, *found gets it). */
static cs_status scan(wl__set *set, const char *folder, const char *stem, char **found,
                      cs_error *err)
{
    DIR *dir = opendir(folder[0] != 0 ? folder : ".");
    struct dirent *entry;
    size_t cap = 0, n;
    uint32_t rank;
    cs_status status = CS_OK;

    if (dir == NULL)
        return cs_fail(err, errno == ENOENT ? CS_ENOENT : CS_EIO, "%s: %s", folder,
                       strerror(errno));
    while (status == CS_OK && (entry = readdir(dir)) != NULL) {
        if (!split_name(entry->d_name, &n, &rank))
            continue;
        if (stem == NULL) {
            *found = strndup(entry->d_name, n);
            stem = *found;
            if (stem == NULL)
                status = no_memory(folder, err);
        }
        if (stem == NULL || strlen(stem) != n || strncmp(stem, entry->d_name, n) != 0) {
            if (found != NULL && *found != NULL)
                status = cs_fail(err, CS_EINVAL,
                                 "%s: several sets of traces (%s, %.*s): name one as %s/%s", folder,
                                 *found, (int)n, entry->d_name, folder, *found);
            continue;
        }
        if (!set_add(set, &cap, join(folder, entry->d_name), rank))
            status = no_memory(folder, err);
    }
    closedir(dir);
    return status;
}

static cs_status check_ranks_once(const wl__set *set, cs_error *err)
{
    for (size_t i = 1; i < set->n; i++)
        if (set->file[i].rank == set->file[i - 1].rank)
            return cs_fail(err, CS_ETRACE, "%s: ranks: rank %u is also in %s", set->file[i].path,
                           set->file[i].rank, set->file[i - 1].path);
    return CS_OK;
}

/* Looks beside the traces for <stem>.json and comm_group.json. */
static void find_groups(wl__set *set, const char *folder, const char *stem)
{
    char name[512];
    char *path;

    for (int k = 0; k < 2 && set->group_file == NULL; k++) {
        if (k == 0)
            snprintf(name, sizeof name, "%s.json", stem);
        path = join(folder, k == 0 ? name : "comm_group.json");
        if (path != NULL && is_file(path))
            set->group_file = path;
        else
            free(path);
    }
}

static cs_status find_prefix(const char *path, wl__set *set, cs_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup("");
    const char *stem = slash != NULL ? slash + 1 : path;
    cs_status status = CS_OK;

    if (folder == NULL)
        return no_memory(path, err);
    if (slash == path) {
        free(folder);
        folder = strdup("/.");
    }
    CS_TRY(scan(set, folder, stem, NULL, err));
    if (set->n == 0)
        status =
            cs_fail(err, CS_ENOENT, "%s: no such file, and no %s.<rank>.et beside it", path, path);
    find_groups(set, folder, stem);
done:
    free(folder);
    return status;
}

static cs_status find_in_folder(const char *path, wl__set *set, cs_error *err)
{
    size_t n = strlen(path);
    char *folder, *stem = NULL;
    cs_status status = CS_OK;

    while (n > 1 && path[n - 1] == '/')
        n--;
    folder = strndup(path, n);
    if (folder == NULL)
        return no_memory(path, err);
    CS_TRY(scan(set, folder, NULL, &stem, err));
    if (set->n == 0)
        status = cs_fail(err, CS_ENOENT, "%s: no <prefix>.<rank>.et in this folder", path);
    else
        find_groups(set, folder, stem);
done:
    free(folder);
    free(stem);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);

    return n > k && strcmp(text + n - k, end) == 0;
}

static bool has_siblings(const char *folder, const char *stem)
{
    wl__set all = {0};
    bool more = scan(&all, folder, stem, NULL, NULL) == CS_OK && all.n > 1;

    wl__set_fini(&all);
    return more;
}

/* One file named in full: a job of that one rank, whatever its number in the name. */
static cs_status find_single(const char *path, wl__set *set, cs_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    char *folder, *stem_text;
    size_t cap = 0, stem = 0;
    uint32_t rank = 0;

    set->text = ends_with(path, ".txt") || ends_with(path, ".csv");
    if (!split_name(name, &stem, &rank))
        stem = strlen(name);
    if (!set_add(set, &cap, strdup(path), rank))
        return no_memory(path, err);
    folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : strdup("");
    stem_text = strndup(name, stem);
    if (folder != NULL && stem_text != NULL && !set->text) {
        find_groups(set, folder, stem_text);
        set->excerpt = has_siblings(folder, stem_text);
    }
    free(folder);
    free(stem_text);
    return CS_OK;
}

cs_status wl__set_find(const char *path, wl__set *set, cs_error *err)
{
    cs_status status;

    *set = (wl__set){0};
    if (path[0] == 0)
        return cs_fail(err, CS_EINVAL, "no trace named");
    if (is_folder(path))
        status = find_in_folder(path, set, err);
    else if (is_file(path))
        status = find_single(path, set, err);
    else if (access(path, F_OK) == 0)
        status = cs_fail(err, CS_EINVAL, "%s: neither a file nor a folder", path);
    else
        status = find_prefix(path, set, err);
    if (status == CS_OK && set->n > 1) {
        qsort(set->file, set->n, sizeof *set->file, by_rank);
        status = check_ranks_once(set, err);
    }
    if (status != CS_OK)
        wl__set_fini(set);
    return status;
}
