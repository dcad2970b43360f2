/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Every option of every command in one table, and the parser it drives. */
#include "cli/cli.h"
#include "report/analysis.h"
#include "workloads/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(cli_args, field)

static const char *const formats[] = {"table", "json", "csv", NULL};
static const char *const control_modes[] = {"auto", "on", "off", NULL}; /* wl_ctrl_mode */
static const char *const backends[] = {"astra", "astra-aware", "contention", NULL};
static const char *const stream_kinds[] = {"rank", "dimension", NULL};
static const char *const granularities[] = {"fused", "op", NULL}; /* sim_granularity */

/* 2^53: every integer up to it is exact in the double the table stores. */
#define MOST 9007199254740992.0

const cli_option cli_options[] = {
    {"format", 'f', CLI_CHOICE, AT(format), "table|json|csv", 0, 0, 0, formats,
     "form of the output; table is for people"},
    {"quiet", 'q', CLI_FLAG, AT(quiet), NULL, 0, 0, 0, NULL, "print results and errors only"},
    {"verbose", 'v', CLI_FLAG, AT(verbose), NULL, 0, 0, 0, NULL, "print more"},
    {"help", 'h', CLI_FLAG, AT(help), NULL, 0, 0, 0, NULL, "print this text"},
    {"version", 'V', CLI_FLAG, AT(version), NULL, 0, 0, 0, NULL, "print the version"},
    {"agent", 'a', CLI_TEXT, AT(agent), "NAME", 0, 0, 0, NULL, "search algorithm"},
    {"agent-command", 0, CLI_TEXT, AT(agent_command), "CMD", 0, 0, 0, NULL,
     "program that proposes the designs, spoken to in the protocol of `serve`"},
    {"param", 'p', CLI_LIST, AT(params), "K=V", 0, 0, 0, NULL, "parameter of the agent"},
    {"evaluations", 'n', CLI_INTEGER, AT(evaluations), "N", 2000, 1, MOST, NULL,
     "designs to evaluate in all, also after --resume"},
    {"budget", 0, CLI_INTEGER, AT(budget), "N", 0, 0, MOST, NULL,
     "unique evaluations allowed; 0 is no limit"},
    {"timeout", 't', CLI_REAL, AT(timeout_s), "S", 0, 0, 1e9, NULL,
     "end after this many seconds; 0 is no limit"},
    {"seed", 's', CLI_INTEGER, AT(seed), "S", 1, 0, MOST, NULL,
     "master seed of every random stream; the same seed gives the same trials"},
    {"jobs", 'j', CLI_INTEGER, AT(jobs), "N", 0, 0, 4096, NULL,
     "threads; 0 is what is available; does not change results"},
    {"study", 0, CLI_TEXT, AT(study), "F.db", 0, 0, 0, NULL, "file that keeps every trial"},
    {"resume", 'r', CLI_FLAG, AT(resume), NULL, 0, 0, 0, NULL,
     "go on with an existing study, or start it"},
    {"objective", 0, CLI_TEXT, AT(objectives), "NAME", 0, 0, 0, NULL,
     "objective of the PSA to search for; the first one by default"},
    {"objectives", 0, CLI_TEXT, AT(objectives), "A,B", 0, 0, 0, NULL,
     "objectives of the PSA or results, separated by commas (default latency,network_cost; "
     "latency,peak_memory where nothing has a price)"},
    {"stack", 0, CLI_LIST, AT(stacks), "S,..", 0, 0, 0, NULL,
     "search only these layers (workload, collective, network, compute); the rest keeps the "
     "system's values"},
    {"fix", 0, CLI_LIST, AT(fixes), "KNOB=VALUE", 0, 0, 0, NULL, "keep a knob at one value"},
    {"warm-start", 0, CLI_TEXT, AT(warm_start), "F", 0, 0, 0, NULL,
     "study or CSV whose designs are tried first"},
    {"gap", 0, CLI_REAL, AT(gap), "X", -1, 0, 1, NULL,
     "end once the best is proven to be within this share of the optimum"},
    {"out", 'o', CLI_TEXT, AT(out), "PATH", 0, 0, 0, NULL, "folder or file for the output"},
    {"timing", 0, CLI_FLAG, AT(timing), NULL, 0, 0, 0, NULL, "print durations too"},
    {"exact", 0, CLI_FLAG, AT(exact), NULL, 0, 0, 0, NULL,
     "look at every valid design, so that the front is that of the whole space"},
    {"set", 0, CLI_LIST, AT(sets), "KNOB=VALUE", 0, 0, 0, NULL,
     "value of a knob (all dimensions: a,b,c; one: knob[2]=v); unset ones keep the baseline's"},
    {"unroll", 0, CLI_FLAG, AT(unroll), NULL, 0, 0, 0, NULL,
     "simulate every layer and micro-batch operator by operator"},
    {"timeline", 0, CLI_TEXT, AT(timeline), "T.json", 0, 0, 0, NULL,
     "write a Chrome trace (opens in Perfetto)"},
    {"workload", 'w', CLI_INTEGER, AT(workload), "N", 1, 1, 16, NULL,
     "workload of the timeline, from 1"},
    {"batch", 'b', CLI_INTEGER, AT(batch), "B", 1, 1, 1e9, NULL, "sequences"},
    {"sequence", 0, CLI_INTEGER, AT(sequence), "S", 2048, 1, 1e9, NULL, "tokens of a sequence"},
    {"top", 0, CLI_INTEGER, AT(top), "N", 1, 1, 1e6, NULL, "how many designs"},
    {"trial", 0, CLI_INTEGER, AT(trial), "N", 0, 1, MOST, NULL, "a trial by its number"},
    {"for", 0, CLI_CHOICE, AT(target), "megatron|torchtitan|nemo", 0, 0, 0, report_target_names,
     "training program whose arguments to write"},
    {"against", 0, CLI_INTEGER, AT(against), "N", 0, 1, MOST, NULL,
     "trial to compare with, by its number"},
    {"seconds", 0, CLI_REAL, AT(seconds), "S", 5, 0.01, 1e6, NULL, "how long to measure"},
    {"network", 0, CLI_TEXT, AT(network), "N.yml", 0, 0, 0, NULL, "ASTRA-sim network file"},
    {"system", 0, CLI_TEXT, AT(system), "S", 0, 0, 0, NULL,
     "ASTRA-sim system file (with --network), or a system file of a PSA"},
    {"type", 0, CLI_TEXT, AT(type), "T", 0, 0, 0, NULL,
     "collective: all_reduce, reduce_scatter, all_gather, all_to_all, ..."},
    {"bytes", 0, CLI_TEXT, AT(bytes), "B", 0, 0, 0, NULL, "size of the collective in bytes"},
    {"cases", 0, CLI_TEXT, AT(cases), "F.csv", 0, 0, 0, NULL, "table of collectives to predict"},
    {"schema", 0, CLI_CHOICE, AT(schema), "auto|0.0.1|0.0.2|0.0.3|0.0.4|text", 0, 0, 0,
     wl_schema_names, "schema of the trace; auto tells it by the content"},
    {"control", 0, CLI_CHOICE, AT(control), "auto|on|off", 0, 0, 0, control_modes,
     "whether control dependencies order nodes; auto: unless some are broken"},
    {"groups", 0, CLI_TEXT, AT(groups), "F.json", 0, 0, 0, NULL,
     "communicator groups; by default the file beside the trace"},
    {"job-ranks", 0, CLI_INTEGER, AT(job_ranks), "N", 0, 0, 16777216, NULL,
     "ranks of the job; 0: the highest rank and all below it"},
    {"passes", 0, CLI_INTEGER, AT(passes), "N", 1, 1, 1e6, NULL, "iterations of a text workload"},
    {"strict", 0, CLI_FLAG, AT(strict), NULL, 0, 0, 0, NULL, "warnings are errors"},
    {"model", 0, CLI_CHOICE, AT(backend), "astra|astra-aware|contention", 0, 0, 0, backends,
     "network model: ASTRA-sim's with links shared without loss or a queue for each link, or "
     "this program's own"},
    {"streams", 0, CLI_CHOICE, AT(streams), "rank|dimension", 0, 0, 0, stream_kinds,
     "what communication waits for: one at a time on a rank, or on each dimension"},
    {"slow-rank", 0, CLI_INTEGER, AT(slow_rank), "R", 0, 0, 16777216, NULL,
     "rank whose compute takes --slow-factor times as long"},
    {"slow-factor", 0, CLI_REAL, AT(slow_factor), "X", 0, 0, 1e6, NULL, "see --slow-rank"},
    {"no-fold", 0, CLI_FLAG, AT(no_fold), NULL, 0, 0, 0, NULL,
     "simulate every rank, also those that are provably alike: the same result, only later"},
    {"link", 0, CLI_LIST, AT(links), "A-B:X[:BW]", 0, 0, 0, NULL,
     "link from NPU A to its neighbour B keeps share X of its bandwidth, and carries BW (1 GB/s) "
     "of other traffic"},
    {"granularity", 0, CLI_CHOICE, AT(granularity), "fused|op", 0, 0, 0, granularities,
     "compute nodes of an exported design: joined where nothing comes between, or one an operator"},
    {"ranks", 0, CLI_TEXT, AT(ranks), "A-B", 0, 0, 0, NULL, "ranks of the timeline, from 0"},
    {"force", 0, CLI_FLAG, AT(force), NULL, 0, 0, 0, NULL, "write more than 10 GB"},
    {NULL, 0, CLI_FLAG, 0, NULL, 0, 0, 0, NULL, NULL},
};

static const char common_options[] = "format quiet verbose help version";

const cli_option *cli_find_option(const char *name)
{
    for (const cli_option *o = cli_options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

/* Whether `name` stands in a list of names separated by spaces. */
static bool listed(const char *list, const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = list; *at != '\0';) {
        const size_t n = strcspn(at, " ");
        if (n == length && strncmp(at, name, n) == 0)
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

bool cli_accepts(const cli_command *command, const cli_option *option)
{
    return listed(common_options, option->name) || listed(command->options, option->name);
}

static const cli_option *option_of(const cli_command *command, const char *name, size_t length,
                                   char letter)
{
    for (const cli_option *o = cli_options; o->name != NULL; o++) {
        const bool same = letter != 0
                              ? o->letter == letter
                              : strlen(o->name) == length && strncmp(o->name, name, length) == 0;
        if (same && cli_accepts(command, o))
            return o;
    }
    return NULL;
}

static cs_status unknown_option(const cli_command *command, const char *word, cs_error *err)
{
    const char *names[CS_COUNT(cli_options)];
    char name[128];
    const char *near;
    size_t n = 0;

    for (const cli_option *o = cli_options; o->name != NULL; o++)
        if (cli_accepts(command, o))
            names[n++] = o->name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    near = cs_nearest(name + strspn(name, "-"), names, n);
    if (near == NULL)
        return cs_fail(err, CS_EINVAL, "unknown option %s; see `cosmic-search %s --help`", name,
                       command->name);
    return cs_fail(err, CS_EINVAL, "unknown option %s of %s; did you mean --%s?", name,
                   command->name, near);
}

static cs_status bad_number(const cli_option *option, const char *text, cs_error *err)
{
    char low[32], high[32];

    return cs_fail(err, CS_EINVAL, "--%s %s: expected %s from %s to %s", option->name, text,
                   option->kind == CLI_INTEGER ? "a whole number" : "a number",
                   cs_double_text(option->min, low), cs_double_text(option->max, high));
}

static cs_status store_integer(const cli_option *option, const char *text, void *at, cs_error *err)
{
    char *end = NULL;
    long long value;
    int64_t stored;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || (double)value < option->min ||
        (double)value > option->max)
        return bad_number(option, text, err);
    stored = value;
    memcpy(at, &stored, sizeof stored);
    return CS_OK;
}

static cs_status store_real(const cli_option *option, const char *text, void *at, cs_error *err)
{
    char *end = NULL;
    const double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= option->min && value <= option->max))
        return bad_number(option, text, err);
    memcpy(at, &value, sizeof value);
    return CS_OK;
}

static cs_status store_choice(const cli_option *option, const char *text, void *at, cs_error *err)
{
    int64_t n = 0;

    for (; option->choices[n] != NULL; n++) {
        if (strcmp(option->choices[n], text) == 0) {
            memcpy(at, &n, sizeof n);
            return CS_OK;
        }
    }
    return cs_fail(err, CS_EINVAL, "--%s %s: expected %s", option->name, text, option->value);
}

static cs_status push(cli_list *list, const char *what, const char *text, cs_error *err)
{
    if (list->n == CLI_MAX_LIST)
        return cs_fail(err, CS_EINVAL, "more than %d values of %s", CLI_MAX_LIST, what);
    list->item[list->n++] = text;
    return CS_OK;
}

static cs_status store(const cli_option *option, const char *text, cli_args *args, cs_error *err)
{
    char *at = (char *)args + option->offset;

    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)at = true;
        return CS_OK;
    case CLI_LIST:
        return push((cli_list *)(void *)at, option->name, text, err);
    case CLI_INTEGER:
        return store_integer(option, text, at, err);
    case CLI_REAL:
        return store_real(option, text, at, err);
    case CLI_CHOICE:
        return store_choice(option, text, at, err);
    default:
        if (text[0] == '\0')
            return cs_fail(err, CS_EINVAL, "--%s: expected %s, got an empty text", option->name,
                           option->value);
        memcpy(at, &text, sizeof text);
        return CS_OK;
    }
}

static void defaults(const cli_command *command, cli_args *args)
{
    memset(args, 0, sizeof *args);
    for (const cli_option *o = cli_options; o->name != NULL; o++) {
        const int64_t integer = (int64_t)o->fallback;
        if (!cli_accepts(command, o))
            continue;
        if (o->kind == CLI_INTEGER || o->kind == CLI_CHOICE)
            memcpy((char *)args + o->offset, &integer, sizeof integer);
        else if (o->kind == CLI_REAL)
            memcpy((char *)args + o->offset, &o->fallback, sizeof o->fallback);
    }
}

/* One word that begins with '-': "--name", "--name=value", "-x", "-xvalue".  *i advances over a
 * separate value. */
static cs_status parse_option(const cli_command *command, int argc, char **argv, int *i,
                              cli_args *args, cs_error *err)
{
    const char *word = argv[*i];
    const bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    const size_t length = is_long ? strcspn(name, "=") : 1;
    const cli_option *option = option_of(command, name, length, is_long ? (char)0 : name[0]);
    const char *value = NULL;

    if (option == NULL)
        return unknown_option(command, word, err);
    if (is_long && name[length] == '=')
        value = name + length + 1;
    else if (!is_long && name[1] != '\0')
        value = name + 1;
    if (option->kind == CLI_FLAG) {
        if (value != NULL)
            return cs_fail(err, CS_EINVAL, "--%s takes no value", option->name);
        return store(option, "", args, err);
    }
    if (value == NULL) {
        if (*i + 1 >= argc)
            return cs_fail(err, CS_EINVAL, "--%s: expected %s after it", option->name,
                           option->value);
        value = argv[++*i];
    }
    return store(option, value, args, err);
}

static cs_status check_files(const cli_command *command, const cli_args *args, cs_error *err)
{
    if (args->help || args->version)
        return CS_OK;
    if (args->files.n < command->min_files)
        return cs_fail(err, CS_EINVAL, "%s: too few arguments; usage: cosmic-search %s %s",
                       command->name, command->name, command->usage);
    if (args->files.n > command->max_files)
        return cs_fail(err, CS_EINVAL, "%s: one argument too many: %s; usage: cosmic-search %s %s",
                       command->name, args->files.item[command->max_files], command->name,
                       command->usage);
    return CS_OK;
}

cs_status cli_parse(const cli_command *command, int argc, char **argv, int from, cli_args *args,
                    cs_error *err)
{
    cs_status status = CS_OK;
    bool only_files = false;

    defaults(command, args);
    for (int i = from; i < argc; i++) {
        if (!only_files && strcmp(argv[i], "--") == 0)
            only_files = true;
        else if (!only_files && argv[i][0] == '-' && argv[i][1] != '\0')
            CS_TRY(parse_option(command, argc, argv, &i, args, err));
        else
            CS_TRY(push(&args->files, "the arguments", argv[i], err));
    }
    CS_TRY(check_files(command, args, err));
done:
    return status;
}
