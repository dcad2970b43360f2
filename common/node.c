/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Typed access to the nodes of a document; every refusal says where and what was expected. */
#include "common/doc.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"a single value", "a list", "a mapping"};

const cs_node *cs_node_get(const cs_node *map, const char *key)
{
    if (map == NULL || map->kind != CS_DOC_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->key[i]->text, key) == 0)
            return map->item[i];
    return NULL;
}

cs_status cs_node_require(const cs_doc *doc, const cs_node *map, const char *key,
                          const cs_node **out, cs_error *err)
{
    cs_status status;

    CS_TRY(cs_node_expect(doc, map, CS_DOC_MAP, err));
    *out = cs_node_get(map, key);
    if (*out == NULL)
        return cs_doc_fail(doc, map, err, "the key '%s' is missing", key);
done:
    return status;
}

cs_status cs_node_expect(const cs_doc *doc, const cs_node *node, cs_doc_kind kind, cs_error *err)
{
    if (node == NULL)
        return cs_doc_fail(doc, node, err, "expected %s", kind_names[kind]);
    if (node->kind != kind)
        return cs_doc_fail(doc, node, err, "expected %s, found %s", kind_names[kind],
                           kind_names[node->kind]);
    return CS_OK;
}

cs_status cs_node_check_keys(const cs_doc *doc, const cs_node *map, const char *const *names,
                             size_t n, cs_error *err)
{
    cs_status status;

    CS_TRY(cs_node_expect(doc, map, CS_DOC_MAP, err));
    for (size_t i = 0; i < map->n; i++) {
        const char *key = map->key[i]->text;
        const char *near;
        bool known = false;
        for (size_t j = 0; j < n && !known; j++)
            known = strcmp(key, names[j]) == 0;
        if (known)
            continue;
        near = cs_nearest(key, names, n);
        return cs_doc_fail(doc, map->key[i], err, "unknown key '%.60s'%s%s%s", key,
                           near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
                           near == NULL ? "" : "'?");
    }
done:
    return status;
}

cs_status cs_node_int(const cs_doc *doc, const cs_node *node, int64_t min, int64_t max,
                      int64_t *out, cs_error *err)
{
    cs_status status;
    char *end;
    long long value;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_SCALAR, err));
    errno = 0;
    value = strtoll(node->text, &end, 10);
    if (end == node->text || *end != '\0' || errno != 0)
        return cs_doc_fail(doc, node, err, "expected a whole number, found '%.60s'", node->text);
    if (value < min || value > max)
        return cs_doc_fail(doc, node, err, "expected a whole number from %lld to %lld, found %lld",
                           (long long)min, (long long)max, value);
    *out = value;
done:
    return status;
}

cs_status cs_node_real(const cs_doc *doc, const cs_node *node, double *out, cs_error *err)
{
    return cs_node_quantity(doc, node, CS_DIMENSIONLESS, out, err);
}

cs_status cs_node_quantity(const cs_doc *doc, const cs_node *node, cs_dimension expected,
                           double *out, cs_error *err)
{
    cs_status status;
    cs_error inner;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_SCALAR, err));
    if (cs_quantity_parse(node->text, expected, out, &inner) != CS_OK)
        return cs_doc_fail(doc, node, err, "%s", inner.text);
done:
    return status;
}

cs_status cs_node_bool(const cs_doc *doc, const cs_node *node, bool *out, cs_error *err)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    cs_status status;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_SCALAR, err));
    for (size_t i = 0; i < CS_COUNT(words); i++)
        if (strcmp(node->text, words[i]) == 0) {
            *out = i % 2 == 1;
            return CS_OK;
        }
    return cs_doc_fail(doc, node, err, "expected true or false, found '%.60s'", node->text);
done:
    return status;
}

cs_status cs_node_string(const cs_doc *doc, const cs_node *node, const char **out, cs_error *err)
{
    cs_status status;

    CS_TRY(cs_node_expect(doc, node, CS_DOC_SCALAR, err));
    *out = node->text;
done:
    return status;
}

cs_status cs_node_enum(const cs_doc *doc, const cs_node *node, const char *const *names, size_t n,
                       int32_t *out, cs_error *err)
{
    cs_status status;
    const char *near;
    char list[400] = "";

    CS_TRY(cs_node_expect(doc, node, CS_DOC_SCALAR, err));
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(list);
        if (strcmp(node->text, names[i]) == 0) {
            *out = (int32_t)i;
            return CS_OK;
        }
        (void)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    near = cs_nearest(node->text, names, n);
    return cs_doc_fail(doc, node, err, "expected one of %s; found '%.60s'%s%s%s", list, node->text,
                       near == NULL ? "" : "; did you mean '", near == NULL ? "" : near,
                       near == NULL ? "" : "'?");
done:
    return status;
}
