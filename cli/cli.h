/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The program: tables of commands and options, and what commands share.  The only folder that
 * prints or exits. */
#ifndef CLI_H
#define CLI_H

#include "report/report.h"

/* ---- options ---- */

#define CLI_MAX_LIST 256

typedef struct {
    const char *item[CLI_MAX_LIST];
    size_t n;
} cli_list;

/* Values of every option of every command; a command reads those it names in its table. */
typedef struct {
    cli_list files; /* positional arguments */
    int64_t format; /* report_format */
    bool quiet, verbose, help, version;
    /* run, compare, pareto */
    const char *agent, *agent_command;
    cli_list params, stacks, fixes;
    const char *objectives;
    int64_t evaluations, budget, seed, jobs;
    double timeout_s, gap;
    const char *study, *warm_start, *out;
    bool resume, timing, exact;
    /* simulate */
    cli_list sets;
    bool unroll;
    const char *timeline;
    int64_t workload;
    /* model, bench, trials */
    int64_t batch, sequence, top, trial, against;
    int64_t target; /* report_target */
    double seconds;
    /* collective */
    const char *network, *system, *type, *bytes, *cases;
    /* trace */
    int64_t schema, control; /* wl_schema, wl_ctrl_mode */
    const char *groups;
    int64_t job_ranks, passes;
    bool strict, force;
    int64_t backend, slow_rank, streams, granularity;
    cli_list links;
    double slow_factor;
    bool no_fold;
    const char *ranks;
} cli_args;

typedef enum { CLI_FLAG, CLI_TEXT, CLI_LIST, CLI_INTEGER, CLI_REAL, CLI_CHOICE } cli_kind;

/* One option; `letter` 0 when it has only a long name. */
typedef struct {
    const char *name;
    char letter;
    cli_kind kind;
    size_t offset;              /* into cli_args */
    const char *value;          /* name of its value in --help */
    double fallback;            /* of numbers (int64_t, double) and choices (int64_t index) */
    double min, max;            /* of numbers, inclusive */
    const char *const *choices; /* CLI_CHOICE: NULL-terminated */
    const char *help;
} cli_option;

extern const cli_option cli_options[]; /* ends with a NULL name */
/* By name, NULL when there is none. */
const cli_option *cli_find_option(const char *name);

/* ---- commands ---- */

typedef struct cli_command cli_command;

/* What a command runs with. */
typedef struct {
    const cli_command *command;
    cli_args args;
    FILE *out;          /* standard output */
    double start_s;     /* monotonic clock at process start */
    volatile int *stop; /* signal number once one arrived */
    bool infeasible;    /* exit code 3 although the command did its work */
} cli_context;

/* One sub-command.  `options` are names of cli_options, separated by spaces; the common ones are
 * added by the parser.  `dictionary` lists output keys (NULL key ends), `trial_keys` adds those of
 * trials. */
struct cli_command {
    const char *name, *summary, *usage, *example;
    const char *options;
    size_t min_files, max_files;
    const report_column *dictionary;
    bool trial_keys;
    cs_status (*run)(cli_context *cli, cs_error *err);
};

extern const cli_command *const cli_commands[]; /* ends with NULL */

/* Whether a command takes an option. O(length of its list). */
bool cli_accepts(const cli_command *command, const cli_option *option);
/* Parses argv[from..argc) against the command's options.  CS_EINVAL with the nearest name. */
CS_MUST_USE cs_status cli_parse(const cli_command *command, int argc, char **argv, int from,
                                cli_args *args, cs_error *err);
/* Usage, example, options and dictionary of a command. */
void cli_print_help(const cli_command *command, FILE *out);
/* The list of commands. */
void cli_print_commands(FILE *out);
/* What `cosmic-search` prints alone: shipped PSA files and three commands to start with. */
void cli_print_welcome(FILE *out);

/* ---- shared by commands ---- */

/* Installs the handlers of SIGINT, SIGTERM and SIGHUP (the first sets the flag, the second ends the
 * program) and ignores SIGPIPE.  Returns the flag. */
volatile int *cli_signals_install(void);
/* Seconds of the monotonic clock. */
double cli_now_s(void);

/* Loads the problem named by the command's first file with its --stack, --fix and --objective. */
CS_MUST_USE cs_status cli_load_problem(const cli_context *cli, search_problem *problem,
                                       cs_error *err);
/* The baseline of the system with the command's --set applied and checked. */
CS_MUST_USE cs_status cli_configure(const cli_context *cli, const search_problem *problem,
                                    sim_config *config, cs_error *err);
/* Prints a JSON object and destroys it. */
CS_MUST_USE cs_status cli_print_json(const cli_context *cli, cs_json *object, cs_error *err);

/* A file that appears whole or not at all: written under a temporary name in the same folder, then
 * renamed. */
typedef struct {
    FILE *file;
    char *path, *temporary;
} cli_file;
CS_MUST_USE cs_status cli_file_open(const char *path, cli_file *file, cs_error *err);
/* Flushes, closes and renames. */
CS_MUST_USE cs_status cli_file_commit(cli_file *file, cs_error *err);
/* Removes what was not committed; no-op after cli_file_commit. */
void cli_file_discard(cli_file *file);

/* Where a run leaves its files.  `dir` is NULL when only --study was given. */
typedef struct {
    char *dir, *study;
    bool made_dir; /* created here: removed again when nothing was written */
} cli_place;
/* Only the folder: --out, or the next free results/<name>-NNN/. */
CS_MUST_USE cs_status cli_place_folder(const cli_context *cli, const char *name, cli_place *place,
                                       cs_error *err);
/* Decides it from --out and --study, or takes the next free results/<name>-NNN/; makes the folder
 * and proves that it can be written. */
CS_MUST_USE cs_status cli_place_make(const cli_context *cli, const char *name, cli_place *place,
                                     cs_error *err);
/* Joins the folder and a file name; the caller frees it.  NULL when out of memory. */
char *cli_place_file(const cli_place *place, const char *name);
/* Frees; removes a folder made here that is still empty. */
void cli_place_fini(cli_place *place);

/* The progress line on a terminal's standard error. */
typedef struct {
    bool shown;  /* a line is standing */
    bool active; /* standard error is a terminal and -q was not given */
    double last_s;
} cli_progress;
void cli_progress_start(cli_progress *line, const cli_context *cli);
/* search_options.progress; `context` is the cli_progress. */
void cli_progress_show(void *context, const search_progress *progress);
void cli_progress_end(cli_progress *line);

#endif
