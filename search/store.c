/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The study's database: the only file that knows SQLite.  Write-ahead log, so that readers are
 * never in the way of a run and a kill loses at most the open transaction. */
#include "search/search_private.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char schema_sql[] =
    "CREATE TABLE info(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE file(n INTEGER PRIMARY KEY, path TEXT NOT NULL, text BLOB NOT NULL);"
    "CREATE TABLE trial(id INTEGER PRIMARY KEY, status INTEGER NOT NULL, reason TEXT,"
    " violation REAL, objective_1 REAL, objective_2 REAL, objective_3 REAL, objective_4 REAL,"
    " point BLOB NOT NULL, result BLOB);"
    "CREATE TABLE snapshot(one INTEGER PRIMARY KEY CHECK(one = 1), trials INTEGER NOT NULL,"
    " proposals INTEGER NOT NULL, hits INTEGER NOT NULL, hash INTEGER NOT NULL,"
    " agent BLOB NOT NULL);";

enum {
    PUT_INFO,
    GET_INFO,
    PUT_FILE,
    GET_FILES,
    PUT_TRIAL,
    PUT_SNAPSHOT,
    GET_SNAPSHOT,
    COUNT,
    N_STATEMENTS
};
static const char range_sql[] = "SELECT * FROM trial WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
static const char *const statement_sql[N_STATEMENTS] = {
    [PUT_INFO] = "INSERT OR REPLACE INTO info VALUES(?1, ?2)",
    [GET_INFO] = "SELECT value FROM info WHERE key = ?1",
    [PUT_FILE] = "INSERT INTO file(path, text) VALUES(?1, ?2)",
    [GET_FILES] = "SELECT path, text FROM file ORDER BY n",
    [PUT_TRIAL] = "INSERT INTO trial VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    [PUT_SNAPSHOT] = "INSERT OR REPLACE INTO snapshot VALUES(1, ?1, ?2, ?3, ?4, ?5)",
    [GET_SNAPSHOT] = "SELECT trials, proposals, hits, hash, agent FROM snapshot",
    [COUNT] = "SELECT coalesce(max(id), 0) FROM trial",
};

struct search__store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *statement[N_STATEMENTS];
    bool open; /* a transaction */
};

static cs_status db_fail(const search__store *store, cs_error *err)
{
    const int code = sqlite3_errcode(store->db);
    const bool damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;

    if (code == SQLITE_NOMEM)
        return cs_fail(err, CS_ENOMEM, "study");
    return cs_fail(err, damaged ? CS_EPARSE : CS_EIO, "%s: %s%s", store->path,
                   damaged ? "not a study, or a damaged one: " : "", sqlite3_errmsg(store->db));
}

static cs_status run_sql(search__store *store, const char *sql, cs_error *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? CS_OK
                                                                       : db_fail(store, err);
}

/* A prepared statement, kept for the store's life. */
static cs_status get(search__store *store, int which, sqlite3_stmt **out, cs_error *err)
{
    sqlite3_stmt **st = &store->statement[which];

    if (*st == NULL && sqlite3_prepare_v3(store->db, statement_sql[which], -1,
                                          SQLITE_PREPARE_PERSISTENT, st, NULL) != SQLITE_OK)
        return db_fail(store, err);
    sqlite3_reset(*st);
    *out = *st;
    return CS_OK;
}

static cs_status finish(search__store *store, sqlite3_stmt *st, cs_error *err)
{
    cs_status status = sqlite3_step(st) == SQLITE_DONE ? CS_OK : db_fail(store, err);
    sqlite3_reset(st);
    return status;
}

static int open_database(const char *path, search__mode mode, sqlite3 **db)
{
    int flags = SQLITE_OPEN_NOMUTEX;

    if (mode == SEARCH__CREATE)
        return sqlite3_open_v2(path, db, flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    /* For reading too: the last connection removes the log and its index, if it may write; SQLite
     * opens what is write-protected for reading only. */
    return sqlite3_open_v2(path, db, flags | SQLITE_OPEN_READWRITE, NULL);
}

static bool has_no_tables(sqlite3 *db)
{
    sqlite3_stmt *st = NULL;
    const bool none =
        sqlite3_prepare_v2(db, "SELECT count(*) FROM sqlite_master", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int(st, 0) == 0;

    sqlite3_finalize(st);
    return none;
}

/* Whether the database has the tables of a study. */
static cs_status check_tables(search__store *store, cs_error *err)
{
    if (sqlite3_exec(store->db, "SELECT 1 FROM info", NULL, NULL, NULL) == SQLITE_OK)
        return CS_OK;
    if (sqlite3_errcode(store->db) == SQLITE_ERROR && has_no_tables(store->db))
        return cs_fail(err, CS_EPARSE,
                       "%s: not a study yet: empty, as a run that is stopped while it begins "
                       "leaves it; `run --resume` begins again",
                       store->path);
    if (sqlite3_errcode(store->db) == SQLITE_ERROR)
        return cs_fail(err, CS_EPARSE, "%s: not a study: %s", store->path,
                       sqlite3_errmsg(store->db));
    return db_fail(store, err);
}

/* A read-only folder has no room for the log's index: then read the file alone, as it stands. */
static int open_immutable(const char *path, sqlite3 **db)
{
    char uri[4200] = "file:";
    size_t at = 5;

    for (const char *c = path; *c != 0 && at < sizeof uri - 24; c++) {
        if (*c == '%' || *c == '?' || *c == '#')
            at += (size_t)snprintf(uri + at, 4, "%%%02X", (unsigned)(unsigned char)*c);
        else
            uri[at++] = *c;
    }
    (void)snprintf(uri + at, sizeof uri - at, "?immutable=1");
    return sqlite3_open_v2(uri, db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI,
                           NULL);
}

static cs_status prepare_database(search__store *store, search__mode mode, cs_error *err)
{
    cs_status status = CS_OK;

    sqlite3_busy_timeout(store->db, 5000);
    if (mode == SEARCH__READ) {
        if (sqlite3_exec(store->db, "SELECT 1 FROM info", NULL, NULL, NULL) == SQLITE_OK)
            return CS_OK;
        if (sqlite3_extended_errcode(store->db) != SQLITE_CANTOPEN &&
            sqlite3_errcode(store->db) != SQLITE_READONLY &&
            sqlite3_errcode(store->db) != SQLITE_CANTOPEN)
            return check_tables(store, err);
        sqlite3_close(store->db);
        store->db = NULL;
        if (open_immutable(store->path, &store->db) != SQLITE_OK)
            return db_fail(store, err);
        return check_tables(store, err);
    }
    /* Before anything is changed in a file that is none of ours. */
    if (mode == SEARCH__WRITE)
        CS_TRY(check_tables(store, err));
    CS_TRY(run_sql(store,
                   "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                   "PRAGMA wal_autocheckpoint=2000",
                   err));
    if (mode == SEARCH__CREATE) {
        CS_TRY(search__store_begin(store, err));
        CS_TRY(run_sql(store, schema_sql, err));
    }
done:
    return status;
}

bool search__store_blank(const char *path)
{
    sqlite3 *db = NULL;
    const bool blank = sqlite3_open_v2(path, &db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE,
                                       NULL) == SQLITE_OK &&
                       has_no_tables(db);

    sqlite3_close(db);
    return blank;
}

static cs_status check_readable(const char *path, cs_error *err)
{
    struct stat info;

    if (access(path, R_OK) != 0 || stat(path, &info) != 0)
        return cs_fail(err, CS_ENOENT, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return cs_fail(err, CS_EINVAL, "%s: is a directory; expected a study", path);
    return CS_OK;
}

cs_status search__store_open(const char *path, search__mode mode, search__store **out,
                             cs_error *err)
{
    cs_status status = CS_OK;
    search__store *store = calloc(1, sizeof *store);

    if (store == NULL)
        return cs_fail(err, CS_ENOMEM, "study");
    store->path = strdup(path);
    if (store->path == NULL) {
        status = cs_fail(err, CS_ENOMEM, "study");
        goto done;
    }
    if (mode == SEARCH__READ)
        CS_TRY(check_readable(path, err));
    if (open_database(path, mode, &store->db) != SQLITE_OK) {
        status = db_fail(store, err);
        goto done;
    }
    CS_TRY(prepare_database(store, mode, err));
    *out = store;
    store = NULL;
done:
    search__store_close(store);
    return status;
}

void search__store_close(search__store *store)
{
    if (store == NULL)
        return;
    if (store->open)
        (void)search__store_commit(store, NULL);
    for (size_t i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(store->statement[i]);
    sqlite3_close(store->db);
    free(store->path);
    free(store);
}

cs_status search__store_begin(search__store *store, cs_error *err)
{
    if (store->open)
        return CS_OK;
    cs_status status = run_sql(store, "BEGIN IMMEDIATE", err);
    store->open = status == CS_OK;
    return status;
}

cs_status search__store_commit(search__store *store, cs_error *err)
{
    if (!store->open)
        return CS_OK;
    store->open = false;
    cs_status status = run_sql(store, "COMMIT", err);
    if (status != CS_OK)
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

static void bind_text(sqlite3_stmt *st, int at, const char *text)
{
    sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
}

cs_status search__store_put_info(search__store *store, const char *key, const char *value,
                                 cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;

    CS_TRY(get(store, PUT_INFO, &st, err));
    bind_text(st, 1, key);
    bind_text(st, 2, value);
    CS_TRY(finish(store, st, err));
done:
    return status;
}

cs_status search__store_get_info(search__store *store, const char *key, char **value, cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;

    *value = NULL;
    CS_TRY(get(store, GET_INFO, &st, err));
    bind_text(st, 1, key);
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(st, 0);
        *value = text == NULL ? NULL : strdup((const char *)text);
        if (*value == NULL)
            status = cs_fail(err, CS_ENOMEM, "study");
    } else if (rc != SQLITE_DONE) {
        status = db_fail(store, err);
    }
    sqlite3_reset(st);
done:
    return status;
}

cs_status search__store_put_file(search__store *store, const char *path, const char *text, size_t n,
                                 cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;

    CS_TRY(get(store, PUT_FILE, &st, err));
    bind_text(st, 1, path);
    sqlite3_bind_blob64(st, 2, text, n, SQLITE_STATIC);
    CS_TRY(finish(store, st, err));
done:
    return status;
}

cs_status search__store_get_files(search__store *store, cs_files *files, cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;
    int rc = SQLITE_ROW;

    CS_TRY(get(store, GET_FILES, &st, err));
    while (status == CS_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(st, 0);
        const char *text = sqlite3_column_blob(st, 1);
        size_t n = (size_t)sqlite3_column_bytes(st, 1);
        if (sqlite3_errcode(store->db) == SQLITE_NOMEM)
            status = db_fail(store, err);
        else if (path != NULL)
            status = cs_files_add(files, path, text != NULL ? text : "", n);
    }
    if (status == CS_OK && rc != SQLITE_DONE)
        status = db_fail(store, err);
    sqlite3_reset(st);
done:
    return status;
}

cs_status search__store_put_trial(search__store *store, const search__row *row, cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;

    CS_TRY(get(store, PUT_TRIAL, &st, err));
    sqlite3_bind_int64(st, 1, (sqlite3_int64)row->id);
    sqlite3_bind_int(st, 2, row->status);
    if (row->reason[0] != 0)
        bind_text(st, 3, row->reason);
    else
        sqlite3_bind_null(st, 3);
    sqlite3_bind_double(st, 4, row->violation);
    /* Not a number is stored as NULL. */
    for (int i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        sqlite3_bind_double(st, 5 + i, row->objective[i]);
    sqlite3_bind_blob64(st, 9, row->point, row->point_bytes, SQLITE_STATIC);
    sqlite3_bind_blob64(st, 10, row->result, row->result_bytes, SQLITE_STATIC);
    CS_TRY(finish(store, st, err));
done:
    return status;
}

cs_status search__store_put_snapshot(search__store *store, const search__snapshot *snapshot,
                                     cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;
    uint64_t hash = cs_hash(CS_HASH_START, snapshot->agent, snapshot->agent_bytes);

    CS_TRY(get(store, PUT_SNAPSHOT, &st, err));
    sqlite3_bind_int64(st, 1, (sqlite3_int64)snapshot->trials);
    sqlite3_bind_int64(st, 2, (sqlite3_int64)snapshot->proposals);
    sqlite3_bind_int64(st, 3, (sqlite3_int64)snapshot->hits);
    sqlite3_bind_int64(st, 4, (sqlite3_int64)hash);
    sqlite3_bind_blob64(st, 5, snapshot->agent, snapshot->agent_bytes, SQLITE_STATIC);
    CS_TRY(finish(store, st, err));
done:
    return status;
}

cs_status search__store_get_snapshot(search__store *store, search__snapshot *snapshot,
                                     cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;

    *snapshot = (search__snapshot){0};
    CS_TRY(get(store, GET_SNAPSHOT, &st, err));
    int rc = sqlite3_step(st);
    if (rc == SQLITE_DONE)
        return CS_OK;
    if (rc != SQLITE_ROW)
        return db_fail(store, err);
    snapshot->trials = (uint64_t)sqlite3_column_int64(st, 0);
    snapshot->proposals = (uint64_t)sqlite3_column_int64(st, 1);
    snapshot->hits = (uint64_t)sqlite3_column_int64(st, 2);
    snapshot->agent = sqlite3_column_blob(st, 4);
    snapshot->agent_bytes = (size_t)sqlite3_column_bytes(st, 4);
    if (sqlite3_errcode(store->db) == SQLITE_NOMEM)
        return db_fail(store, err);
    if (cs_hash(CS_HASH_START, snapshot->agent, snapshot->agent_bytes) !=
        (uint64_t)sqlite3_column_int64(st, 3))
        return cs_fail(err, CS_EIO, "%s: the agent's snapshot is damaged", store->path);
done:
    return status;
}

cs_status search__store_count(search__store *store, uint64_t *n, cs_error *err)
{
    cs_status status;
    sqlite3_stmt *st = NULL;

    CS_TRY(get(store, COUNT, &st, err));
    if (sqlite3_step(st) != SQLITE_ROW)
        return db_fail(store, err);
    *n = (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
done:
    return status;
}

static search__row read_row(sqlite3_stmt *st)
{
    search__row row = {.id = (uint64_t)sqlite3_column_int64(st, 0),
                       .status = sqlite3_column_int(st, 1),
                       .reason = (const char *)sqlite3_column_text(st, 2),
                       .violation = sqlite3_column_double(st, 3)};

    if (row.reason == NULL)
        row.reason = "";
    for (int i = 0; i < AGENT_MAX_OBJECTIVES; i++)
        row.objective[i] = sqlite3_column_type(st, 4 + i) == SQLITE_NULL
                               ? __builtin_nan("")
                               : sqlite3_column_double(st, 4 + i);
    row.point = sqlite3_column_blob(st, 8);
    row.point_bytes = (size_t)sqlite3_column_bytes(st, 8);
    row.result = sqlite3_column_blob(st, 9);
    row.result_bytes = (size_t)sqlite3_column_bytes(st, 9);
    return row;
}

cs_status search__store_each(search__store *store, uint64_t first, uint64_t last, search__row_fn fn,
                             void *context, cs_error *err)
{
    cs_status status = CS_OK;
    sqlite3_stmt *st = NULL;
    int rc = SQLITE_ROW;
    bool more = true;

    /* A statement of its own: fn may read the study too. */
    if (sqlite3_prepare_v2(store->db, range_sql, -1, &st, NULL) != SQLITE_OK)
        return db_fail(store, err);
    sqlite3_bind_int64(st, 1, (sqlite3_int64)first);
    sqlite3_bind_int64(st, 2, last > INT64_MAX ? INT64_MAX : (sqlite3_int64)last);
    while (more && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        search__row row = read_row(st);
        more = sqlite3_errcode(store->db) != SQLITE_NOMEM && fn(context, &row);
    }
    if (sqlite3_errcode(store->db) == SQLITE_NOMEM || (more && rc != SQLITE_DONE))
        status = db_fail(store, err);
    sqlite3_finalize(st);
    return status;
}
