/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Entry point: finds the command, parses its options, runs it, turns its status into an exit code.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The contract of DESIGN 3. */
enum { EXIT_DONE, EXIT_FAILED, EXIT_INPUT, EXIT_INFEASIBLE, EXIT_TRACE, EXIT_SIGNAL = 128 };

static const struct {
    cs_status status;
    int code;
} exit_codes[] = {
    {CS_OK, EXIT_DONE},         {CS_ENOMEM, EXIT_FAILED},          {CS_EINVAL, EXIT_INPUT},
    {CS_EPARSE, EXIT_INPUT},    {CS_ESCHEMA, EXIT_INPUT},          {CS_EIO, EXIT_FAILED},
    {CS_EDEADLOCK, EXIT_TRACE}, {CS_ETRACE, EXIT_TRACE},           {CS_ENOENT, EXIT_INPUT},
    {CS_ESTOPPED, EXIT_SIGNAL}, {CS_EINFEASIBLE, EXIT_INFEASIBLE}, {CS_EINTERNAL, EXIT_FAILED},
};

static int exit_code(cs_status status, int signal_number)
{
    if (status == CS_ESTOPPED)
        return EXIT_SIGNAL + (signal_number > 0 ? signal_number : 2);
    for (size_t i = 0; i < CS_COUNT(exit_codes); i++)
        if (exit_codes[i].status == status)
            return exit_codes[i].code;
    return EXIT_FAILED;
}

/* Descriptors 0-2 that the caller closed would be given to the next file opened, and output would
 * land in a study.  They are filled with one that cannot be written. */
static void hold_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", O_RDONLY) < 0)
            _exit(EXIT_FAILED);
}

static const cli_command *find_command(const char *name)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    return NULL;
}

static bool looks_like_file(const char *word)
{
    const size_t n = strlen(word);

    return strchr(word, '/') != NULL || access(word, F_OK) == 0 ||
           (n > 5 && strcmp(word + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(word + n - 4, ".yml") == 0);
}

static cs_status unknown_command(const char *word, cs_error *err)
{
    const char *names[64];
    const char *near;
    size_t n = 0;

    for (size_t i = 0; cli_commands[i] != NULL && n < CS_COUNT(names); i++)
        names[n++] = cli_commands[i]->name;
    near = cs_nearest(word, names, n);
    if (near == NULL)
        return cs_fail(err, CS_EINVAL,
                       "%s is neither a command nor a file; see `cosmic-search --help`", word);
    return cs_fail(err, CS_EINVAL, "unknown command %s; did you mean %s?", word, near);
}

static cs_status run_command(cli_context *cli, int argc, char **argv, int from, cs_error *err)
{
    cs_status status = CS_OK;

    CS_TRY(cli_parse(cli->command, argc, argv, from, &cli->args, err));
    if (cli->args.help)
        cli_print_help(cli->command, cli->out);
    else if (cli->args.version)
        fprintf(cli->out, "cosmic-search %s\n", cs_version());
    else
        status = cli->command->run(cli, err);
done:
    return status;
}

/* `help`, `help COMMAND`, `--help`. */
static cs_status help(cli_context *cli, const char *word, cs_error *err)
{
    cli->command = word != NULL ? find_command(word) : NULL;
    if (word != NULL && cli->command == NULL)
        return unknown_command(word, err);
    if (cli->command != NULL)
        cli_print_help(cli->command, cli->out);
    else
        cli_print_commands(cli->out);
    return CS_OK;
}

static cs_status dispatch(cli_context *cli, int argc, char **argv, cs_error *err)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (word == NULL) {
        cli_print_welcome(cli->out);
        return CS_OK;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        fprintf(cli->out, "cosmic-search %s\n", cs_version());
        return CS_OK;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return help(cli, argc > 2 ? argv[2] : NULL, err);
    cli->command = find_command(word);
    if (cli->command != NULL)
        return run_command(cli, argc, argv, 2, err);
    cli->command = find_command("run");
    if (word[0] == '-' || looks_like_file(word))
        return run_command(cli, argc, argv, 1, err);
    return unknown_command(word, err);
}

/* What went wrong, in words; a function that ran out of memory names only what it was for. */
static void complete_message(cs_status status, cs_error *err)
{
    char what[256];

    if (err->text[0] == '\0')
        cs_fail(err, status, "%s", cs_status_text(status));
    if (status != CS_ENOMEM || strstr(err->text, "out of memory") != NULL)
        return;
    snprintf(what, sizeof what, "%.255s", err->text);
    cs_fail(err, status, "out of memory (%s)", what);
}

/* Whether standard output was a pipe whose reader has gone: `| head` has what it wanted. */
static bool reader_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/* Output that nobody reads is no failure, output that is lost is. */
static cs_status flush_output(cs_status status, FILE *out, cs_error *err)
{
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return status;
    if (reader_gone())
        return status == CS_EIO ? CS_OK : status;
    if (status != CS_OK && status != CS_EIO)
        return status;
    return cs_fail(err, CS_EIO, "cannot write to standard output: %s",
                   errno != 0 ? strerror(errno) : "some of it was lost");
}

int main(int argc, char **argv)
{
    cli_context cli = {.out = stdout, .start_s = cli_now_s()};
    cs_error err = {.text = ""};
    cs_status status;

    hold_standard_descriptors();
    cli.stop = cli_signals_install();
    status = dispatch(&cli, argc, argv, &err);
    if (status != CS_OK)
        complete_message(status, &err);
    status = flush_output(status, cli.out, &err);
    if (status != CS_OK)
        fprintf(stderr, "cosmic-search: %s%s\n", status == CS_ESTOPPED ? "" : "error: ", err.text);
    return exit_code(status, *cli.stop);
}
