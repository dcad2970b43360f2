/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The ask/tell environment: JSON requests and answers, one a line. */
#include "search/search_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DESIGNS = 65536, CHUNK = 1024 };

typedef struct {
    const search_problem *problem;
    const search_serve_options *options;
    search__engine engine;
    agent *agent;
    double param[AGENT_MAX_PARAMS];
    cs_rng *rng;
    int32_t *points;
    agent_score *score;
    size_t n_asked; /* designs of the open ask, in `asked` */
    int32_t *asked;
    size_t n_vars, n_knobs;
    int32_t *index; /* n_knobs */
    bool quit;
    unsigned refused; /* requests in a row */
    /* Answers to the designs being evaluated: one slot per design of `base`. */
    cs_json *answer[CHUNK];
    const int32_t *base;
} server;

/* ---- answers about trials ---- */

static cs_json *trial_json(server *s, const search_trial *trial)
{
    const search_serve_options *o = s->options;
    const search_problem *p = s->problem;
    cs_json *object, *objectives;
    char text[SEARCH_REASON_BYTES];
    const char *reason = search_trial_reason(trial, text);

    if (o->trial_json != NULL)
        return o->trial_json(o->trial_context, p, trial);
    object = cs_json_object();
    objectives = cs_json_object();
    cs_json_set(object, "trial", cs_json_int((int64_t)trial->id));
    cs_json_set(object, "status", cs_json_string(search_status_names[trial->status]));
    cs_json_set(object, "feasible", cs_json_bool(trial->status == SEARCH_FEASIBLE));
    if (reason[0] != 0)
        cs_json_set(object, "reason", cs_json_string(reason));
    for (size_t i = 0; i < p->n_objectives; i++)
        cs_json_set(objectives, psa_schema_objective_name(p->schema, p->objective[i]),
                    cs_json_real(trial->objective[i]));
    cs_json_set(object, "objectives", objectives);
    cs_json_set(object, "violation", cs_json_real(trial->violation));
    cs_json_set(object, "latency_s", cs_json_real(trial->result.latency_s));
    cs_json_set(object, "peak_memory_bytes", cs_json_real(trial->result.peak_memory_bytes));
    cs_json_set(object, "network_cost_usd", cs_json_real(trial->result.network_cost_usd));
    cs_json_set(object, "bandwidth_per_npu_bytes_per_s",
                cs_json_real(trial->result.bandwidth_per_npu_bytes_per_s));
    if (trial->status != SEARCH_INVALID)
        cs_json_set(object, "config", search__design_json(s->problem, trial->point));
    return object;
}

/* ---- requests ---- */

/* The encoded space: what {"point": [...]} is made of. */
static cs_json *variables_json(const psa_space *space)
{
    static const char *const kinds[] = {"category", "ordered", "tuple"};
    cs_json *variables = cs_json_array();

    for (size_t v = 0; v < psa_space_n_vars(space); v++) {
        cs_json *variable = cs_json_object();
        cs_json_set(variable, "name", cs_json_string(psa_space_var_name(space, v)));
        cs_json_set(variable, "kind", cs_json_string(kinds[psa_space_var_kind(space, v)]));
        cs_json_set(variable, "size", cs_json_int(psa_space_card(space, v)));
        cs_json_push(variables, variable);
    }
    return variables;
}

static cs_status do_describe(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    const search_problem *p = s->problem;
    cs_json *knobs = cs_json_array(), *objectives = cs_json_array();
    char text[64];

    (void)request, (void)err;
    cs_json_set(answer, "name", cs_json_string(psa_schema_name(p->schema)));
    cs_json_set(answer, "version", cs_json_string(cs_version()));
    cs_json_set(answer, "raw_points",
                cs_json_string(cs_u128_text(psa_space_raw_points(p->space), text)));
    cs_json_set(answer, "valid_points",
                cs_json_string(cs_u128_text(psa_space_valid_points(p->space), text)));
    for (size_t k = 0; k < s->n_knobs; k++) {
        cs_json *knob = cs_json_object(), *values = cs_json_array();
        for (size_t i = 0; i < psa_space_knob_count(p->space, k); i++)
            cs_json_push(values,
                         cs_json_string(psa_space_knob_value(p->space, k, (int32_t)i, text)));
        cs_json_set(knob, "name", cs_json_string(psa_space_knob_name(p->space, k)));
        cs_json_push(knobs, cs_json_set(knob, "values", values));
    }
    cs_json_set(answer, "knobs", knobs);
    cs_json_set(answer, "variables", variables_json(p->space));
    for (size_t i = 0; i < p->n_objectives; i++) {
        cs_json *o = cs_json_object();
        cs_json_set(o, "name",
                    cs_json_string(psa_schema_objective_name(p->schema, p->objective[i])));
        cs_json_set(o, "maximize",
                    cs_json_bool(psa_schema_objective_maximize(p->schema, p->objective[i])));
        cs_json_push(objectives, o);
    }
    cs_json_set(answer, "objectives", objectives);
    return CS_OK;
}

static cs_status do_sample(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    cs_status status = CS_OK;
    cs_json *designs = cs_json_array();
    int64_t n = 1;

    cs_json_set(answer, "designs", designs);
    if (cs_json_get(request, "n") != NULL &&
        (!cs_json_get_int(cs_json_get(request, "n"), &n) || n < 1 || n > MOST_DESIGNS))
        return cs_fail(err, CS_EINVAL, "\"n\" must be a whole number from 1 to %d", MOST_DESIGNS);
    for (int64_t i = 0; i < n; i++) {
        CS_TRY(psa_space_sample(s->problem->space, s->rng, s->points));
        cs_json_push(designs, search__design_json(s->problem, s->points));
    }
done:
    return status == CS_OK ? CS_OK : cs_fail(err, status, "the space has no valid point");
}

static void on_trial(void *context, const search_trial *trial)
{
    server *s = context;
    size_t i = s->n_vars > 0 ? (size_t)(trial->point - s->base) / s->n_vars : 0;

    s->answer[i] = trial_json(s, trial);
}

/* A design that was known before is simulated again for its answer: no trial, no budget. */
static cs_json *answer_again(server *s, const int32_t *point)
{
    search_trial trial = {.point = point};

    search_evaluate(s->problem, point, s->engine.scratch[0], &trial);
    return cs_json_set(trial_json(s, &trial), "cached", cs_json_bool(true));
}

/* Evaluates designs on all threads and appends their trials to `list` in the order asked; `score`
 * (NULL: not wanted) gets n scores. */
static cs_status evaluate(server *s, size_t n, const int32_t *points, agent_score *score,
                          cs_json *list, cs_error *err)
{
    cs_status status = CS_OK;
    agent_score own[CHUNK];

    for (size_t from = 0; from < n && !s->engine.ended; from += CHUNK) {
        const size_t m = n - from < CHUNK ? n - from : CHUNK;
        s->base = points + from * s->n_vars;
        memset(s->answer, 0, sizeof s->answer);
        status = search__engine_work(&s->engine, m, s->base, own, err);
        for (size_t i = 0; i < m; i++) {
            if (s->answer[i] == NULL && !s->engine.ended && status == CS_OK)
                s->answer[i] = answer_again(s, s->base + i * s->n_vars);
            if (s->answer[i] != NULL)
                cs_json_push(list, s->answer[i]);
        }
        CS_TRY(status);
        if (score != NULL)
            memcpy(score + from, own, m * sizeof *own);
    }
done:
    return status;
}

static cs_status do_evaluate(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_json *designs = cs_json_get(request, "designs");
    const size_t n = cs_json_size(designs);
    int32_t *points = NULL;
    cs_json *trials = cs_json_array();

    cs_json_set(answer, "trials", trials);
    if (designs == NULL || n == 0 || n > MOST_DESIGNS)
        return cs_fail(err, CS_EINVAL, "\"designs\" must list 1 to %d designs", MOST_DESIGNS);
    points = calloc(n * s->n_vars + 1, sizeof *points);
    if (points == NULL)
        return cs_fail(err, CS_ENOMEM, "serve");
    for (size_t i = 0; i < n; i++)
        CS_TRY(search__design_read(s->problem, cs_json_at(designs, i), s->index, s->rng,
                                   points + i * s->n_vars, err));
    CS_TRY(evaluate(s, n, points, NULL, trials, err));
done:
    free(points);
    return status;
}

static cs_status do_ask(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    cs_status status = CS_OK;
    cs_json *designs = cs_json_array();

    (void)request;
    cs_json_set(answer, "designs", designs);
    if (s->agent == NULL)
        return cs_fail(err, CS_EINVAL, "no agent was chosen to ask");
    if (s->n_asked > 0)
        return cs_fail(err, CS_EINVAL, "tell what the last %zu designs scored first", s->n_asked);
    CS_TRY(agent_ask(s->agent, &s->n_asked, s->asked, err));
    for (size_t i = 0; i < s->n_asked; i++)
        cs_json_push(designs, search__design_json(s->problem, s->asked + i * s->n_vars));
done:
    return status;
}

static cs_status read_score(server *s, const cs_json *result, agent_score *score, cs_error *err)
{
    const search_problem *p = s->problem;
    const cs_json *list = cs_json_get(result, "objectives");
    const cs_json *given = cs_json_get(result, "violation");
    double violation = 0.0;

    *score = (agent_score){.outcome = AGENT_FEASIBLE};
    if (given != NULL &&
        (!cs_json_get_real(given, &violation) || !isfinite(violation) || violation < 0.0))
        return cs_fail(err, CS_EINVAL, "\"violation\" must be a number, 0 or more");
    if (violation > 0.0) {
        score->outcome = AGENT_INFEASIBLE;
        score->violation = violation;
        return CS_OK;
    }
    if (cs_json_size(list) != p->n_objectives)
        return cs_fail(err, CS_EINVAL, "a result needs \"objectives\": [%zu numbers]",
                       p->n_objectives);
    for (size_t i = 0; i < p->n_objectives; i++) {
        double value;
        if (!cs_json_get_real(cs_json_at(list, i), &value) || !isfinite(value))
            return cs_fail(err, CS_EINVAL, "an objective must be a finite number");
        score->objective[i] =
            psa_schema_objective_maximize(p->schema, p->objective[i]) ? -value : value;
    }
    return CS_OK;
}

static cs_status do_tell(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    cs_status status = CS_OK;
    const cs_json *results = cs_json_get(request, "results");

    if (s->n_asked == 0)
        return cs_fail(err, CS_EINVAL, "nothing was asked");
    if (results != NULL && cs_json_size(results) != s->n_asked)
        return cs_fail(err, CS_EINVAL, "%zu designs were asked, %zu results told", s->n_asked,
                       cs_json_size(results));
    for (size_t i = 0; results != NULL && i < s->n_asked; i++)
        CS_TRY(read_score(s, cs_json_at(results, i), &s->score[i], err));
    if (results == NULL) {
        cs_json *trials = cs_json_array();
        cs_json_set(answer, "trials", trials);
        CS_TRY(evaluate(s, s->n_asked, s->asked, s->score, trials, err));
    }
    if (!s->engine.ended)
        CS_TRY(agent_tell(s->agent, s->n_asked, s->asked, s->score, err));
    s->n_asked = 0;
done:
    return status;
}

static cs_status do_best(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    const search_outcome *out = s->engine.out;

    (void)request, (void)err;
    const search_trial *best = out->has_best ? &out->best : out->n_least > 0 ? out->least : NULL;
    cs_json_set(answer, "best", best != NULL ? trial_json(s, best) : cs_json_null());
    cs_json_set(answer, "evaluations", cs_json_int((int64_t)out->unique));
    cs_json_set(answer, "cache_hits", cs_json_int((int64_t)out->cache_hits));
    return CS_OK;
}

static cs_status do_quit(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    (void)request, (void)answer, (void)err;
    s->quit = true;
    return CS_OK;
}

static const struct {
    const char *name;
    cs_status (*run)(server *s, const cs_json *request, cs_json *answer, cs_error *err);
} commands[] = {
    {"describe", do_describe}, {"sample", do_sample}, {"evaluate", do_evaluate}, {"ask", do_ask},
    {"tell", do_tell},         {"best", do_best},     {"quit", do_quit},
};

static cs_status dispatch(server *s, const cs_json *request, cs_json *answer, cs_error *err)
{
    const char *name, *names[CS_COUNT(commands)];

    if (!cs_json_get_string(cs_json_get(request, "cmd"), &name))
        return cs_fail(err, CS_EINVAL, "a request is an object with a \"cmd\"");
    for (size_t i = 0; i < CS_COUNT(commands); i++) {
        names[i] = commands[i].name;
        if (strcmp(names[i], name) == 0)
            return commands[i].run(s, request, answer, err);
    }
    const char *near = cs_nearest(name, names, CS_COUNT(commands));
    cs_fail(err, CS_EINVAL, "unknown cmd \"%.60s\"", name);
    if (near != NULL)
        cs_error_append(err, "; did you mean \"%s\"?", near);
    return CS_EINVAL;
}

/* The answer to one line, freed by the caller; NULL when out of memory.  *err says why a request
 * was refused. */
static char *answer_line(server *s, const char *line, size_t length, cs_error *err)
{
    cs_json *request = NULL, *answer = cs_json_object();
    cs_status status = cs_json_parse(line, length, &request, err);

    if (status == CS_OK)
        status = dispatch(s, request, answer, err);
    s->refused = status == CS_OK ? 0 : s->refused + 1;
    if (status != CS_OK) {
        cs_json_destroy(answer);
        answer = cs_json_object();
        cs_json_set(answer, "error", cs_json_string(err->text));
    }
    cs_json_set(answer, "ok", cs_json_bool(status == CS_OK));
    if (s->engine.ended)
        cs_json_set(answer, "ended", cs_json_string(search_stop_names[s->engine.out->stop]));
    char *text = cs_json_dump(answer, false);
    cs_json_destroy(answer);
    cs_json_destroy(request);
    return text;
}

/* ---- life ---- */

static cs_status start_agent(server *s, cs_error *err)
{
    const search_serve_options *o = s->options;
    cs_status status = CS_OK;

    if (o->agent == NULL)
        return CS_OK;
    if (o->agent->raw)
        return cs_fail(err, CS_EINVAL, "agent %s is for comparison only and cannot be served",
                       o->agent->name);
    CS_TRY(agent_params(o->agent, o->params, o->n_params, s->param, err));
    const size_t batch = agent_batch(o->agent, s->param);
    s->asked = calloc(batch * s->n_vars + 1, sizeof *s->asked);
    s->score = calloc(batch, sizeof *s->score);
    if (s->asked == NULL || s->score == NULL)
        return cs_fail(err, CS_ENOMEM, "serve");
    agent_setup setup = {.space = s->problem->space,
                         .seed = o->seed,
                         .param = s->param,
                         .n_objectives = s->problem->n_objectives,
                         .budget = s->engine.budget,
                         .lookup = search__engine_lookup,
                         .lookup_context = &s->engine};
    CS_TRY(agent_create(o->agent, &setup, &s->agent, err));
done:
    return status;
}

static cs_status start(server *s, search_outcome *out, cs_error *err)
{
    const search_serve_options *o = s->options;
    search__engine *e = &s->engine;
    cs_status status = CS_OK;

    s->n_vars = psa_space_n_vars(s->problem->space);
    s->n_knobs = psa_space_n_knobs(s->problem->space);
    CS_TRY(search__engine_init(e, s->problem, out, o->jobs, CHUNK, err));
    e->budget = o->evaluations > 0 ? o->evaluations : UINT64_MAX;
    e->deadline_s = o->timeout_s > 0 ? e->start_s + o->timeout_s : INFINITY;
    e->stop = o->stop;
    e->raw = true;
    e->agent_name = "serve";
    e->on_trial = on_trial;
    e->context = s;
    s->rng = cs_rng_create(o->seed, 0, 0);
    s->points = calloc(s->n_vars + 1, sizeof *s->points);
    s->index = calloc(s->n_knobs + 1, sizeof *s->index);
    if (s->rng == NULL || s->points == NULL || s->index == NULL)
        return cs_fail(err, CS_ENOMEM, "serve");
    CS_TRY(start_agent(s, err));
    if (o->study_path != NULL) {
        search_study_setup setup = {
            .agent = "serve", .params = "", .seed = o->seed, .evaluations = o->evaluations};
        CS_TRY(search_study_create(o->study_path, s->problem, &setup, &e->study, err));
    }
done:
    return status;
}

static bool goes_on(server *s)
{
    search__engine *e = &s->engine;

    if (e->stop != NULL && *e->stop != 0)
        search__engine_end(e, SEARCH_SIGNAL);
    if (search__now_s() >= e->deadline_s)
        search__engine_end(e, SEARCH_TIMEOUT);
    return !s->quit && !e->ended;
}

static cs_status converse(server *s, const search_channel *channel, cs_error *err)
{
    const unsigned most = s->options->most_refused;
    const char *line;
    size_t length;

    while (goes_on(s) && channel->read(channel->context, &line, &length)) {
        cs_error why = {""};
        char *text = answer_line(s, line, length, &why);
        if (text == NULL)
            return cs_fail(err, CS_ENOMEM, "serve");
        bool heard = channel->write(channel->context, text, strlen(text));
        free(text);
        if (!heard)
            break;
        if (most > 0 && s->refused >= most)
            return cs_fail(err, CS_EINVAL, "%u requests in a row were refused, the last: %.500s",
                           most, why.text);
    }
    (void)goes_on(s); /* a wait for a line ends by a signal or in time */
    return CS_OK;
}

cs_status search_serve(const search_problem *problem, const search_serve_options *options,
                       const search_channel *channel, search_outcome *out, cs_error *err)
{
    cs_status status = CS_OK;
    server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return cs_fail(err, CS_ENOMEM, "serve");
    *out = (search_outcome){.bound = NAN, .gap = NAN};
    s->problem = problem;
    s->options = options;
    CS_TRY(start(s, out, err));
    CS_TRY(converse(s, channel, err));
    if (s->engine.study != NULL)
        CS_TRY(search__study_commit(s->engine.study, true, err));
    out->wall_s = search__now_s() - s->engine.start_s;
done:
    if (status != CS_OK || out->unique == 0) {
        search__study_abandon(s->engine.study);
        s->engine.study = NULL;
    }
    agent_destroy(s->agent);
    search__engine_fini(&s->engine);
    cs_rng_destroy(s->rng);
    free(s->points);
    free(s->index);
    free(s->asked);
    free(s->score);
    free(s);
    if (status != CS_OK)
        search_outcome_fini(out);
    return status;
}
