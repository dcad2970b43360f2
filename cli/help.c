/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Help texts, made from the tables. */
#include "cli/cli.h"

#include <glob.h>
#include <string.h>

static void print_options(const cli_command *command, FILE *out)
{
    char left[64];

    fputs("\nOptions:\n", out);
    for (const cli_option *o = cli_options; o->name != NULL; o++) {
        const char letter[3] = {'-', o->letter, '\0'};
        if (!cli_accepts(command, o))
            continue;
        snprintf(left, sizeof left, "%s%s--%s%s%s", o->letter != 0 ? letter : "  ",
                 o->letter != 0 ? ", " : "  ", o->name, o->value != NULL ? " " : "",
                 o->value != NULL ? o->value : "");
        fprintf(out, "  %-28s %s", left, o->help);
        if ((o->kind == CLI_INTEGER || o->kind == CLI_REAL) && o->fallback > 0)
            fprintf(out, " (default %.15g)", o->fallback);
        fputc('\n', out);
    }
}

static void print_dictionary(const cli_command *command, FILE *out)
{
    if (command->dictionary == NULL && !command->trial_keys)
        return;
    fputs("\nOutput (keys of -f json, columns of -f csv):\n", out);
    for (const report_column *c = command->dictionary; c != NULL && c->key != NULL; c++)
        fprintf(out, "  %-36s %s\n", c->key, c->help);
    if (!command->trial_keys)
        return;
    for (const report_column *c = report_trial_columns; c->key != NULL; c++)
        fprintf(out, "  %-36s %s\n", c->key, c->help);
    fprintf(out, "  %-36s %s\n", "objectives",
            "value of each objective searched for (CSV: objective.NAME)");
    for (const report_result *r = report_results; r->key != NULL; r++)
        fprintf(out, "  %-36s %s\n", r->key, r->help);
    fprintf(out, "  %-36s %s\n", "config",
            "value of each knob, SI units (CSV: a column a knob, as written in the PSA; - where a "
            "knob has no effect)");
}

void cli_print_help(const cli_command *command, FILE *out)
{
    fprintf(out, "%s\n\nUsage: cosmic-search %s %s\n\nExample:\n  %s\n", command->summary,
            command->name, command->usage, command->example);
    print_options(command, out);
    if (strstr(command->options, "agent") != NULL) {
        fputs("\nAgents (-a):\n", out);
        for (size_t i = 0; agent_types[i] != NULL; i++) {
            fprintf(out, "  %-16s %s\n", agent_types[i]->name, agent_types[i]->summary);
            for (const agent_param *p = agent_types[i]->params; p != NULL && p->name != NULL; p++)
                fprintf(out, "    -p %s=%.15g  %s\n", p->name, p->value, p->help);
        }
    }
    print_dictionary(command, out);
    fputs("\nExit codes: 0 done, 1 failed, 2 wrong input or usage, 3 no feasible design found,\n"
          "4 trace error or deadlock, 130/143 ended by a signal.\n",
          out);
}

void cli_print_commands(FILE *out)
{
    fputs("Usage: cosmic-search COMMAND ARGUMENTS, or cosmic-search PSA (means run PSA)\n\n"
          "Commands:\n",
          out);
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        fprintf(out, "  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fputs("\n`cosmic-search COMMAND --help` explains a command and its output.\n", out);
}

/* Finds what the build ships: ./configs, seen from the current folder or the program's own. */
static void print_shipped(const char *pattern, FILE *out)
{
    glob_t found;

    if (glob(pattern, 0, NULL, &found) != 0) {
        fputs("  (none in ./configs/psa)\n", out);
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        fprintf(out, "  %s\n", found.gl_pathv[i]);
    globfree(&found);
}

void cli_print_welcome(FILE *out)
{
    fprintf(out,
            "cosmic-search %s finds the best design of a distributed machine-learning system.\n\n"
            "PSA files (what is fixed, what is free, what is best) shipped here:\n",
            cs_version());
    print_shipped("configs/psa/*.yaml", out);
    fputs("\nTry:\n"
          "  cosmic-search describe configs/psa/gpt3-175b-system3.yaml   what can be chosen\n"
          "  cosmic-search configs/psa/gpt3-175b-system3.yaml            search it\n"
          "  cosmic-search --help                                        all commands\n",
          out);
}
