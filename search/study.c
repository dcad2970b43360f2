/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A study: what was searched, every trial, and the agent's state, in one file that opens without
 * any other. */
#include "search/search_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMIT_PERIOD_S 0.1

static const char *const info_keys[] = {
    "version", "psa_name", "psa_path", "hash",        "stacks",       "fixes", "objectives",
    "agent",   "params",   "seed",     "evaluations", "result_bytes", NULL};
enum {
    VERSION,
    PSA_NAME,
    PSA_PATH,
    HASH,
    STACKS,
    FIXES,
    OBJECTIVES,
    AGENT,
    PARAMS,
    SEED,
    EVALUATIONS,
    RESULT_BYTES,
    N_INFO
};

struct search_study {
    search__store *store;
    char *made; /* its path, when this process made it */
    int lock;   /* file descriptor that holds the owner's lock, -1 for readers */
    const search_problem *problem;
    search_problem own; /* of a study opened alone */
    bool owns_problem;
    char *info[N_INFO];
    double committed_s;
    unsigned char *point_bytes;
    int32_t *point; /* one, of search_study_each */
};

bool search__study_absent(const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return errno == ENOENT;
    return info.st_size == 0 || search__store_blank(path);
}

/* One process owns a study; the lock dies with the process. */
static cs_status take_lock(const char *path, int flags, int *out, cs_error *err)
{
    int fd = open(path, flags | O_RDWR | O_CLOEXEC, 0666);

    if (fd < 0)
        return cs_fail(err,
                       errno == ENOENT                      ? CS_ENOENT
                       : errno == EISDIR || errno == EACCES ? CS_EINVAL
                                                            : CS_EIO,
                       "%s: %s", path,
                       errno == EEXIST
                           ? "the study exists; resume it (--resume) or choose another file"
                           : strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return cs_fail(err, CS_EIO, "%s: another process is running this study", path);
    }
    *out = fd;
    return CS_OK;
}

static cs_status make_info(search_study *study, const search_study_setup *setup, cs_error *err)
{
    const search_problem *p = study->problem;
    char hash[20], seed[24], evaluations[24], bytes[24];

    (void)snprintf(hash, sizeof hash, "%016" PRIx64, p->hash);
    (void)snprintf(seed, sizeof seed, "%" PRIu64, setup->seed);
    (void)snprintf(evaluations, sizeof evaluations, "%" PRIu64, setup->evaluations);
    (void)snprintf(bytes, sizeof bytes, "%zu", sizeof(sim_result));
    const char *const value[N_INFO] = {
        [VERSION] = cs_version(),     [PSA_NAME] = psa_schema_name(p->schema),
        [PSA_PATH] = p->psa_path,     [HASH] = hash,
        [STACKS] = p->stacks,         [FIXES] = p->fixes,
        [OBJECTIVES] = p->objectives, [AGENT] = setup->agent,
        [PARAMS] = setup->params,     [SEED] = seed,
        [EVALUATIONS] = evaluations,  [RESULT_BYTES] = bytes,
    };
    for (size_t i = 0; i < N_INFO; i++) {
        study->info[i] = strdup(value[i] != NULL ? value[i] : "");
        if (study->info[i] == NULL)
            return cs_fail(err, CS_ENOMEM, "study");
    }
    return CS_OK;
}

static cs_status read_info(search_study *study, const char *path, cs_error *err)
{
    cs_status status = CS_OK;

    for (size_t i = 0; i < N_INFO; i++) {
        CS_TRY(search__store_get_info(study->store, info_keys[i], &study->info[i], err));
        if (study->info[i] == NULL)
            return cs_fail(err, CS_EIO, "%s: not a study (no %s)", path, info_keys[i]);
    }
    if (strtoull(study->info[RESULT_BYTES], NULL, 10) != sizeof(sim_result))
        return cs_fail(err, CS_EIO, "%s: written by version %s, this is %s", path,
                       study->info[VERSION], cs_version());
done:
    return status;
}

static search_study *new_study(const search_problem *problem)
{
    search_study *study = calloc(1, sizeof *study);

    if (study == NULL)
        return NULL;
    study->lock = -1;
    study->problem = problem;
    study->committed_s = search__now_s();
    return study;
}

static cs_status make_room(search_study *study, cs_error *err)
{
    const size_t n = psa_space_n_vars(study->problem->space);

    study->point_bytes = malloc(5 * n + 1);
    study->point = calloc(n + 1, sizeof *study->point);
    return study->point_bytes == NULL || study->point == NULL ? cs_fail(err, CS_ENOMEM, "study")
                                                              : CS_OK;
}

void search_study_close(search_study *study)
{
    if (study == NULL)
        return;
    search__store_close(study->store);
    if (study->lock >= 0)
        close(study->lock);
    if (study->owns_problem)
        search_problem_fini(&study->own);
    for (size_t i = 0; i < N_INFO; i++)
        free(study->info[i]);
    free(study->point_bytes);
    free(study->point);
    free(study->made);
    free(study);
}

static cs_status write_header(search_study *study, cs_error *err)
{
    const cs_files *files = study->problem->files;
    cs_status status = CS_OK;

    for (size_t i = 0; i < N_INFO; i++)
        CS_TRY(search__store_put_info(study->store, info_keys[i], study->info[i], err));
    for (size_t i = 0; i < cs_files_count(files); i++) {
        size_t n;
        const char *text = cs_files_text(files, i, &n);
        CS_TRY(search__store_put_file(study->store, cs_files_path(files, i), text, n, err));
    }
    CS_TRY(search__store_commit(study->store, err));
done:
    return status;
}

static void remove_files(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    char name[4200];

    for (size_t i = 0; i < CS_COUNT(suffixes); i++) {
        (void)snprintf(name, sizeof name, "%.4096s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

cs_status search_study_create(const char *path, const search_problem *problem,
                              const search_study_setup *setup, search_study **out, cs_error *err)
{
    cs_status status = CS_OK;
    search_study *study = new_study(problem);

    if (study == NULL)
        return cs_fail(err, CS_ENOMEM, "study");
    /* A file without tables is what a run killed at its very start leaves behind. */
    CS_TRY(take_lock(path, search__study_absent(path) ? O_CREAT : O_CREAT | O_EXCL, &study->lock,
                     err));
    status = make_info(study, setup, err);
    if (status == CS_OK)
        status = make_room(study, err);
    if (status == CS_OK)
        status = search__store_open(path, SEARCH__CREATE, &study->store, err);
    if (status == CS_OK)
        status = write_header(study, err);
    if (status != CS_OK) {
        search_study_close(study);
        remove_files(path);
        return status;
    }
    study->made = strdup(path);
    *out = study;
    study = NULL;
done:
    search_study_close(study);
    return status;
}

void search__study_abandon(search_study *study)
{
    uint64_t n;

    if (study != NULL && study->made != NULL &&
        search__store_count(study->store, &n, NULL) == CS_OK && n == 0)
        remove_files(study->made);
    search_study_close(study);
}

static cs_status check_same(search_study *study, const char *path, const search_study_setup *setup,
                            cs_error *err)
{
    static const int checked[] = {VERSION, PSA_NAME, STACKS, FIXES, OBJECTIVES,
                                  HASH,    AGENT,    SEED,   PARAMS};
    cs_status status = CS_OK;
    search_study *now = new_study(study->problem);

    if (now == NULL)
        return cs_fail(err, CS_ENOMEM, "study");
    CS_TRY(make_info(now, setup, err));
    for (size_t i = 0; i < CS_COUNT(checked); i++) {
        const int k = checked[i];
        if (strcmp(study->info[k], now->info[k]) == 0)
            continue;
        status =
            cs_fail(err, CS_EINVAL, "%s cannot be resumed: its %s is \"%.300s\", not \"%.300s\"",
                    path, k == HASH ? "content of PSA, system or models (hash)" : info_keys[k],
                    study->info[k], now->info[k]);
        goto done;
    }
done:
    search_study_close(now);
    return status;
}

cs_status search_study_resume(const char *path, const search_problem *problem,
                              const search_study_setup *setup, search_study **out, cs_error *err)
{
    cs_status status = CS_OK;
    search_study *study = new_study(problem);

    if (study == NULL)
        return cs_fail(err, CS_ENOMEM, "study");
    CS_TRY(take_lock(path, 0, &study->lock, err));
    CS_TRY(make_room(study, err));
    CS_TRY(search__store_open(path, SEARCH__WRITE, &study->store, err));
    CS_TRY(read_info(study, path, err));
    CS_TRY(check_same(study, path, setup, err));
    *out = study;
    study = NULL;
done:
    search_study_close(study);
    return status;
}

/* Splits "a\nb" in place; returns the number of parts. */
static size_t split(char *text, const char **part, size_t most)
{
    size_t n = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, "\n", &rest); word != NULL && n < most;
         word = strtok_r(NULL, "\n", &rest))
        part[n++] = word;
    return n;
}

static cs_status rebuild_problem(search_study *study, cs_error *err)
{
    enum { MOST = 256 };
    const char *stacks[MOST], *fixes[MOST];
    cs_status status = CS_OK;
    cs_files *files = cs_files_create();
    char *stack_text = strdup(study->info[STACKS]), *fix_text = strdup(study->info[FIXES]);

    if (files == NULL || stack_text == NULL || fix_text == NULL) {
        status = cs_fail(err, CS_ENOMEM, "study");
        goto done;
    }
    CS_TRY(search__store_get_files(study->store, files, err));
    search_problem_options options = {
        .psa_path = study->info[PSA_PATH],
        .stacks = stacks,
        .fixes = fixes,
        .objectives = study->info[OBJECTIVES][0] != 0 ? study->info[OBJECTIVES] : NULL,
    };
    options.n_stacks = split(stack_text, stacks, MOST);
    options.n_fixes = split(fix_text, fixes, MOST);
    if (options.n_stacks == 0)
        options.stacks = NULL;
    cs_files_stand_in(files);
    status = search_problem_load(&options, &study->own, err);
    cs_files_stand_in(NULL);
    study->owns_problem = status == CS_OK;
done:
    cs_files_destroy(files);
    free(stack_text);
    free(fix_text);
    return status;
}

cs_status search_study_open(const char *path, search_study **out, cs_error *err)
{
    cs_status status = CS_OK;
    search_study *study = new_study(NULL);

    if (study == NULL)
        return cs_fail(err, CS_ENOMEM, "study");
    CS_TRY(search__store_open(path, SEARCH__READ, &study->store, err));
    CS_TRY(read_info(study, path, err));
    CS_TRY(rebuild_problem(study, err));
    study->problem = &study->own;
    CS_TRY(make_room(study, err));
    *out = study;
    study = NULL;
done:
    search_study_close(study);
    return status;
}

const search_problem *search_study_problem(const search_study *study)
{
    return study->problem;
}

uint64_t search_study_n_trials(const search_study *study)
{
    uint64_t n = 0;

    return search__store_count(study->store, &n, NULL) == CS_OK ? n : 0;
}

const char *search_study_info(const search_study *study, const char *key)
{
    for (size_t i = 0; i < N_INFO; i++)
        if (strcmp(info_keys[i], key) == 0)
            return study->info[i];
    return NULL;
}

cs_status search__study_append(search_study *study, const search_trial *trial, cs_error *err)
{
    unsigned char result[SEARCH__RESULT_MAX];
    cs_status status;
    search__row row = {.id = trial->id,
                       .status = (int)trial->status,
                       .reason = trial->reason,
                       .violation = trial->violation,
                       .point = study->point_bytes,
                       .result = result};

    row.point_bytes = search__pack_point(trial->point, psa_space_n_vars(study->problem->space),
                                         study->point_bytes);
    row.result_bytes = search__pack_result(&trial->result, result);
    memcpy(row.objective, trial->objective, sizeof row.objective);
    CS_TRY(search__store_begin(study->store, err));
    CS_TRY(search__store_put_trial(study->store, &row, err));
done:
    return status;
}

cs_status search__study_range(const search_study *study, uint64_t first, uint64_t last,
                              search_trial_fn fn, void *context, cs_error *err)
{
    const search__reader reader = {study->store, study->problem, fn, context};

    return search__read_trials(&reader, first, last, err);
}

cs_status search_study_each(const search_study *study, search_trial_fn fn, void *context,
                            cs_error *err)
{
    return search__study_range(study, 0, INT64_MAX, fn, context, err);
}

typedef struct {
    search_trial *trial;
    int32_t *point;
    size_t n_vars;
    bool found;
} fetched;

static bool keep_fetched(void *context, const search_trial *trial)
{
    fetched *f = context;

    *f->trial = *trial;
    memcpy(f->point, trial->point, f->n_vars * sizeof *f->point);
    f->trial->point = f->point;
    f->found = true;
    return false;
}

cs_status search__study_fetch(search_study *study, uint64_t id, search_trial *trial, int32_t *point,
                              cs_error *err)
{
    cs_status status;
    fetched f = {trial, point, psa_space_n_vars(study->problem->space), false};

    CS_TRY(search__study_range(study, id, id, keep_fetched, &f, err));
    if (!f.found)
        status = cs_fail(err, CS_EIO, "the study is damaged: trial %" PRIu64 " is missing", id);
done:
    return status;
}

cs_status search__study_put(search_study *study, const char *key, uint64_t value, cs_error *err)
{
    cs_status status;
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    CS_TRY(search__store_begin(study->store, err));
    CS_TRY(search__store_put_info(study->store, key, text, err));
done:
    return status;
}

cs_status search__study_get(search_study *study, const char *key, uint64_t *value, bool *found,
                            cs_error *err)
{
    cs_status status;
    char *text = NULL;

    CS_TRY(search__store_get_info(study->store, key, &text, err));
    *found = text != NULL;
    *value = text != NULL ? strtoull(text, NULL, 10) : 0;
    free(text);
done:
    return status;
}

cs_status search__study_commit(search_study *study, bool now, cs_error *err)
{
    double t = search__now_s();

    if (!now && t - study->committed_s < COMMIT_PERIOD_S)
        return CS_OK;
    study->committed_s = t;
    return search__store_commit(study->store, err);
}

cs_status search__study_snapshot(search_study *study, const search__snapshot *snapshot,
                                 cs_error *err)
{
    cs_status status;

    CS_TRY(search__store_begin(study->store, err));
    CS_TRY(search__store_put_snapshot(study->store, snapshot, err));
done:
    return status;
}

cs_status search__study_last_snapshot(search_study *study, search__snapshot *snapshot,
                                      cs_error *err)
{
    return search__store_get_snapshot(study->store, snapshot, err);
}
