/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libyaml events -> a tree with positions.  The only file that knows libyaml. */
#include "common/doc.h"
#include "common/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

enum { LARGEST_FILE = 16 << 20, DEEPEST = 64, MOST_NODES = 2000000 };

struct cs_doc {
    cs_arena *arena;
    const char *path;
    const char *text;
    size_t length;
    uint64_t hash;
    cs_node *root;
};

/* A container being filled: entries in a growing array that is copied to the arena at its end. */
typedef struct {
    cs_node *node;
    cs_node **entry; /* list: items; map: key, value, key, value ... */
    size_t n, capacity;
} frame;

typedef struct {
    cs_doc *doc;
    yaml_parser_t yaml;
    frame stack[DEEPEST + 1];
    size_t depth, nodes;
    cs_error *err;
} builder;

static cs_status fail_at(const builder *b, yaml_mark_t mark, const char *what)
{
    return cs_fail(b->err, CS_EPARSE, "%s:%zu:%zu: %s", b->doc->path, mark.line + 1,
                   mark.column + 1, what);
}

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "out of memory reading a file");
}

static cs_status frame_push(frame *f, cs_node *node, cs_error *err)
{
    cs_node **entry = cs_room(f->entry, &f->capacity, f->n + 1, sizeof *entry);

    if (entry == NULL)
        return no_memory(err);
    f->entry = entry;
    f->entry[f->n++] = node;
    return CS_OK;
}

static bool awaits_key(const frame *f)
{
    return f->node->kind == CS_DOC_MAP && f->n % 2 == 0;
}

/* Attaches a finished or opened node to its parent. */
static cs_status attach(builder *b, cs_node *node, yaml_mark_t mark)
{
    frame *parent;

    if (b->depth == 0) {
        b->doc->root = node;
        return CS_OK;
    }
    parent = &b->stack[b->depth - 1];
    if (awaits_key(parent) && node->kind != CS_DOC_SCALAR)
        return fail_at(b, mark, "a key must be a plain name");
    return frame_push(parent, node, b->err);
}

static cs_status new_node(builder *b, cs_doc_kind kind, yaml_mark_t mark, cs_node **out)
{
    cs_node *node = NULL;

    if (++b->nodes > MOST_NODES)
        return fail_at(b, mark, "too many entries (limit 2,000,000)");
    node = cs_arena_alloc(b->doc->arena, sizeof *node);
    if (node == NULL)
        return no_memory(b->err);
    node->kind = kind;
    node->line = (int)mark.line + 1;
    node->column = (int)mark.column + 1;
    *out = node;
    return CS_OK;
}

static cs_status on_scalar(builder *b, const yaml_event_t *event)
{
    cs_status status;
    cs_node *node = NULL;
    size_t length = event->data.scalar.length;
    const char *text = (const char *)event->data.scalar.value;

    if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL)
        return fail_at(b, event->start_mark, "anchors and tags are not supported");
    if (memchr(text, '\0', length) != NULL)
        return fail_at(b, event->start_mark, "a zero byte in a value");
    CS_TRY(new_node(b, CS_DOC_SCALAR, event->start_mark, &node));
    node->quoted = event->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                   event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    node->text = cs_arena_strndup(b->doc->arena, text, length);
    if (node->text == NULL)
        return no_memory(b->err);
    CS_TRY(attach(b, node, event->start_mark));
done:
    return status;
}

static cs_status on_open(builder *b, cs_doc_kind kind, const yaml_event_t *event)
{
    cs_status status;
    cs_node *node = NULL;
    bool marked =
        kind == CS_DOC_MAP
            ? event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL
            : event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;

    if (marked)
        return fail_at(b, event->start_mark, "anchors and tags are not supported");
    if (b->depth >= DEEPEST)
        return fail_at(b, event->start_mark, "nested deeper than 64");
    CS_TRY(new_node(b, kind, event->start_mark, &node));
    CS_TRY(attach(b, node, event->start_mark));
    b->stack[b->depth].node = node;
    b->stack[b->depth].n = 0;
    b->depth++;
done:
    return status;
}

static int by_text(const void *a, const void *b)
{
    const cs_node *x = *(cs_node *const *)a, *y = *(cs_node *const *)b;
    int order = strcmp(x->text, y->text);
    return order != 0 ? order : x->line != y->line ? x->line - y->line : x->column - y->column;
}

/* O(n log n), so that a hostile map of a million keys is no burden. */
static cs_status check_unique(builder *b, const cs_node *map)
{
    cs_node **sorted;
    cs_status status = CS_OK;

    if (map->n < 2)
        return CS_OK;
    sorted = malloc(map->n * sizeof *sorted);
    if (sorted == NULL)
        return no_memory(b->err);
    memcpy(sorted, map->key, map->n * sizeof *sorted);
    qsort(sorted, map->n, sizeof *sorted, by_text);
    for (size_t i = 1; i < map->n && status == CS_OK; i++)
        if (strcmp(sorted[i]->text, sorted[i - 1]->text) == 0)
            status =
                cs_doc_fail(b->doc, sorted[i], b->err, "duplicate key '%.60s' (first on line %d)",
                            sorted[i]->text, sorted[i - 1]->line);
    free(sorted);
    return status;
}

static cs_status on_close(builder *b)
{
    frame *f = &b->stack[--b->depth];
    cs_node *node = f->node;
    bool map = node->kind == CS_DOC_MAP;

    node->n = map ? f->n / 2 : f->n;
    node->item = cs_arena_alloc(b->doc->arena, (node->n + 1) * sizeof *node->item);
    node->key = cs_arena_alloc(b->doc->arena, (node->n + 1) * sizeof *node->key);
    if (node->item == NULL || node->key == NULL)
        return no_memory(b->err);
    for (size_t i = 0; i < node->n; i++) {
        node->item[i] = map ? f->entry[2 * i + 1] : f->entry[i];
        node->key[i] = map ? f->entry[2 * i] : NULL;
    }
    return map ? check_unique(b, node) : CS_OK;
}

static cs_status on_event(builder *b, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return on_scalar(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_open(b, CS_DOC_LIST, event);
    case YAML_MAPPING_START_EVENT:
        return on_open(b, CS_DOC_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_close(b);
    case YAML_ALIAS_EVENT:
        return fail_at(b, event->start_mark, "aliases are not supported");
    case YAML_DOCUMENT_START_EVENT:
        return b->doc->root == NULL
                   ? CS_OK
                   : fail_at(b, event->start_mark, "a second document begins here");
    default:
        return CS_OK;
    }
}

/* libyaml's words on tabs ("found character that cannot start any token") help nobody. */
static cs_status yaml_problem(const builder *b)
{
    yaml_mark_t mark = b->yaml.problem_mark;
    const char *line = b->doc->text;
    const char *problem = b->yaml.problem == NULL ? "not valid YAML" : b->yaml.problem;

    if (b->yaml.error == YAML_MEMORY_ERROR)
        return no_memory(b->err);
    for (size_t i = 0; i < mark.line && line != NULL; i++) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    if (line != NULL && line[strspn(line, " ")] == '\t')
        return fail_at(b, mark, "a tab in the indentation; use spaces");
    return cs_fail(b->err, CS_EPARSE, "%s:%zu:%zu: %s%s%s", b->doc->path, mark.line + 1,
                   mark.column + 1, b->yaml.context == NULL ? "" : b->yaml.context,
                   b->yaml.context == NULL ? "" : ", ", problem);
}

static cs_status build(builder *b)
{
    cs_status status = CS_OK;
    bool done = false;

    while (!done && status == CS_OK) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->yaml, &event))
            return yaml_problem(b);
        status = on_event(b, &event);
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    if (status == CS_OK && b->doc->root == NULL)
        return cs_fail(b->err, CS_EPARSE, "%s:1:1: the file is empty", b->doc->path);
    return status;
}

static cs_status parse_tree(cs_doc *doc, cs_error *err)
{
    cs_status status;
    builder *b = calloc(1, sizeof *b);

    if (b == NULL)
        return no_memory(err);
    b->doc = doc;
    b->err = err;
    if (!yaml_parser_initialize(&b->yaml)) {
        free(b);
        return no_memory(err);
    }
    yaml_parser_set_input_string(&b->yaml, (const unsigned char *)doc->text, doc->length);
    status = build(b);
    yaml_parser_delete(&b->yaml);
    for (size_t i = 0; i < CS_COUNT(b->stack); i++)
        free(b->stack[i].entry);
    free(b);
    return status;
}

cs_status cs_doc_parse(const char *text, size_t length, const char *name, cs_doc **out,
                       cs_error *err)
{
    cs_status status = CS_OK;
    cs_doc *doc = calloc(1, sizeof *doc);

    if (doc == NULL)
        return no_memory(err);
    doc->arena = cs_arena_create(0);
    if (doc->arena == NULL) {
        status = no_memory(err);
        goto done;
    }
    doc->path = cs_arena_strdup(doc->arena, name);
    if (doc->path == NULL) {
        status = no_memory(err);
        goto done;
    }
    if (length > LARGEST_FILE) {
        status =
            cs_fail(err, CS_EPARSE, "%s: %zu bytes are over the limit of 16 MiB", name, length);
        goto done;
    }
    doc->text = cs_arena_strndup(doc->arena, text, length);
    if (doc->text == NULL) {
        status = no_memory(err);
        goto done;
    }
    doc->length = length;
    doc->hash = cs_hash(CS_HASH_START, text, length);
    CS_TRY(parse_tree(doc, err));
    *out = doc;
    doc = NULL;
done:
    cs_doc_destroy(doc);
    return status;
}

static cs_status read_file(FILE *file, const char *path, char **text, size_t *length, cs_error *err)
{
    size_t n = 0, capacity = 65536;
    char *buffer = malloc(capacity);

    while (buffer != NULL) {
        n += fread(buffer + n, 1, capacity - n, file);
        if (n < capacity || n > LARGEST_FILE)
            break;
        capacity *= 2;
        char *larger = realloc(buffer, capacity);
        if (larger == NULL)
            free(buffer);
        buffer = larger;
    }
    if (buffer == NULL)
        return no_memory(err);
    if (ferror(file)) {
        free(buffer);
        return cs_fail(err, CS_EIO, "%s: %s", path, strerror(errno));
    }
    *text = buffer;
    *length = n;
    return CS_OK;
}

cs_status cs_doc_load(const char *path, cs_doc **out, cs_error *err)
{
    cs_status status;
    struct stat info;
    char *text = NULL;
    const char *kept = NULL;
    size_t length = 0;
    FILE *file = NULL;

    if (cs_files_intercept(path, &kept, &length)) {
        if (kept == NULL)
            return cs_fail(err, CS_ENOENT, "%s: not among the files kept", path);
        CS_TRY(cs_files_record(path, kept, length));
        return cs_doc_parse(kept, length, path, out, err);
    }
    file = fopen(path, "rb");
    if (file == NULL)
        return errno == ENOMEM ? no_memory(err)
                               : cs_fail(err, CS_ENOENT, "%s: %s", path, strerror(errno));
    if (fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)) {
        status = cs_fail(err, CS_ENOENT, "%s: is a directory", path);
        goto done;
    }
    CS_TRY(read_file(file, path, &text, &length, err));
    CS_TRY(cs_files_record(path, text, length));
    CS_TRY(cs_doc_parse(text, length, path, out, err));
done:
    free(text);
    if (file != NULL)
        (void)fclose(file);
    return status;
}

void cs_doc_destroy(cs_doc *doc)
{
    if (doc == NULL)
        return;
    cs_arena_destroy(doc->arena);
    free(doc);
}

const cs_node *cs_doc_root(const cs_doc *doc)
{
    return doc->root;
}

const char *cs_doc_path(const cs_doc *doc)
{
    return doc->path;
}

uint64_t cs_doc_hash(const cs_doc *doc)
{
    return doc->hash;
}

const char *cs_doc_text(const cs_doc *doc, size_t *n)
{
    *n = doc->length;
    return doc->text;
}

const char *cs_doc_resolve(cs_doc *doc, const char *file)
{
    const char *slash = strrchr(doc->path, '/');

    if (file[0] == '/' || slash == NULL)
        return cs_arena_strdup(doc->arena, file);
    return cs_arena_printf(doc->arena, "%.*s/%s", (int)(slash - doc->path), doc->path, file);
}

cs_status cs_doc_fail(const cs_doc *doc, const cs_node *at, cs_error *err, const char *fmt, ...)
{
    va_list args;
    char text[1600];

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return cs_fail(err, CS_ESCHEMA, "%.300s:%d:%d: %s", doc->path, at == NULL ? 1 : at->line,
                   at == NULL ? 1 : at->column, text);
}
