/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading a suite file. */
#include "search/suite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_AGENTS = 64, MOST_PROBLEMS = 256, MOST_PAIRS = 64, MOST_SEEDS = 1000 };
#define MOST_EVALUATIONS 100000000

static const char *const root_keys[] = {"suite",     "name",     "evaluations", "seeds",
                                        "agents",    "problems", "lottery",     "stop_within",
                                        "reference", "uniform",  "pairs"};
static const char *const lottery_keys[] = {"agents", "configs"};
static const char *const reference_keys[] = {"agents", "evaluations", "seeds"};
static const char *const agent_keys[] = {"name", "label", "params"};
static const char *const problem_keys[] = {"psa", "label",   "objective", "stacks",
                                           "fix", "optimum", "uniform"};

void search__suite_fini(search__suite *suite)
{
    cs_doc_destroy(suite->doc);
    cs_arena_destroy(suite->arena);
    *suite = (search__suite){0};
}

static cs_status no_memory(cs_error *err)
{
    return cs_fail(err, CS_ENOMEM, "suite");
}

static cs_status require_list(search__suite *s, const cs_node *map, const char *key, size_t most,
                              const cs_node **list, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(cs_node_require(s->doc, map, key, list, err));
    CS_TRY(cs_node_expect(s->doc, *list, CS_DOC_LIST, err));
    if ((*list)->n == 0 || (*list)->n > most)
        status = cs_doc_fail(s->doc, *list, err, "expected 1 to %zu entries", most);
done:
    return status;
}

static cs_status require_count(search__suite *s, const cs_node *map, const char *key, int64_t most,
                               uint64_t *out, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *node;
    int64_t number;

    CS_TRY(cs_node_require(s->doc, map, key, &node, err));
    CS_TRY(cs_node_int(s->doc, node, 1, most, &number, err));
    *out = (uint64_t)number;
done:
    return status;
}

/* A list of texts (absent: none). */
static cs_status read_texts(search__suite *s, const cs_node *list, const char ***out, size_t *n,
                            cs_error *err)
{
    cs_status status = CS_OK;

    *n = 0;
    if (list == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(s->doc, list, CS_DOC_LIST, err));
    *out = cs_arena_alloc(s->arena, (list->n + 1) * sizeof **out);
    if (*out == NULL)
        return no_memory(err);
    for (size_t i = 0; i < list->n; i++)
        CS_TRY(cs_node_string(s->doc, list->item[i], &(*out)[i], err));
    *n = list->n;
done:
    return status;
}

static cs_status read_params(search__suite *s, const cs_node *map, search__suite_agent *agent_,
                             cs_error *err)
{
    cs_status status = CS_OK;

    if (map == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(s->doc, map, CS_DOC_MAP, err));
    agent_->params = cs_arena_alloc(s->arena, (map->n + 1) * sizeof *agent_->params);
    if (agent_->params == NULL)
        return no_memory(err);
    for (size_t i = 0; i < map->n; i++) {
        const char *value;
        CS_TRY(cs_node_string(s->doc, map->item[i], &value, err));
        agent_->params[i] = cs_arena_printf(s->arena, "%s=%s", map->key[i]->text, value);
        if (agent_->params[i] == NULL)
            return no_memory(err);
    }
    agent_->n_params = map->n;
done:
    return status;
}

static cs_status read_agent(search__suite *s, const cs_node *node, search__suite_agent *out,
                            cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *name = node;
    const char *text;
    double param[AGENT_MAX_PARAMS];
    cs_error inner = {""};

    if (node->kind == CS_DOC_MAP) {
        CS_TRY(cs_node_check_keys(s->doc, node, agent_keys, CS_COUNT(agent_keys), err));
        CS_TRY(cs_node_require(s->doc, node, "name", &name, err));
        CS_TRY(read_params(s, cs_node_get(node, "params"), out, err));
    }
    CS_TRY(cs_node_string(s->doc, name, &text, err));
    if (agent_find(text, &out->type, &inner) != CS_OK ||
        agent_params(out->type, out->params, out->n_params, param, &inner) != CS_OK)
        return cs_doc_fail(s->doc, node, err, "%s", inner.text);
    out->label = text;
    if (cs_node_get(node, "label") != NULL)
        CS_TRY(cs_node_string(s->doc, cs_node_get(node, "label"), &out->label, err));
    if (strcmp(out->label, SEARCH__EXHAUSTIVE_LABEL) == 0 ||
        strcmp(out->label, SEARCH__UNIFORM_LABEL) == 0)
        status = cs_doc_fail(s->doc, node, err, "the label \"%s\" is taken", out->label);
done:
    return status;
}

/* Fails where one of `n` agents has the label of another one, at `node`. */
static cs_status check_label(search__suite *s, const cs_node *node, const search__suite_agent *list,
                             size_t n, const char *label, cs_error *err)
{
    for (size_t a = 0; a < n; a++)
        if (strcmp(list[a].label, label) == 0)
            return cs_doc_fail(s->doc, node, err, "two agents are labelled \"%s\"", label);
    return CS_OK;
}

/* Agents of a list, each labelled differently. */
static cs_status read_agents(search__suite *s, const cs_node *list, search__suite_agent *out,
                             size_t *n, cs_error *err)
{
    cs_status status = CS_OK;

    for (*n = 0; *n < list->n; ++*n) {
        CS_TRY(read_agent(s, list->item[*n], &out[*n], err));
        CS_TRY(check_label(s, list->item[*n], out, *n, out[*n].label, err));
    }
done:
    return status;
}

static cs_status read_optimum(search__suite *s, const cs_node *node, search__suite_problem *out,
                              cs_error *err)
{
    cs_status status = CS_OK;

    out->optimum = SEARCH__BEST_KNOWN;
    if (node == NULL || (node->kind == CS_DOC_SCALAR && strcmp(node->text, "best_known") == 0))
        return CS_OK;
    if (node->kind == CS_DOC_SCALAR && strcmp(node->text, "exhaustive") == 0) {
        out->optimum = SEARCH__EXHAUSTIVE;
        return CS_OK;
    }
    CS_TRY(cs_node_real(s->doc, node, &out->stated, err));
    out->optimum = SEARCH__STATED;
    if (out->stated == 0.0)
        status = cs_doc_fail(s->doc, node, err, "an optimum of 0 gives no relative regret");
done:
    return status;
}

static cs_status read_problem(search__suite *s, const cs_node *node, search__suite_problem *out,
                              cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *psa, *label = cs_node_get(node, "label");
    const char *file;

    CS_TRY(cs_node_expect(s->doc, node, CS_DOC_MAP, err));
    CS_TRY(cs_node_check_keys(s->doc, node, problem_keys, CS_COUNT(problem_keys), err));
    CS_TRY(cs_node_require(s->doc, node, "psa", &psa, err));
    CS_TRY(cs_node_string(s->doc, psa, &file, err));
    out->psa = cs_doc_resolve(s->doc, file);
    if (out->psa == NULL)
        return no_memory(err);
    if (cs_node_get(node, "objective") != NULL)
        CS_TRY(cs_node_string(s->doc, cs_node_get(node, "objective"), &out->objective, err));
    CS_TRY(read_texts(s, cs_node_get(node, "stacks"), &out->stacks, &out->n_stacks, err));
    CS_TRY(read_texts(s, cs_node_get(node, "fix"), &out->fixes, &out->n_fixes, err));
    CS_TRY(read_optimum(s, cs_node_get(node, "optimum"), out, err));
    if (cs_node_get(node, "uniform") != NULL)
        CS_TRY(require_count(s, node, "uniform", MOST_EVALUATIONS, &out->uniform_draws, err));
    if (label != NULL) {
        CS_TRY(cs_node_string(s->doc, label, &out->label, err));
    } else {
        const char *slash = strrchr(file, '/');
        out->label = cs_arena_printf(s->arena, "%s %s", slash != NULL ? slash + 1 : file,
                                     out->objective != NULL ? out->objective : "");
        if (out->label == NULL)
            return no_memory(err);
    }
    for (const search__suite_problem *p = s->problems; p < out; p++)
        if (strcmp(p->label, out->label) == 0)
            return cs_doc_fail(s->doc, node, err, "two problems are labelled \"%s\"", p->label);
done:
    return status;
}

/* ---- lottery: random settings of an agent's parameters ---- */

/* Default times a log-uniform factor in [1/3, 3], inside the accepted range; whole defaults stay
 * whole.  How many designs are asked at once is no matter of luck: batch and chains are left alone.
 */
static double drawn(const agent_param *p, cs_rng *rng)
{
    double value = p->value * pow(3.0, 2.0 * cs_rng_uniform(rng) - 1.0);

    if (p->value == floor(p->value) && p->value > 1.0)
        value = floor(value + 0.5);
    return fmin(fmax(value, p->min), p->max);
}

static cs_status draw_params(search__suite *s, search__suite_agent *a, uint64_t config,
                             cs_error *err)
{
    cs_rng *rng = cs_rng_create(1, cs_hash(CS_HASH_START, a->label, strlen(a->label)), config);
    cs_status status = CS_OK;
    char number[32];

    a->params = cs_arena_alloc(s->arena, AGENT_MAX_PARAMS * sizeof *a->params);
    a->label = cs_arena_printf(s->arena, "%s~%llu", a->label, (unsigned long long)config);
    if (rng == NULL || a->params == NULL || a->label == NULL) {
        status = no_memory(err);
        goto done;
    }
    for (const agent_param *p = a->type->params; p->name != NULL; p++) {
        if (strcmp(p->name, "batch") == 0 || strcmp(p->name, "chains") == 0)
            continue;
        const char *text =
            cs_arena_printf(s->arena, "%s=%s", p->name, cs_double_text(drawn(p, rng), number));
        if (text == NULL) {
            status = no_memory(err);
            goto done;
        }
        a->params[a->n_params++] = text;
    }
done:
    cs_rng_destroy(rng);
    return status;
}

/* Room for the suite's agents and those of the lottery. */
static cs_status read_lottery(search__suite *s, const cs_node *lottery, size_t room, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *agents, *node;
    int64_t configs;

    if (lottery == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(s->doc, lottery, CS_DOC_MAP, err));
    CS_TRY(cs_node_check_keys(s->doc, lottery, lottery_keys, CS_COUNT(lottery_keys), err));
    CS_TRY(cs_node_require(s->doc, lottery, "configs", &node, err));
    CS_TRY(cs_node_int(s->doc, node, 1, MOST_AGENTS, &configs, err));
    CS_TRY(require_list(s, lottery, "agents", MOST_AGENTS, &agents, err));
    if ((size_t)configs * agents->n > room - s->n_agents)
        return cs_doc_fail(s->doc, lottery, err, "more than %zu agents with the lottery's", room);
    for (size_t i = 0; i < agents->n; i++)
        for (int64_t c = 1; c <= configs; c++) {
            search__suite_agent *a = &s->agents[s->n_agents];
            const char *name;
            cs_error inner = {""};
            CS_TRY(cs_node_string(s->doc, agents->item[i], &name, err));
            if (agent_find(name, &a->type, &inner) != CS_OK)
                return cs_doc_fail(s->doc, agents->item[i], err, "%s", inner.text);
            a->label = a->type->name;
            CS_TRY(draw_params(s, a, (uint64_t)c, err));
            CS_TRY(check_label(s, agents->item[i], s->agents, s->n_agents, a->label, err));
            s->n_agents++;
        }
done:
    return status;
}

/* ---- what a suite may have besides ---- */

static cs_status read_reference(search__suite *s, const cs_node *map, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *agents;

    if (map == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(s->doc, map, CS_DOC_MAP, err));
    CS_TRY(cs_node_check_keys(s->doc, map, reference_keys, CS_COUNT(reference_keys), err));
    CS_TRY(require_list(s, map, "agents", MOST_AGENTS, &agents, err));
    CS_TRY(require_count(s, map, "evaluations", MOST_EVALUATIONS, &s->reference_evaluations, err));
    CS_TRY(require_count(s, map, "seeds", MOST_SEEDS, &s->reference_seeds, err));
    if (s->reference_evaluations <= s->evaluations)
        return cs_doc_fail(s->doc, map, err, "reference runs must be longer than the others");
    s->references = cs_arena_alloc(s->arena, agents->n * sizeof *s->references);
    if (s->references == NULL)
        return no_memory(err);
    CS_TRY(read_agents(s, agents, s->references, &s->n_references, err));
done:
    return status;
}

static cs_status read_pairs(search__suite *s, const cs_node *list, cs_error *err)
{
    cs_status status = CS_OK;
    const char **name;
    size_t n;

    if (list == NULL)
        return CS_OK;
    CS_TRY(cs_node_expect(s->doc, list, CS_DOC_LIST, err));
    if (list->n > MOST_PAIRS)
        return cs_doc_fail(s->doc, list, err, "more than %d pairs", MOST_PAIRS);
    s->pairs = cs_arena_alloc(s->arena, (list->n + 1) * sizeof *s->pairs);
    if (s->pairs == NULL)
        return no_memory(err);
    for (; s->n_pairs < list->n; s->n_pairs++) {
        const cs_node *pair = list->item[s->n_pairs];
        CS_TRY(read_texts(s, pair, &name, &n, err));
        if (n != 2 || strcmp(name[0], name[1]) == 0)
            return cs_doc_fail(s->doc, pair, err, "expected two different agents");
        s->pairs[s->n_pairs] = (search__suite_pair){name[0], name[1]};
    }
done:
    return status;
}

/* A run can only stop near an optimum that is known before. */
static cs_status read_stop(search__suite *s, const cs_node *node, cs_error *err)
{
    cs_status status = CS_OK;

    if (node == NULL)
        return CS_OK;
    CS_TRY(cs_node_real(s->doc, node, &s->stop_within, err));
    if (!(s->stop_within > 0.0 && s->stop_within < 1.0))
        return cs_doc_fail(s->doc, node, err, "expected a regret between 0 and 1");
    for (size_t i = 0; i < s->n_problems; i++)
        if (s->problems[i].optimum == SEARCH__BEST_KNOWN && s->n_references == 0)
            return cs_doc_fail(s->doc, node, err,
                               "\"%s\" has no optimum to stop at: state one, ask for an exhaustive "
                               "search, or give reference runs",
                               s->problems[i].label);
done:
    return status;
}

static cs_status read_options(search__suite *s, const cs_node *root, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(read_lottery(s, cs_node_get(root, "lottery"), MOST_AGENTS, err));
    CS_TRY(read_reference(s, cs_node_get(root, "reference"), err));
    CS_TRY(read_pairs(s, cs_node_get(root, "pairs"), err));
    CS_TRY(read_stop(s, cs_node_get(root, "stop_within"), err));
    if (cs_node_get(root, "uniform") != NULL)
        CS_TRY(require_count(s, root, "uniform", MOST_EVALUATIONS, &s->uniform_draws, err));
done:
    return status;
}

static cs_status read_suite(search__suite *s, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_node *root = cs_doc_root(s->doc), *node, *agents, *problems;
    uint64_t version;

    CS_TRY(cs_node_expect(s->doc, root, CS_DOC_MAP, err));
    CS_TRY(cs_node_check_keys(s->doc, root, root_keys, CS_COUNT(root_keys), err));
    CS_TRY(require_count(s, root, "suite", 1, &version, err));
    CS_TRY(cs_node_require(s->doc, root, "name", &node, err));
    CS_TRY(cs_node_string(s->doc, node, &s->name, err));
    CS_TRY(require_count(s, root, "evaluations", MOST_EVALUATIONS, &s->evaluations, err));
    CS_TRY(require_count(s, root, "seeds", MOST_SEEDS, &s->seeds, err));
    CS_TRY(require_list(s, root, "agents", MOST_AGENTS, &agents, err));
    CS_TRY(require_list(s, root, "problems", MOST_PROBLEMS, &problems, err));
    s->agents = cs_arena_alloc(s->arena, MOST_AGENTS * sizeof *s->agents);
    s->problems = cs_arena_alloc(s->arena, problems->n * sizeof *s->problems);
    if (s->agents == NULL || s->problems == NULL)
        return no_memory(err);
    CS_TRY(read_agents(s, agents, s->agents, &s->n_agents, err));
    s->n_listed = s->n_agents;
    for (; s->n_problems < problems->n; s->n_problems++)
        CS_TRY(read_problem(s, problems->item[s->n_problems], &s->problems[s->n_problems], err));
    CS_TRY(read_options(s, root, err));
done:
    return status;
}

cs_status search__suite_load(const char *path, search__suite *out, cs_error *err)
{
    cs_status status = CS_OK;
    search__suite s = {.arena = cs_arena_create(0)};

    if (s.arena == NULL)
        return no_memory(err);
    CS_TRY(cs_doc_load(path, &s.doc, err));
    CS_TRY(read_suite(&s, err));
    *out = s;
    s = (search__suite){0};
done:
    search__suite_fini(&s);
    return status;
}
