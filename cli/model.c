/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * model: parameters, FLOPs and bytes of a model file, by operator. */
#include "cli/commands.h"

#include <string.h>

static const report_column columns[] = {
    {"block", "block", REPORT_TEXT, CS_DIMENSIONLESS, "block of the model"},
    {"operator", "operator", REPORT_TEXT, CS_DIMENSIONLESS, "operator"},
    {"kind", "kind", REPORT_TEXT, CS_DIMENSIONLESS, "einsum, or the name of the kernel"},
    {"count", "count", REPORT_INTEGER, CS_DIMENSIONLESS, "how often the block occurs"},
    {"parameters", "parameters", REPORT_INTEGER, CS_DIMENSIONLESS, "of one occurrence"},
    {"flops_forward", "forward", REPORT_REAL, CS_FLOPS, "of one occurrence, causal in full"},
    {"flops_backward", "backward", REPORT_REAL, CS_FLOPS, "of one occurrence, causal in full"},
    {"flops_causal_saving", "causal saves", REPORT_REAL, CS_FLOPS,
     "of forward and backward: what counting causal attention by half takes off"},
    {"bytes_forward", "bytes forward", REPORT_REAL, CS_BYTES, "read and written"},
    {"bytes_backward", "bytes backward", REPORT_REAL, CS_BYTES, "read and written"},
};

/* FLOPs of matrix products, attention included: the published convention for a model's cost. */
static bool is_matmul(const wl_op_summary *op)
{
    return strcmp(op->kind, "einsum") == 0 || strcmp(op->kind, "attention") == 0;
}

typedef struct {
    double matmul, matmul_causal, all, bytes;
} totals;

static totals sum_up(const wl_op_summary *op, size_t n)
{
    totals t = {0};

    for (size_t i = 0; i < n; i++) {
        const double count = (double)op[i].count;
        const double flops = count * (op[i].flops_forward + op[i].flops_backward);
        t.all += flops;
        t.bytes += count * (op[i].bytes_forward + op[i].bytes_backward);
        if (is_matmul(&op[i])) {
            t.matmul += flops;
            t.matmul_causal += flops - count * op[i].flops_causal_saving;
        }
    }
    return t;
}

static report_table *operator_table(const wl_op_summary *op, size_t n)
{
    report_table *table = report_table_create(columns, CS_COUNT(columns));

    for (size_t i = 0; i < n; i++) {
        report_table_text(table, op[i].block);
        report_table_text(table, op[i].op);
        report_table_text(table, op[i].kind);
        report_table_integer(table, op[i].count);
        report_table_integer(table, op[i].parameters);
        report_table_real(table, op[i].flops_forward);
        report_table_real(table, op[i].flops_backward);
        report_table_real(table, op[i].flops_causal_saving);
        report_table_real(table, op[i].bytes_forward);
        report_table_real(table, op[i].bytes_backward);
    }
    return table;
}

static cs_status print_json(const cli_context *cli, const wl_model *model, const totals *t,
                            const report_table *operators, cs_error *err)
{
    const wl_facts facts = wl_model_facts(model);
    cs_json *object = report_header_json("model", NULL);
    char hash[24];

    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)wl_model_hash(model));
    cs_json_set(object, "name", cs_json_string(wl_model_name(model)));
    cs_json_set(object, "inputs_hash", cs_json_string(hash));
    cs_json_set(object, "batch", cs_json_int(cli->args.batch));
    cs_json_set(object, "sequence", cs_json_int(cli->args.sequence));
    cs_json_set(object, "parameters", cs_json_int(facts.parameters));
    cs_json_set(object, "active_parameters", cs_json_int(facts.active_parameters));
    cs_json_set(object, "layers", cs_json_int(facts.layers));
    cs_json_set(object, "hidden", cs_json_int(facts.hidden));
    cs_json_set(object, "heads", cs_json_int(facts.heads));
    cs_json_set(object, "kv_heads", cs_json_int(facts.kv_heads));
    cs_json_set(object, "vocabulary", cs_json_int(facts.vocabulary));
    cs_json_set(object, "flops_forward_backward", cs_json_int((int64_t)t->matmul));
    cs_json_set(object, "flops_forward_backward_causal", cs_json_int((int64_t)t->matmul_causal));
    cs_json_set(object, "flops_all_operators", cs_json_real(t->all));
    cs_json_set(object, "bytes_forward_backward", cs_json_real(t->bytes));
    cs_json_set(object, "operators", report_table_json(operators));
    return cli_print_json(cli, object, err);
}

static cs_status print_people(const cli_context *cli, const wl_model *model, const totals *t,
                              const report_table *operators, cs_error *err)
{
    const wl_facts facts = wl_model_facts(model);
    cs_status status = CS_OK;
    char text[64];

    fprintf(cli->out, "%s: %s parameters", wl_model_name(model),
            report_count((unsigned __int128)facts.parameters, text));
    fprintf(cli->out, ", %s active\n",
            report_count((unsigned __int128)facts.active_parameters, text));
    fprintf(cli->out,
            "%lld layers, hidden %lld, %lld heads, %lld key-value heads, vocabulary %lld\n",
            (long long)facts.layers, (long long)facts.hidden, (long long)facts.heads,
            (long long)facts.kv_heads, (long long)facts.vocabulary);
    fprintf(cli->out, "\nForward and backward, %lld x %lld tokens: %s FLOPs of matrix products",
            (long long)cli->args.batch, (long long)cli->args.sequence,
            report_count((unsigned __int128)t->matmul, text));
    fprintf(cli->out, " (%s with causal attention counted by half)\n\n",
            report_count((unsigned __int128)t->matmul_causal, text));
    CS_TRY(report_table_write(operators, REPORT_TABLE, cli->out, err));
done:
    return status;
}

static cs_status run_model(cli_context *cli, cs_error *err)
{
    cs_arena *arena = cs_arena_create(0);
    report_table *operators = NULL;
    cs_status status = CS_OK;
    wl_model *model = NULL;
    wl_summary ops = {0};
    totals t;

    if (arena == NULL)
        return cs_fail(err, CS_ENOMEM, "out of memory");
    CS_TRY(wl_model_load(cli->args.files.item[0], &model, err));
    CS_TRY(wl_model_summary(model, cli->args.batch, cli->args.sequence, arena, &ops, err));
    t = sum_up(ops.line, ops.n);
    operators = operator_table(ops.line, ops.n);
    if (operators == NULL)
        CS_TRY(cs_fail(err, CS_ENOMEM, "out of memory"));
    if (cli->args.format == REPORT_JSON)
        CS_TRY(print_json(cli, model, &t, operators, err));
    else if (cli->args.format == REPORT_CSV)
        CS_TRY(report_table_write(operators, REPORT_CSV, cli->out, err));
    else
        CS_TRY(print_people(cli, model, &t, operators, err));
done:
    report_table_destroy(operators);
    wl_model_destroy(model);
    cs_arena_destroy(arena);
    return status;
}

static const report_column dictionary[] = {
    {"parameters", "", REPORT_INTEGER, CS_DIMENSIONLESS, "parameters, embeddings included"},
    {"active_parameters", "", REPORT_INTEGER, CS_DIMENSIONLESS,
     "parameters one token uses (experts: the chosen ones)"},
    {"flops_forward_backward", "", REPORT_INTEGER, CS_FLOPS,
     "FLOPs of matrix products, attention included, causal in full"},
    {"flops_forward_backward_causal", "", REPORT_INTEGER, CS_FLOPS,
     "the same with causal attention counted by half"},
    {"flops_all_operators", "", REPORT_REAL, CS_FLOPS, "with norms, activations and the rest"},
    {"bytes_forward_backward", "", REPORT_REAL, CS_BYTES, "bytes read and written, unsplit"},
    {"operators", "", REPORT_TEXT, CS_DIMENSIONLESS,
     "list of {block, operator, kind, count, parameters, flops_*, bytes_*}; the rows of CSV"},
    {NULL, NULL, REPORT_TEXT, CS_DIMENSIONLESS, NULL},
};

const cli_command cli_model = {
    .name = "model",
    .summary = "parameters, FLOPs and bytes of a model file or config.json",
    .usage = "MODEL.yaml|config.json [--batch B] [--sequence S]",
    .example = "cosmic-search model configs/models/gpt3-175b.yaml --batch 1 --sequence 2048",
    .options = "batch sequence",
    .min_files = 1,
    .max_files = 1,
    .dictionary = dictionary,
    .run = run_model,
};
