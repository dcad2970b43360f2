/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Any bytes as a conversation with serve: lines are requests.  Every answer must be one line. */
#include "tests/fuzz/problem.h"

typedef struct {
    char *at, *end; /* what is left of the input */
    size_t lines, answers;
} talk;

static bool next_line(void *context, const char **line, size_t *length)
{
    talk *t = context;
    char *newline;

    if (t->at >= t->end || t->lines >= 32)
        return false;
    newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
    if (newline == NULL)
        newline = t->end;
    *newline = '\0'; /* there is room for one at the end */
    *line = t->at;
    *length = (size_t)(newline - t->at);
    t->at = newline + 1;
    t->lines++;
    return true;
}

static bool check_answer(void *context, const char *line, size_t length)
{
    talk *t = context;

    if (length < 2 || line[0] != '{' || memchr(line, '\n', length) != NULL)
        abort();
    return ++t->answers == t->lines || (abort(), false);
}

static const search_problem *problem(void)
{
    static const search_problem_options options = {.psa_path = "configs/psa/llama3-70b-h100.yaml"};
    static search_problem kept;
    cs_error err;

    if (kept.space == NULL && search_problem_load(&options, &kept, &err) != CS_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return &kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const agent_type *chosen = NULL;
    search_serve_options options = {.evaluations = 6, .seed = 1, .jobs = 1};
    talk t = {.at = malloc(size + 1)};
    search_channel channel = {next_line, check_answer, &t};
    char *bytes = t.at;
    search_outcome out;
    cs_error err;

    if (bytes == NULL || agent_find("random", &chosen, &err) != CS_OK)
        abort();
    memcpy(bytes, data, size);
    t.end = bytes + size;
    options.agent = size % 2 == 0 ? chosen : NULL;
    if (search_serve(problem(), &options, &channel, &out, &err) == CS_OK)
        search_outcome_fini(&out);
    free(bytes);
    return 0;
}

static const char *const seeds[] = {
    "{\"cmd\":\"describe\"}\n{\"cmd\":\"sample\",\"n\":3}\n{\"cmd\":\"best\"}\n{\"cmd\":\"quit\"}"
    "\n",
    "{\"cmd\":\"evaluate\",\"designs\":[{\"workload.dp\":16,\"workload.tp\":8,\"workload.pp\":4},"
    "{\"index\":[4,3,0,2,1,1,0,0,0,0]},{\"point\":[0,0,0,0,0,0]}]}\n{\"cmd\":\"best\"}\n",
    "{\"cmd\":\"ask\"}\n{\"cmd\":\"tell\"}\n{\"cmd\":\"ask\"}\n{\"cmd\":\"best\"}\n\n",
    "{\"cmd\":\"ask\"}\n{\"cmd\":\"tell\",\"results\":[{\"objectives\":[1.5]},{\"violation\":0.5}]}"
    "\n ",
    "{\"cmd\":\"evaluate\",\"designs\":[{\"workload.dp\":\"16\",\"placement\":\"tp sp ep dp pp\","
    "\"workload.tp_sequence\":true,\"workload.sharding\":\"none\"}]}\n",
};

size_t fuzz_seeds(void)
{
    return CS_COUNT(seeds);
}

size_t fuzz_seed(size_t k, uint8_t *bytes, size_t capacity)
{
    return fuzz_text(seeds[k], bytes, capacity);
}
