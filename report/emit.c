/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A design as launch arguments.  What is written is read back at once: fields that do not come back
 * the same are the ones the program cannot express, and stand in comments. */
#include "report/emit_private.h"
#include "report/report_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };

static const psa_field *find_field(const search_problem *problem, const char *path)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);

    for (size_t f = 0; f < tables->n_fields; f++)
        if (strcmp(tables->fields[f].path, path) == 0)
            return &tables->fields[f];
    return NULL;
}

/* Text of a field, "" where there is no such field. */
static void field_text(const search_problem *problem, const char *path, const sim_config *config,
                       char text[TEXT])
{
    const psa_field *field = find_field(problem, path);

    text[0] = '\0';
    if (field != NULL)
        psa_field_text(field, config, psa_schema_n_dims(problem->schema), text, TEXT);
}

/* ---- reading ---- */

static cs_status assign(const search_problem *problem, const char *field, const char *value,
                        sim_config *config, cs_error *err)
{
    char assignment[TEXT + 128];

    snprintf(assignment, sizeof assignment, "%s=%s", field, value);
    return psa_schema_assign(problem->schema, assignment, config, err);
}

/* The value that a rule finds in the options; NULL when it does not apply. */
static const char *read_rule(const emit__rule *rule, const emit__options *options)
{
    const char *argument = emit__find(options, rule->option);

    if (argument == NULL)
        return NULL;
    if (strcmp(rule->argument, "%") == 0)
        return argument;
    if (strcmp(rule->argument, "*") == 0 || strcmp(rule->argument, argument) == 0)
        return rule->value;
    return NULL;
}

/* The rules of a field begin at `rule`; *end is the first of the next. */
static const char *read_field(const emit__rule *rule, const emit__options *options,
                              const emit__rule **end)
{
    const char *value = NULL, *absent = NULL;
    const emit__rule *r = rule;

    for (; r->field != NULL && strcmp(r->field, rule->field) == 0; r++) {
        if (r->option == NULL)
            absent = r->value;
        else if (value == NULL)
            value = read_rule(r, options);
    }
    *end = r;
    return value != NULL ? value : absent;
}

static cs_status read_count(const emit__options *options, const char *name, int64_t *out,
                            cs_error *err)
{
    const char *text = emit__find(options, name);
    char *end = NULL;

    *out = 1;
    if (text == NULL)
        return CS_OK;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 1 || value > INT64_C(1000000000))
        return cs_fail(err, CS_EINVAL, "%s %s: expected a count", name, text);
    *out = value;
    return CS_OK;
}

/* dp from the number of NPUs, or from the two parts it has in torchtitan. */
static cs_status read_dp(const emit__target *target, const emit__options *options,
                         sim_config *config, cs_error *err)
{
    wl_config *w = &config->workload;
    const int64_t rest = w->tp * w->sp * w->pp;
    cs_status status = CS_OK;
    int64_t a = 1, b = 1;

    CS_TRY(read_count(options, target->nodes != NULL ? target->nodes : target->replicate, &a, err));
    CS_TRY(read_count(options, target->nodes != NULL ? target->per_node : target->shard, &b, err));
    if (target->nodes == NULL) {
        w->dp = a * b;
        w->hsdp_shard = a > 1 && b > 1 ? b : 0;
        return CS_OK;
    }
    if (a * b % rest != 0)
        return cs_fail(err, CS_EINVAL, "%lld NPUs do not divide by tp * sp * pp = %lld",
                       (long long)(a * b), (long long)rest);
    w->dp = a * b / rest;
done:
    return status;
}

static cs_status read_options(const search_problem *problem, const emit__target *target,
                              const emit__options *options, sim_config *out, cs_error *err)
{
    cs_status status = CS_OK;

    psa_schema_baseline(problem->schema, out);
    for (const emit__rule *r = target->rules; r->field != NULL;) {
        const char *field = r->field;
        const char *value = read_field(r, options, &r);
        if (value != NULL)
            CS_TRY(assign(problem, field, value, out, err));
    }
    CS_TRY(read_dp(target, options, out, err));
    for (size_t i = 0; i < options->n; i++)
        if (options->option[i].is_comment && find_field(problem, options->option[i].name) != NULL)
            CS_TRY(assign(problem, options->option[i].name, options->option[i].argument, out, err));
done:
    return status;
}

cs_status report_emit_read(const search_problem *problem, const char *text, report_target target,
                           sim_config *out, cs_error *err)
{
    emit__options options = {.n = 0};
    cs_status status = CS_OK;

    CS_TRY(emit__parse(text, &emit__targets[target], &options, err));
    CS_TRY(read_options(problem, &emit__targets[target], &options, out, err));
done:
    emit__options_fini(&options);
    return status;
}

/* ---- writing ---- */

static bool add_count(emit__options *options, const char *name, int64_t value)
{
    char text[32];

    if (name == NULL || value <= 0)
        return true;
    snprintf(text, sizeof text, "%lld", (long long)value);
    return emit__add(options, name, text, false);
}

/* NPUs of a node: those of the first dimensions, up to 8 and a divisor of all. */
static int64_t npus_per_node(int64_t npus)
{
    int64_t n = 8;

    while (npus % n != 0)
        n--;
    return n;
}

static bool add_machine(const emit__target *target, const sim_config *config,
                        emit__options *options)
{
    const wl_config *w = &config->workload;
    const int64_t npus = w->dp * w->tp * w->sp * w->pp;
    const int64_t shard = w->sharding == WL_SHARD_NONE ? 1
                          : w->hsdp_shard > 0          ? w->hsdp_shard
                                                       : w->dp;

    if (target->nodes != NULL)
        return add_count(options, target->per_node, npus_per_node(npus)) &&
               add_count(options, target->nodes, npus / npus_per_node(npus));
    return add_count(options, target->replicate, w->dp / shard) &&
           add_count(options, target->shard, shard);
}

static bool add_facts(const search_problem *problem, const emit__target *target,
                      emit__options *options)
{
    const wl_workload *w = sim_model_workload(problem->model, 0);
    const wl_facts f = wl_model_facts(w->model);
    const bool grouped = f.kv_heads > 0 && f.kv_heads < f.heads;
    const int64_t value[EMIT_N_FACTS] = {
        [EMIT_GLOBAL_BATCH] = w->global_batch,
        [EMIT_SEQUENCE] = w->sequence,
        [EMIT_LAYERS] = f.layers,
        [EMIT_HIDDEN] = f.hidden,
        [EMIT_FFN] = f.ffn,
        [EMIT_HEADS] = f.heads,
        [EMIT_KV_HEADS] = grouped ? f.kv_heads : 0,
        [EMIT_EXPERTS] = f.experts,
        [EMIT_TOP_K] = f.experts > 0 ? f.top_k : 0,
    };
    bool ok = true;

    if (grouped && target == &emit__targets[REPORT_MEGATRON])
        ok = emit__add(options, "--group-query-attention", "", false);
    for (size_t i = 0; i < EMIT_N_FACTS && ok; i++)
        ok = add_count(options, target->fact[i], value[i]);
    return ok;
}

/* The rules whose value is that of the design; a rule for any value only when none names it. */
static bool add_fields(const search_problem *problem, const emit__target *target,
                       const sim_config *config, emit__options *options)
{
    bool ok = true, named = false;
    char text[TEXT];

    for (const emit__rule *r = target->rules; r->field != NULL && ok; r++) {
        if (r == target->rules || strcmp(r->field, r[-1].field) != 0)
            named = false;
        field_text(problem, r->field, config, text);
        if (r->value != NULL ? strcmp(r->value, text) != 0 : named || text[0] == '\0')
            continue;
        named = named || r->value != NULL;
        if (r->option != NULL && strcmp(r->argument, "*") != 0)
            ok = emit__add(options, r->option, strcmp(r->argument, "%") == 0 ? text : r->argument,
                           false);
    }
    return ok;
}

/* Comments for the fields that the options do not bring back. */
static cs_status add_comments(const search_problem *problem, const emit__target *target,
                              const sim_config *config, emit__options *options, cs_error *err)
{
    const psa_tables *tables = psa_schema_tables(problem->schema);
    char wanted[TEXT], found[TEXT];
    cs_status status = CS_OK;
    sim_config back;

    CS_TRY(read_options(problem, target, options, &back, err));
    for (size_t f = 0; f < tables->n_fields; f++) {
        const char *path = tables->fields[f].path;
        field_text(problem, path, config, wanted);
        field_text(problem, path, &back, found);
        if (strcmp(wanted, found) != 0 && !emit__add(options, path, wanted, true))
            CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    }
done:
    return status;
}

static void put_head(const search_problem *problem, const report_design *design,
                     const emit__target *target, FILE *out)
{
    char latency[64];

    for (size_t i = 0; target->begin[i] != NULL; i++)
        fprintf(out, "# %s\n", target->begin[i]);
    fprintf(out, "# Design: trial %llu of ", (unsigned long long)design->trial->id);
    /* The name is the user's: one line of it, so that it cannot leave the comment. */
    for (const char *c = psa_schema_name(problem->schema); *c != '\0'; c++)
        fputc((unsigned char)*c < 32 || *c == '=' ? ' ' : *c, out);
    fprintf(out, ", predicted %s a step.\n",
            report_quantity(design->trial->result.latency_s, CS_SECONDS, latency));
}

cs_status report_emit(const search_problem *problem, const report_design *design,
                      report_target target, FILE *out, cs_error *err)
{
    const emit__target *t = &emit__targets[target];
    emit__options options = {.n = 0};
    cs_status status = CS_OK;

    if (sim_model_workload(problem->model, 0)->mode != WL_TRAIN)
        return cs_fail(err, CS_EINVAL, "%s trains models: the workload is inference",
                       report_target_names[target]);
    if (!add_machine(t, design->config, &options) ||
        !add_fields(problem, t, design->config, &options) || !add_facts(problem, t, &options))
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    CS_TRY(add_comments(problem, t, design->config, &options, err));
    put_head(problem, design, t, out);
    emit__write(&options, t, out);
    if (ferror(out))
        status = cs_fail(err, CS_EIO, "cannot write the arguments");
done:
    emit__options_fini(&options);
    return status;
}
