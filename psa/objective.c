/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Objectives, and limits on results with their graded violation. */
#include "psa/psa_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OBJECTIVES 100
#define MAX_BUILT_IN   32

/* The reward printed in the COSMIC paper (arXiv 2505.15020): latency in ns, bandwidth in GB/s. */
#define PAPER_REWARD "paper_reward"
#define PAPER_REWARD_TEXT                                                                          \
    "1 / sqrt((latency / 1 ns * sum(network.bandwidth) / 1 GB/s / 2000 - 1)^2)"

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "objectives");
}

static cs_status compile_objective(psa_schema *schema, psa__objective *o, const cs_doc *doc,
                                   cs_error *err)
{
    cs_status status;
    psa__parsed parsed;
    psa__source source = {schema, doc, o->node, o->text, 0, true};

    CS_TRY(psa__parse(&source, &parsed, err));
    CS_TRY(psa__count_size(&source, &parsed, err));
    if (parsed.value.vector)
        return psa__source_fail(&source, 0, err,
                                "this has one value per dimension; use sum(), min() or max()");
    if (parsed.value.type == PSA__ENUM)
        return psa__source_fail(&source, 0, err, "an objective is a number");
    o->root = parsed.value.node[0];
    if (!psa__compile(schema->arena, schema->tables, o->root, &o->program) ||
        !psa__collect_facts(schema->arena, o->root, &o->fact, &o->n_facts))
        return no_memory(err);
done:
    return status;
}

static cs_status read_objective(psa_schema *schema, psa__objective *o, const cs_node *key,
                                const cs_node *map, cs_error *err)
{
    static const char *const ways[] = {"minimize", "maximize"};
    cs_status status;

    CS_TRY(cs_node_expect(schema->doc, map, CS_DOC_MAP, err));
    CS_TRY(psa__check_cut(schema->doc, map, err));
    CS_TRY(cs_node_check_keys(schema->doc, map, ways, CS_COUNT(ways), err));
    if (map->n != 1)
        return cs_doc_fail(schema->doc, map, err, "expected minimize or maximize, and one of them");
    CS_TRY(cs_node_expect(schema->doc, map->item[0], CS_DOC_SCALAR, err));
    o->name = key->text;
    o->maximize = strcmp(map->key[0]->text, "maximize") == 0;
    o->node = map->item[0];
    o->text = map->item[0]->text;
    if (strcmp(o->text, PAPER_REWARD) == 0) {
        o->text = PAPER_REWARD_TEXT;
        return compile_objective(schema, o, NULL, err);
    }
    CS_TRY(compile_objective(schema, o, schema->doc, err));
done:
    return status;
}

/* Adds an objective that the file does not list, unless it uses the name itself. */
static cs_status add_one(psa_schema *schema, const char *name, const char *text, bool maximize,
                         cs_error *err)
{
    psa__objective *o = &schema->objective[schema->n_all_objectives];

    for (size_t i = 0; i < schema->n_objectives; i++)
        if (strcmp(schema->objective[i].name, name) == 0)
            return CS_OK;
    *o = (psa__objective){.name = name, .text = text, .maximize = maximize};
    schema->n_all_objectives++;
    return compile_objective(schema, o, NULL, err);
}

/* Every result, the bandwidth and the paper's reward can be asked for by name. */
static cs_status add_built_in(psa_schema *schema, cs_error *err)
{
    const psa_tables *tables = schema->tables;
    cs_status status = CS_OK;
    bool latency = false;

    schema->n_all_objectives = schema->n_objectives;
    for (size_t i = 0; i < tables->n_results; i++) {
        const char *name = tables->results[i].name;
        const bool maximize = strncmp(name, "tokens", 6) == 0 || strcmp(name, "mfu") == 0;
        latency = latency || strcmp(name, "latency") == 0;
        CS_TRY(add_one(schema, name, name, maximize, err));
    }
    if (psa__field_find(tables, "network.bandwidth", 17) == SIZE_MAX)
        return CS_OK;
    CS_TRY(add_one(schema, "bandwidth", "sum(network.bandwidth)", false, err));
    if (latency)
        CS_TRY(add_one(schema, PAPER_REWARD, PAPER_REWARD_TEXT, true, err));
done:
    return status;
}

cs_status psa__load_objectives(psa_schema *schema, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;
    size_t n = node == NULL ? 0 : node->n;

    if (node != NULL)
        CS_TRY(cs_node_expect(schema->doc, node, CS_DOC_MAP, err));
    if (node != NULL && (n == 0 || n > MAX_OBJECTIVES))
        return cs_doc_fail(schema->doc, node, err, "expected 1 to %d objectives, found %zu",
                           MAX_OBJECTIVES, n);
    schema->objective = cs_arena_alloc(schema->arena, (n + schema->tables->n_results + 2) *
                                                          sizeof *schema->objective);
    if (schema->objective == NULL)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        CS_TRY(read_objective(schema, &schema->objective[i], node->key[i], node->item[i], err));
        schema->n_objectives = i + 1;
    }
    CS_TRY(add_built_in(schema, err));
    CS_TRY(psa__load_rules(schema, err));
done:
    return status;
}

size_t psa_schema_n_objectives(const psa_schema *schema)
{
    return schema->n_objectives;
}

const char *psa_schema_objective_name(const psa_schema *schema, size_t i)
{
    return schema->objective[i].name;
}

const char *psa_schema_objective_text(const psa_schema *schema, size_t i)
{
    return schema->objective[i].text;
}

bool psa_schema_objective_maximize(const psa_schema *schema, size_t i)
{
    return schema->objective[i].maximize;
}

cs_status psa_schema_find_objective(const psa_schema *schema, const char *name, size_t *out,
                                    cs_error *err)
{
    const char *names[MAX_OBJECTIVES + MAX_BUILT_IN];
    char near[128];

    for (size_t i = 0; i < schema->n_all_objectives && i < CS_COUNT(names); i++) {
        names[i] = schema->objective[i].name;
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return CS_OK;
        }
    }
    return cs_fail(err, CS_EINVAL, "%s: no objective '%.60s'%s", cs_doc_path(schema->doc), name,
                   psa__suggest(name, names, schema->n_all_objectives, near));
}

double psa_schema_objective(const psa_schema *schema, size_t i, const void *config,
                            const void *result)
{
    psa__env env = {.config = config, .result = result, .fact = psa__facts_of(schema, 0)};
    double value = psa__run(&schema->objective[i].program, &env);

    return isfinite(value) ? value : NAN;
}

/* Value of a node without bytecode: only for violated limits. */
static double evaluate(const psa_schema *schema, const psa__node *node, const psa__env *env)
{
    double value[PSA_MAX_DIMS], acc;
    double real;

    switch (node->op) {
    case PSA__CONST:
        return node->value;
    case PSA__FIELD:
        return psa__field_get(&schema->tables->fields[node->a], env->config, (size_t)node->b);
    case PSA__FACT:
        return env->fact[node->a];
    case PSA__RESULT:
        memcpy(&real, (const char *)env->result + schema->tables->results[node->a].offset,
               sizeof real);
        return real;
    default:
        break;
    }
    if (!psa__is_associative(node->op)) {
        for (size_t i = 0; i < node->n; i++)
            value[i] = evaluate(schema, node->arg[i], env);
        return psa__apply(node->op, node->n, value);
    }
    acc = evaluate(schema, node->arg[0], env);
    for (size_t i = 1; i < node->n; i++) {
        value[0] = acc;
        value[1] = evaluate(schema, node->arg[i], env);
        acc = psa__apply(node->op, 2, value);
    }
    return acc;
}

double psa__evaluate(const psa_schema *schema, const psa__node *node, const psa__env *env)
{
    return evaluate(schema, node, env);
}

/* How far a condition is from holding: log of the excess ratio of a comparison, the sum over `and`,
 * the least over `or`, 1 where nothing can be compared. */
static double violation(const psa_schema *schema, const psa__node *node, const psa__env *env)
{
    double a, b, total = 0;

    if (evaluate(schema, node, env) != 0)
        return 0;
    if (node->op == PSA__AND) {
        for (size_t i = 0; i < node->n; i++)
            total += violation(schema, node->arg[i], env);
        return total;
    }
    if (node->op == PSA__OR) {
        total = HUGE_VAL;
        for (size_t i = 0; i < node->n; i++)
            total = fmin(total, violation(schema, node->arg[i], env));
        return total;
    }
    if (!psa__is_comparison(node->op) || node->op == PSA__NE)
        return 1;
    a = evaluate(schema, node->arg[0], env);
    b = evaluate(schema, node->arg[1], env);
    if (!(a > 0 && b > 0) || !isfinite(a) || !isfinite(b) || psa__same(a, b))
        return 1;
    return fabs(log(a / b));
}

double psa_schema_limit_violation(const psa_schema *schema, const void *config, const void *result,
                                  size_t *which)
{
    double total = 0, worst = 0;
    size_t visible = 0;
    psa__env env = {.config = config, .result = result};

    for (size_t i = 0; i < schema->n_constraints; i++) {
        const psa__constraint *c = &schema->constraint[i];
        double sum = 0;
        if (!psa__applies(schema, c))
            continue;
        for (size_t w = 0; c->limit && w < (c->n_facts == 0 ? 1 : schema->n_workloads); w++) {
            env.fact = psa__facts_of(schema, w);
            if (!psa__facts_known(schema, w, c->fact, c->n_facts))
                continue;
            for (size_t p = 0; p < c->n_parts; p++)
                if (psa__run(&c->part[p].program, &env) == 0)
                    sum += violation(schema, c->part[p].node, &env);
        }
        if (sum > worst) {
            worst = sum;
            if (which != NULL)
                *which = visible;
        }
        total += sum;
        visible++;
    }
    return total;
}
