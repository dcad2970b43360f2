/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Conditions -> a network of variables and tables.  A condition over few combinations is one table.
 * A larger one is taken apart: each inner result becomes an auxiliary variable that is a function
 * of two others, and an associative operator becomes a chain of partial results, so that a product
 * of eight knobs is tables of three variables. */
#include "psa/network_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

cs_status psa__too_large(psa__build *build, int32_t origin, const char *what)
{
    const psa_schema *schema = build->schema;
    const psa__constraint *c = origin < 0 ? NULL : &schema->constraint[origin];

    if (c == NULL)
        return cs_fail(build->err, CS_ESCHEMA, "%s: the conditions ('when') need %s",
                       cs_doc_path(schema->doc), what);
    if (c->node == NULL)
        return cs_fail(build->err, CS_ESCHEMA, "%s: the implied constraint '%s' needs %s",
                       cs_doc_path(schema->doc), c->text, what);
    return cs_doc_fail(schema->doc, c->node, build->err, "the constraint '%.200s' needs %s",
                       c->text, what);
}

cs_status psa__table_too_large(psa__build *build, int32_t origin)
{
    return psa__too_large(build, origin,
                          "a table of more than 10,000,000 entries; fewer values or a simpler "
                          "condition would do");
}

cs_status psa__count_work(psa__build *build, size_t n, int32_t origin)
{
    build->work += n;
    if (build->work > PSA__MAX_WORK)
        return psa__too_large(build, origin,
                              "more than 100,000,000 combinations together with those before it");
    return CS_OK;
}

int32_t psa__add_net(psa__build *build, int32_t card)
{
    psa_space *space = build->space;
    psa__net *net;

    if (space->n_nets == PSA__MAX_NETS ||
        !psa__grow(space->arena, (void **)&space->net, &build->nets_capacity, space->n_nets,
                   sizeof *space->net))
        return -1;
    net = &space->net[space->n_nets];
    memset(net, 0, sizeof *net);
    net->card = card;
    net->raw = net->tuple = net->bucket = net->var = -1;
    return (int32_t)space->n_nets++;
}

cs_status psa__add_factor(psa__build *build, const psa__factor *factor)
{
    if (!psa__grow(build->arena, (void **)&build->factor, &build->factors_capacity,
                   build->n_factors, sizeof *build->factor))
        return psa__no_memory(build);
    build->factor[build->n_factors++] = *factor;
    return CS_OK;
}

cs_status psa__too_many_nets(psa__build *build, int32_t origin)
{
    if (build->space->n_nets >= PSA__MAX_NETS)
        return psa__too_large(build, origin, "more than 1,024 variables and partial results");
    return psa__no_memory(build);
}

/* Net of a tuple: its values are the solutions. */
static cs_status net_of_tuple(psa__build *build, int32_t t, int32_t *out)
{
    if (build->tuple_net[t] < 0) {
        build->tuple_net[t] = psa__add_net(build, (int32_t)build->tuple[t].n_solutions);
        if (build->tuple_net[t] < 0)
            return psa__too_many_nets(build, build->tuple[t].origin);
        build->space->net[build->tuple_net[t]].tuple = t;
    }
    *out = build->tuple_net[t];
    return CS_OK;
}

/* A member of a tuple is a function of it. */
static cs_status link_member(psa__build *build, int32_t raw, int32_t net)
{
    cs_status status;
    psa_space *space = build->space;
    const psa__raw *r = &space->raw[raw];
    int32_t t = build->tuple_of[raw], tuple_net = -1;
    const psa__tuple *tuple = &build->tuple[t];
    psa__factor factor = {.n_scope = 2, .origin = tuple->origin, .bucket = -1};
    int32_t *position = cs_arena_alloc(build->arena, r->n_values * sizeof *position);
    int32_t *table = cs_arena_alloc(space->arena, (tuple->n_solutions + 1) * sizeof *table);
    size_t m = 0;

    CS_TRY(net_of_tuple(build, t, &tuple_net));
    factor.scope = cs_arena_alloc(build->arena, 2 * sizeof *factor.scope);
    factor.row = cs_arena_alloc(build->arena, (tuple->n_solutions + 1) * 2 * sizeof *factor.row);
    if (position == NULL || table == NULL || factor.scope == NULL || factor.row == NULL)
        return psa__no_memory(build);
    while (tuple->member[m] != raw)
        m++;
    for (size_t k = 0; k < r->n; k++)
        position[r->domain[k]] = (int32_t)k;
    for (size_t s = 0; s < tuple->n_solutions; s++) {
        table[s] = position[tuple->solution[s * tuple->n + m]];
        factor.row[2 * s] = (int32_t)s;
        factor.row[2 * s + 1] = table[s];
    }
    factor.n_rows = tuple->n_solutions;
    factor.scope[0] = tuple_net;
    factor.scope[1] = net;
    space->net[net].n_args = 1;
    space->net[net].arg[0] = tuple_net;
    space->net[net].table = table;
    CS_TRY(psa__add_factor(build, &factor));
done:
    return status;
}

static cs_status net_of_raw(psa__build *build, int32_t raw, int32_t origin, int32_t *out)
{
    cs_status status = CS_OK;
    psa_space *space = build->space;
    const psa__raw *r = &space->raw[raw];
    int32_t net = build->raw_net[raw], tuple_net;
    double *value;

    if (net >= 0) {
        *out = net;
        return CS_OK;
    }
    if (build->tuple_of[raw] >= 0)
        CS_TRY(net_of_tuple(build, build->tuple_of[raw], &tuple_net));
    net = psa__add_net(build, (int32_t)r->n);
    value = cs_arena_alloc(space->arena, r->n * sizeof *value);
    if (net < 0 || value == NULL)
        return psa__too_many_nets(build, origin);
    for (size_t k = 0; k < r->n; k++)
        value[k] = r->value[r->domain[k]];
    space->net[net].value = value;
    space->net[net].raw = raw;
    build->raw_net[raw] = net;
    *out = net;
    if (build->tuple_of[raw] >= 0)
        CS_TRY(link_member(build, raw, net));
done:
    return status;
}

static cs_status reduce(psa__build *build, const psa__node *node, int32_t origin,
                        psa__operand *out);

static cs_status reduce_all(psa__build *build, const psa__node *node, int32_t origin,
                            psa__operand **out)
{
    cs_status status = CS_OK;

    *out = cs_arena_alloc(build->arena, (node->n + 1) * sizeof **out);
    if (*out == NULL)
        return psa__no_memory(build);
    for (size_t i = 0; i < node->n; i++)
        CS_TRY(reduce(build, node->arg[i], origin, &(*out)[i]));
done:
    return status;
}

/* A node over few combinations of raws, tabulated as it is; false: take it apart. */
static cs_status direct_step(psa__build *build, const psa__node *node, int32_t origin, psa__step *s,
                             bool *direct)
{
    cs_status status = CS_OK;
    int32_t *list = cs_arena_alloc(build->arena, (build->space->n_raws + 1) * sizeof *list);
    psa__program *program = cs_arena_alloc(build->arena, sizeof *program);
    size_t n;
    double combinations;

    if (list == NULL || program == NULL)
        return psa__no_memory(build);
    n = psa__scope(build, node, list);
    combinations = psa__combinations(build, list, n);
    *direct = n <= PSA__MAX_TUPLE &&
              (combinations <= PSA__DIRECT || n == 1 || (n == 2 && combinations <= PSA__MAX_ROWS));
    if (!*direct)
        return CS_OK;
    if (!psa__compile(build->arena, build->schema->tables, node, program))
        return psa__no_memory(build);
    s->program = program;
    s->origin = origin;
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        s->raw[i] = list[i];
        CS_TRY(net_of_raw(build, list[i], origin, &s->arg[i].net));
    }
done:
    return status;
}

static cs_status reduce_inner(psa__build *build, const psa__node *node, int32_t origin,
                              int32_t *out)
{
    cs_status status;
    psa__step s = {.op = node->op, .origin = origin, .n = node->n};
    psa__chain c = {.op = node->op, .origin = origin, .n = node->n};
    bool direct = false;
    psa__operand *arg;

    CS_TRY(direct_step(build, node, origin, &s, &direct));
    if (direct)
        return psa__function_of(build, &s, out);
    CS_TRY(reduce_all(build, node, origin, &arg));
    if (psa__is_associative(node->op)) {
        c.arg = arg;
        return psa__run_chain(build, &c, out);
    }
    memcpy(s.arg, arg, node->n * sizeof *arg);
    CS_TRY(psa__function_of(build, &s, out));
done:
    return status;
}

/* The net that holds a node's value; the same node is reduced once. */
static cs_status reduce(psa__build *build, const psa__node *node, int32_t origin, psa__operand *out)
{
    cs_status status = CS_OK;

    out->net = -1;
    out->constant = node->value;
    if (node->op == PSA__CONST)
        return CS_OK;
    if (node->op == PSA__VAR)
        return net_of_raw(build, node->a, origin, &out->net);
    for (size_t i = 0; i < build->n_known; i++)
        if (build->known[i].node == node) {
            out->net = build->known[i].net;
            return CS_OK;
        }
    CS_TRY(reduce_inner(build, node, origin, &out->net));
    if (!psa__grow(build->arena, (void **)&build->known, &build->known_capacity, build->n_known,
                   sizeof *build->known))
        return psa__no_memory(build);
    build->known[build->n_known].node = node;
    build->known[build->n_known++].net = out->net;
done:
    return status;
}

/* `chain compare constant`: pruned from both ends. */
static bool is_bounded(const psa__node *node, psa__chain *c)
{
    for (int side = 0; side < 2; side++) {
        const psa__node *inner, *constant;
        if (!psa__is_comparison(node->op))
            return false;
        inner = node->arg[side];
        constant = node->arg[1 - side];
        if (!psa__is_associative(inner->op) || constant->op != PSA__CONST)
            continue;
        c->op = inner->op;
        c->n = inner->n;
        c->bounded = true;
        c->swapped = side == 1;
        c->compare = node->op;
        c->bound = constant->value;
        return true;
    }
    return false;
}

static cs_status require_node(psa__build *build, const psa__node *node, int32_t origin)
{
    cs_status status;
    psa__step s = {.op = node->op, .origin = origin, .n = node->n};
    psa__chain c = {.origin = origin};
    bool direct = false;
    psa__operand *arg;
    int32_t unused;

    CS_TRY(direct_step(build, node, origin, &s, &direct));
    if (direct)
        return psa__require_step(build, &s);
    if (is_bounded(node, &c)) {
        const psa__node *inner = node->arg[c.swapped ? 1 : 0];
        CS_TRY(reduce_all(build, inner, origin, &c.arg));
        return psa__run_chain(build, &c, &unused);
    }
    CS_TRY(reduce_all(build, node, origin, &arg));
    if (psa__is_associative(node->op)) {
        c.op = node->op;
        c.n = node->n;
        c.arg = arg;
        c.bounded = true;
        c.compare = PSA__NE;
        return psa__run_chain(build, &c, &unused);
    }
    memcpy(s.arg, arg, node->n * sizeof *arg);
    CS_TRY(psa__require_step(build, &s));
done:
    return status;
}

cs_status psa__build_network(psa__build *build)
{
    cs_status status = CS_OK;
    psa_space *space = build->space;
    int32_t net;

    for (size_t v = 0; v < space->n_vars; v++) {
        psa__var *var = &space->var[v];
        if (var->n_members == 0)
            continue;
        if (var->kind == PSA_VAR_TUPLE)
            CS_TRY(net_of_tuple(build, build->tuple_of[var->member[0]], &net));
        else
            CS_TRY(net_of_raw(build, var->member[0], -1, &net));
        space->net[net].var = (int32_t)v;
        var->net = (size_t)net;
    }
    for (size_t i = 0; i < build->n_conditions && !build->unsatisfiable; i++)
        CS_TRY(require_node(build, build->condition[i].node, build->condition[i].origin));
done:
    return status;
}
