/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Files written whole or not at all, and the place where a run leaves its files. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

cs_status cli_print_json(const cli_context *cli, cs_json *object, cs_error *err)
{
    char *text = cs_json_dump(object, true);

    cs_json_destroy(object);
    if (text == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory while writing JSON");
    fprintf(cli->out, "%s\n", text);
    free(text);
    return CS_OK;
}

/* Formats into memory the caller frees; NULL when out of memory. */
static char *joined(const char *a, const char *b, const char *c)
{
    const size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *text = malloc(size);

    if (text != NULL)
        snprintf(text, size, "%s%s%s", a, b, c);
    return text;
}

/* ---- files ---- */

/* A refusal of the system; when memory is short that is no fault of the path. */
static cs_status failed(cs_status status, const char *path, const char *what, int reason,
                        cs_error *err)
{
    if (reason == ENOMEM)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    return cs_fail(err, status, "%s: %s: %s", path, what, strerror(reason));
}

cs_status cli_file_open(const char *path, cli_file *file, cs_error *err)
{
    cs_status status = CS_OK;
    struct stat facts;
    mode_t mask;
    int fd = -1;

    memset(file, 0, sizeof *file);
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return cs_fail(err, CS_EINVAL, "%s: cannot be written: is a directory", path);
    file->path = strdup(path);
    file->temporary = joined(path, ".tmp", "XXXXXX");
    if (file->path == NULL || file->temporary == NULL) {
        status = cs_fail(err, CS_ENOMEM, "out of memory");
        goto done;
    }
    fd = mkstemp(file->temporary);
    if (fd < 0) {
        status = failed(CS_EINVAL, path, "cannot be written", errno, err);
        free(file->temporary);
        file->temporary = NULL;
        goto done;
    }
    mask = umask(0);
    umask(mask);
    (void)fchmod(fd, 0666 & ~mask); /* mkstemp makes it private to the user */
    file->file = fdopen(fd, "w");
    if (file->file == NULL) {
        status = failed(CS_EIO, path, "cannot be written", errno, err);
        close(fd);
    }
done:
    if (status != CS_OK)
        cli_file_discard(file);
    return status;
}

cs_status cli_file_commit(cli_file *file, cs_error *err)
{
    cs_status status = CS_OK;
    const bool lost = fflush(file->file) != 0 || ferror(file->file);
    const int reason = errno;

    if (fclose(file->file) != 0 || lost)
        status = failed(CS_EIO, file->path, "cannot be written", reason, err);
    file->file = NULL;
    if (status == CS_OK && rename(file->temporary, file->path) != 0)
        status = failed(CS_EIO, file->path, "cannot be written", errno, err);
    if (status == CS_OK) {
        free(file->temporary);
        file->temporary = NULL;
    }
    cli_file_discard(file);
    return status;
}

void cli_file_discard(cli_file *file)
{
    if (file->file != NULL)
        fclose(file->file);
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    memset(file, 0, sizeof *file);
}

/* ---- the place of a run ---- */

char *cli_place_file(const cli_place *place, const char *name)
{
    return joined(place->dir, "/", name);
}

/* Makes `dir` and its parents; *made tells whether the last one is new. */
static cs_status make_dirs(const char *dir, bool *made, cs_error *err)
{
    char *path = strdup(dir);
    cs_status status = CS_OK;
    struct stat facts;

    *made = false;
    if (path == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    for (char *at = path + 1; status == CS_OK; at++) {
        const char end = *at;
        if (end != '/' && end != '\0')
            continue;
        *at = '\0';
        *made = mkdir(path, 0777) == 0;
        if (!*made && errno != EEXIST)
            status = failed(CS_EINVAL, path, "cannot be made", errno, err);
        *at = end;
        if (end == '\0')
            break;
    }
    if (status == CS_OK && (stat(dir, &facts) != 0 || !S_ISDIR(facts.st_mode)))
        status = cs_fail(err, CS_EINVAL, "%s: is no folder", dir);
    free(path);
    return status;
}

/* A search must not end with nowhere to write its result: tries now. */
static cs_status prove_writable(const char *dir, cs_error *err)
{
    cs_status status = CS_OK;
    char *path = joined(dir, "/", ".cosmic-search-test");
    cli_file probe;

    if (path == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    status = cli_file_open(path, &probe, NULL);
    if (status == CS_OK)
        cli_file_discard(&probe);
    else if (status == CS_ENOMEM)
        status = cs_fail(err, CS_ENOMEM, "out of memory");
    else
        status = cs_fail(err, CS_EINVAL, "%s: cannot be written to", dir);
    free(path);
    return status;
}

/* results/<name>-NNN with the lowest NNN that is free; claimed by making it. */
static cs_status next_free(const char *name, cli_place *place, cs_error *err)
{
    cs_status status = CS_OK;
    char dir[512];
    char safe[128];
    bool made;

    snprintf(safe, sizeof safe, "%s", name);
    for (char *p = safe; *p != '\0'; p++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *p) == NULL)
            *p = '_';
    CS_TRY(make_dirs("results", &made, err));
    for (int i = 1; i < 1000000; i++) {
        snprintf(dir, sizeof dir, "results/%s-%03d", safe, i);
        if (mkdir(dir, 0777) == 0) {
            place->dir = strdup(dir);
            place->made_dir = true;
            return place->dir == NULL ? cs_fail(err, CS_ENOMEM, "out of memory") : CS_OK;
        }
        if (errno != EEXIST)
            return failed(CS_EINVAL, dir, "cannot be made", errno, err);
    }
    status = cs_fail(err, CS_EINVAL, "results/%s-NNN: no number is free; use --out", safe);
done:
    return status;
}

/* The study's folder must exist; it may be any file system the user has. */
static cs_status check_study_folder(const char *study, cs_error *err)
{
    char *dir = strdup(study);
    cs_status status = CS_OK;
    char *slash;

    if (dir == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    slash = strrchr(dir, '/');
    if (slash != NULL)
        *slash = '\0';
    CS_TRY(prove_writable(slash == NULL ? "." : dir, err));
done:
    free(dir);
    return status;
}

static cs_status refuse_existing(const cli_context *cli, const char *study, cs_error *err)
{
    if (cli->args.resume || access(study, F_OK) != 0)
        return CS_OK;
    return cs_fail(err, CS_EINVAL,
                   "%s: the study exists and is not overwritten; --resume goes on with it, "
                   "--out or --study name another",
                   study);
}

cs_status cli_place_folder(const cli_context *cli, const char *name, cli_place *place,
                           cs_error *err)
{
    const char *out = cli->args.out;
    cs_status status = CS_OK;

    memset(place, 0, sizeof *place);
    if (out != NULL) {
        CS_TRY(make_dirs(out, &place->made_dir, err));
        place->dir = strdup(out);
        if (place->dir == NULL)
            CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    } else {
        CS_TRY(next_free(name, place, err));
    }
    CS_TRY(prove_writable(place->dir, err));
done:
    if (status != CS_OK)
        cli_place_fini(place);
    return status;
}

cs_status cli_place_make(const cli_context *cli, const char *name, cli_place *place, cs_error *err)
{
    const cli_args *args = &cli->args;
    cs_status status = CS_OK;

    memset(place, 0, sizeof *place);
    if (args->out != NULL || args->study == NULL)
        CS_TRY(cli_place_folder(cli, name, place, err));
    if (args->study != NULL)
        CS_TRY(check_study_folder(args->study, err));
    place->study = args->study != NULL ? strdup(args->study) : cli_place_file(place, "study.db");
    if (place->study == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    CS_TRY(refuse_existing(cli, place->study, err));
done:
    if (status != CS_OK)
        cli_place_fini(place);
    return status;
}

void cli_place_fini(cli_place *place)
{
    if (place->dir != NULL && place->made_dir)
        (void)rmdir(place->dir); /* fails, as it should, when something is in it */
    free(place->dir);
    free(place->study);
    memset(place, 0, sizeof *place);
}
