/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Texts of launch arguments: shell command lines and TOML sections, written and read. */
#include "report/emit_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void emit__options_fini(emit__options *options)
{
    for (size_t i = 0; i < options->n; i++) {
        free(options->option[i].name);
        free(options->option[i].argument);
    }
    free(options->option);
    *options = (emit__options){.n = 0};
}

bool emit__add(emit__options *options, const char *name, const char *argument, bool is_comment)
{
    emit__option *grown =
        cs_room(options->option, &options->capacity, options->n + 1, sizeof *grown);

    if (grown == NULL)
        return false;
    options->option = grown;
    emit__option *o = &options->option[options->n++];
    *o = (emit__option){strdup(name), strdup(argument), is_comment};
    return o->name != NULL && o->argument != NULL;
}

const char *emit__find(const emit__options *options, const char *name)
{
    for (size_t i = options->n; i > 0; i--)
        if (!options->option[i - 1].is_comment && strcmp(options->option[i - 1].name, name) == 0)
            return options->option[i - 1].argument;
    return NULL;
}

/* ---- writing ---- */

/* A TOML value: numbers and booleans bare, everything else as a string. */
static void put_toml(const char *text, FILE *out)
{
    char *end = NULL;

    (void)strtod(text, &end);
    if ((end != text && *end == '\0') || strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        fputs(text, out);
    else
        fprintf(out, "\"%s\"", text);
}

static void write_sections(const emit__options *options, FILE *out)
{
    for (size_t i = 0; i < options->n; i++) {
        const char *name = options->option[i].name;
        const size_t length = strcspn(name, ".");
        bool first = !options->option[i].is_comment;
        for (size_t j = 0; j < i && first; j++)
            first = options->option[j].is_comment ||
                    strncmp(options->option[j].name, name, length + 1) != 0;
        if (!first)
            continue;
        fprintf(out, "\n[%.*s]\n", (int)length, name);
        for (size_t j = i; j < options->n; j++) {
            const emit__option *o = &options->option[j];
            if (o->is_comment || strncmp(o->name, name, length + 1) != 0)
                continue;
            fprintf(out, "%s = ", o->name + length + 1);
            put_toml(o->argument, out);
            fputc('\n', out);
        }
    }
}

/* The launcher's options stand before the program, the others after it. */
static void write_command(const emit__options *options, const emit__target *target, FILE *out)
{
    const bool launcher = target->nodes != NULL && target->nodes[0] == '-';

    fputs(launcher ? "torchrun" : target->program, out);
    for (size_t i = 0; i < options->n && launcher; i++)
        if (strcmp(options->option[i].name, target->nodes) == 0 ||
            strcmp(options->option[i].name, target->per_node) == 0)
            fprintf(out, " %s %s", options->option[i].name, options->option[i].argument);
    if (launcher)
        fprintf(out, " %s", target->program);
    for (size_t i = 0; i < options->n; i++) {
        const emit__option *o = &options->option[i];
        if (o->is_comment || (launcher && (strcmp(o->name, target->nodes) == 0 ||
                                           strcmp(o->name, target->per_node) == 0)))
            continue;
        fprintf(out, "%s%s%s%s", target->continued, o->name,
                o->argument[0] != '\0' ? target->separator : "", o->argument);
    }
    fputc('\n', out);
}

void emit__write(const emit__options *options, const emit__target *target, FILE *out)
{
    bool any = false;

    for (size_t i = 0; i < options->n; i++) {
        if (!options->option[i].is_comment)
            continue;
        if (!any)
            fputs("#\n# The program does not set, or not so:\n", out);
        any = true;
        fprintf(out, "# %s = %s\n", options->option[i].name, options->option[i].argument);
    }
    if (target->sections)
        write_sections(options, out);
    else
        write_command(options, target, out);
}

/* ---- reading ---- */

enum { MOST_LINE = 4096 };

/* Removes blanks at both ends. */
static char *trim(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static bool is_field(const char *name)
{
    for (const char *c = name; *c != '\0'; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) &&
            strchr("._[]", *c) == NULL)
            return false;
    return name[0] != '\0';
}

/* Splits "name = value"; false when there is no '='. */
static bool split(char *text, char **name, char **value)
{
    char *equals = strchr(text, '=');

    if (equals == NULL)
        return false;
    *equals = '\0';
    *name = trim(text);
    *value = trim(equals + 1);
    return true;
}

static bool read_comment(char *text, emit__options *out)
{
    char *name, *value;

    if (!split(text, &name, &value) || !is_field(name))
        return true;
    return emit__add(out, name, value, true);
}

static bool read_toml(char *text, char section[64], emit__options *out)
{
    char *name, *value, full[192];

    if (text[0] == '[') {
        snprintf(section, 64, "%.*s", (int)strcspn(text + 1, "]"), text + 1);
        return true;
    }
    if (!split(text, &name, &value))
        return true;
    if (value[0] == '"') {
        value++;
        value[strcspn(value, "\"")] = '\0';
    }
    snprintf(full, sizeof full, "%.63s.%.120s", section, name);
    return emit__add(out, full, value, false);
}

/* Words of a command line: "--name value", "--name=value", "name=value", "--flag". */
static bool read_words(char *text, emit__options *out)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, " \t\\", &rest); word != NULL;
         word = strtok_r(NULL, " \t\\", &rest)) {
        char *equals = strchr(word, '=');
        emit__option *last = out->n > 0 ? &out->option[out->n - 1] : NULL;
        if (equals != NULL)
            *equals = '\0';
        if (equals != NULL || strncmp(word, "--", 2) == 0) {
            if (!emit__add(out, word, equals != NULL ? equals + 1 : "", false))
                return false;
        } else if (last != NULL && strncmp(last->name, "--", 2) == 0 && last->argument[0] == '\0') {
            free(last->argument);
            last->argument = strdup(word);
            if (last->argument == NULL)
                return false;
        }
    }
    return true;
}

cs_status emit__parse(const char *text, const emit__target *target, emit__options *out,
                      cs_error *err)
{
    char line[MOST_LINE], section[64] = "";
    size_t number = 1;

    for (const char *at = text; *at != '\0'; number++) {
        const size_t n = strcspn(at, "\n");
        bool ok;
        if (n >= sizeof line)
            return cs_fail(err, CS_EINVAL, "line %zu: longer than %d characters", number,
                           MOST_LINE - 1);
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        char *begin = trim(line);
        if (begin[0] == '#')
            ok = read_comment(begin + 1, out);
        else if (target->sections)
            ok = read_toml(begin, section, out);
        else
            ok = read_words(begin, out);
        if (!ok)
            return cs_fail(err, CS_ENOMEM, "out of memory");
        at += n + (at[n] == '\n');
    }
    return CS_OK;
}
