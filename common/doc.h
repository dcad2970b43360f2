/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A parsed YAML or JSON file as a tree that knows its positions.  (JSON is read by the same YAML
 * parser, so that its errors carry line and column too.)  Limits: 16 MiB, depth 64, 2,000,000
 * nodes; anchors, aliases, tags, tabs as indentation, duplicate keys and several documents are
 * refused. */
#ifndef CS_DOC_H
#define CS_DOC_H

#include "common/unit.h"

typedef enum { CS_DOC_SCALAR, CS_DOC_LIST, CS_DOC_MAP } cs_doc_kind;

/* One node; all pointers are borrowed from the document. */
typedef struct cs_node {
    cs_doc_kind kind;
    bool quoted;           /* scalar written in quotes */
    int line, column;      /* from 1 */
    const char *text;      /* scalar, ends with 0, no 0 inside */
    size_t n;              /* entries of a list or map */
    struct cs_node **key;  /* map: scalar nodes */
    struct cs_node **item; /* list and map */
} cs_node;

typedef struct cs_doc cs_doc;

/* Reads a file.  CS_ENOENT when it is missing, CS_EPARSE with file:line:column otherwise.  The
 * caller owns *out. */
CS_MUST_USE cs_status cs_doc_load(const char *path, cs_doc **out, cs_error *err);
/* Parses `length` bytes; `name` stands for the file in messages. */
CS_MUST_USE cs_status cs_doc_parse(const char *text, size_t length, const char *name, cs_doc **out,
                                   cs_error *err);
void cs_doc_destroy(cs_doc *doc); /* NULL is a no-op */

const cs_node *cs_doc_root(const cs_doc *doc);
const char *cs_doc_path(const cs_doc *doc);
uint64_t cs_doc_hash(const cs_doc *doc);               /* of the bytes */
const char *cs_doc_text(const cs_doc *doc, size_t *n); /* the bytes */

/* Fails with "path:line:column: " before the message. */
cs_status cs_doc_fail(const cs_doc *doc, const cs_node *at, cs_error *err, const char *fmt, ...)
    CS_PRINTF(4, 5);

/* Value of `key` in a map, NULL when absent (or when `map` is no map). O(n). */
const cs_node *cs_node_get(const cs_node *map, const char *key);
/* Value of a required key; fails naming it. */
CS_MUST_USE cs_status cs_node_require(const cs_doc *doc, const cs_node *map, const char *key,
                                      const cs_node **out, cs_error *err);
/* Fails unless `node` has the kind ("expected a mapping"). */
CS_MUST_USE cs_status cs_node_expect(const cs_doc *doc, const cs_node *node, cs_doc_kind kind,
                                     cs_error *err);
/* Fails on a key that is not in `names` (count n), with the nearest one. */
CS_MUST_USE cs_status cs_node_check_keys(const cs_doc *doc, const cs_node *map,
                                         const char *const *names, size_t n, cs_error *err);

/* Typed scalars; each fails with the position and what was expected. */
CS_MUST_USE cs_status cs_node_int(const cs_doc *doc, const cs_node *node, int64_t min, int64_t max,
                                  int64_t *out, cs_error *err);
CS_MUST_USE cs_status cs_node_real(const cs_doc *doc, const cs_node *node, double *out,
                                   cs_error *err);
CS_MUST_USE cs_status cs_node_quantity(const cs_doc *doc, const cs_node *node,
                                       cs_dimension expected, double *out, cs_error *err);
CS_MUST_USE cs_status cs_node_bool(const cs_doc *doc, const cs_node *node, bool *out,
                                   cs_error *err);
CS_MUST_USE cs_status cs_node_string(const cs_doc *doc, const cs_node *node, const char **out,
                                     cs_error *err);
/* Index of a scalar in `names` (count n). */
CS_MUST_USE cs_status cs_node_enum(const cs_doc *doc, const cs_node *node, const char *const *names,
                                   size_t n, int32_t *out, cs_error *err);

/* `file` taken relative to the folder of the document (absolute paths as they are); arena memory
 * of the document, NULL when out of memory. */
const char *cs_doc_resolve(cs_doc *doc, const char *file);

#endif
