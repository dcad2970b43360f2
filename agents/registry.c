/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The agents by name, their parameters, and the life of one agent. */
#include "agents/agents_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const agent_type *const agent_types[] = {
    &agent__auto,        &agent__local,
    &agent__random,      &agent__walk,
    &agent__genetic,     &agent__annealing,
    &agent__tpe,         &agent__ant_colony,
    &agent__bayesian,    &agent__nsga2,
    &agent__exhaustive,  &agent__random_raw,
    &agent__genetic_raw, NULL,
};

struct agent {
    const agent_type *type;
    void *state;
    size_t batch;
};

cs_status agent_find(const char *name, const agent_type **out, cs_error *err)
{
    const char *names[64] = {NULL};
    size_t n = 0;

    for (; agent_types[n] != NULL; n++) {
        if (strcmp(agent_types[n]->name, name) == 0) {
            *out = agent_types[n];
            return CS_OK;
        }
        names[n] = agent_types[n]->name;
    }
    const char *near = cs_nearest(name, names, n);
    cs_fail(err, CS_EINVAL, "unknown agent \"%s\"", name);
    if (near != NULL)
        cs_error_append(err, "; did you mean \"%s\"?", near);
    cs_error_append(err, " (agents:");
    for (size_t i = 0; i < n; i++)
        cs_error_append(err, " %s", names[i]);
    cs_error_append(err, ")");
    return CS_EINVAL;
}

static cs_status unknown_param(const agent_type *type, const char *word, cs_error *err)
{
    const char *names[AGENT_MAX_PARAMS] = {NULL};
    size_t n = 0;

    for (const agent_param *p = type->params; p->name != NULL && n < AGENT_MAX_PARAMS; p++)
        names[n++] = p->name;
    const char *near = cs_nearest(word, names, n);
    cs_fail(err, CS_EINVAL, "agent %s has no parameter \"%s\"", type->name, word);
    if (near != NULL)
        cs_error_append(err, "; did you mean \"%s\"?", near);
    cs_error_append(err, " (parameters:");
    for (size_t i = 0; i < n; i++)
        cs_error_append(err, " %s", names[i]);
    cs_error_append(err, ")");
    return CS_EINVAL;
}

static cs_status assign_param(const agent_type *type, const char *text, double *param,
                              cs_error *err)
{
    const char *equals = strchr(text, '=');
    char word[64];
    size_t i = 0;

    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof word)
        return cs_fail(err, CS_EINVAL, "expected name=value for agent %s, not \"%.80s\"",
                       type->name, text);
    memcpy(word, text, (size_t)(equals - text));
    word[equals - text] = 0;
    while (type->params[i].name != NULL && strcmp(type->params[i].name, word) != 0)
        i++;
    const agent_param *p = &type->params[i];
    if (p->name == NULL)
        return unknown_param(type, word, err);

    char *end = NULL;
    double value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end != 0 || !isfinite(value))
        return cs_fail(err, CS_EINVAL, "parameter %s of agent %s needs a number, not \"%.80s\"",
                       word, type->name, equals + 1);
    if (value < p->min || value > p->max)
        return cs_fail(err, CS_EINVAL, "parameter %s of agent %s must lie in [%g, %g], not %g",
                       word, type->name, p->min, p->max, value);
    param[i] = value;
    return CS_OK;
}

cs_status agent_params(const agent_type *type, const char *const *assignments, size_t n,
                       double param[AGENT_MAX_PARAMS], cs_error *err)
{
    size_t count = 0;

    for (; type->params[count].name != NULL; count++)
        param[count] = type->params[count].value;
    for (size_t i = 0; i < n; i++) {
        cs_status status = assign_param(type, assignments[i], param, err);
        if (status != CS_OK)
            return status;
    }
    return CS_OK;
}

const char *agent_params_text(const agent_type *type, const double *param, char *text, size_t size)
{
    size_t used = 0;

    if (size > 0)
        text[0] = 0;
    for (size_t i = 0; type->params[i].name != NULL && used < size; i++) {
        char number[32];
        int n = snprintf(text + used, size - used, "%s%s=%s", i > 0 ? " " : "",
                         type->params[i].name, cs_double_text(param[i], number));
        if (n < 0)
            break;
        used += (size_t)n;
    }
    return text;
}

size_t agent_batch(const agent_type *type, const double *param)
{
    double batch = 1.0;

    for (size_t i = 0; type->params[i].name != NULL; i++)
        if (strcmp(type->params[i].name, "batch") == 0 ||
            strcmp(type->params[i].name, "chains") == 0)
            batch *= floor(param[i]);
    return batch < 1.0 ? 1 : (size_t)batch;
}

cs_status agent_create(const agent_type *type, const agent_setup *setup, agent **out, cs_error *err)
{
    cs_status status = CS_OK;
    agent *a = calloc(1, sizeof *a);
    void *state = calloc(1, type->state_size);

    if (a == NULL || state == NULL) {
        status = cs_fail(err, CS_ENOMEM, "agent %s", type->name);
        goto done;
    }
    a->type = type;
    a->batch = agent_batch(type, setup->param);
    a->state = state;
    state = NULL;
    CS_TRY(type->init(a->state, setup, err));
    *out = a;
    a = NULL;
done:
    free(state);
    agent_destroy(a);
    return status;
}

void agent_destroy(agent *self)
{
    if (self == NULL)
        return;
    if (self->state != NULL)
        self->type->fini(self->state);
    free(self->state);
    free(self);
}

cs_status agent_ask(agent *self, size_t *n, int32_t *points, cs_error *err)
{
    *n = self->batch;
    return self->type->ask(self->state, n, points, err);
}

cs_status agent_tell(agent *self, size_t n, const int32_t *points, const agent_score *score,
                     cs_error *err)
{
    return self->type->tell(self->state, n, points, score, err);
}

cs_status agent_seed(agent *self, size_t n, const int32_t *points, const agent_score *score,
                     cs_error *err)
{
    if (self->type->seed == NULL || n == 0)
        return CS_OK;
    return self->type->seed(self->state, n, points, score, err);
}

void agent_observe(agent *self, size_t n, const int32_t *points, const agent_score *score)
{
    if (self->type->observe != NULL)
        self->type->observe(self->state, n, points, score);
}

cs_status agent_save(agent *self, agent_bytes *out, cs_error *err)
{
    agent__io io = {.out = out};

    self->type->snapshot(self->state, &io);
    return io.status == CS_OK ? CS_OK : cs_fail(err, io.status, "snapshot of the agent");
}

cs_status agent_load(agent *self, const void *bytes, size_t n, cs_error *err)
{
    agent__io io = {.in = bytes, .left = n};

    self->type->snapshot(self->state, &io);
    if (io.status == CS_OK && io.left > 0)
        io.status = CS_EIO;
    if (io.status == CS_OK)
        return CS_OK;
    return cs_fail(err, io.status, "the snapshot does not fit agent %s", self->type->name);
}

void agent__io_agent(agent__io *io, agent *inner)
{
    if (io->status == CS_OK)
        inner->type->snapshot(inner->state, io);
}
