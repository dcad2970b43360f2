/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Names of topologies and algorithms, axis orders, bandwidth sums. */
#include "sim/network.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const sim_topology_names[] = {"ring", "fully_connected", "switch", "mesh", NULL};
const char *const sim_algorithm_names[] = {"ring", "direct", "halving_doubling",
                                           "double_binary_tree", NULL};
_Static_assert(CS_COUNT(sim_topology_names) == SIM_N_TOPOLOGIES + 1, "a name for each topology");
_Static_assert(CS_COUNT(sim_algorithm_names) == SIM_N_ALGOS + 1, "a name for each algorithm");

enum { NIBBLE = 4, MASK = 15 };

static int find_axis(const char *word, size_t length)
{
    for (int a = 0; a < WL_N_AXES; a++)
        if (strlen(wl_axis_names[a]) == length && strncmp(wl_axis_names[a], word, length) == 0)
            return a;
    return -1;
}

/* The axis of the next word of *text; -1 at the end, -2 for a word that is none. */
static int next_axis(const char **text, char word[16])
{
    size_t length = 0;
    const char *start;

    while (isspace((unsigned char)**text))
        ++*text;
    start = *text;
    while (**text != '\0' && !isspace((unsigned char)**text))
        ++*text;
    length = (size_t)(*text - start);
    if (length == 0)
        return -1;
    snprintf(word, 16, "%.*s", (int)(length < 15 ? length : 15), start);
    length = strlen(word);
    return find_axis(word, length) >= 0 ? find_axis(word, length) : -2;
}

static cs_status collect_axes(const char *text, int axis[WL_N_AXES], int *n, cs_error *err)
{
    unsigned seen = 0;
    char word[16] = "";

    for (int a = next_axis(&text, word); a != -1; a = next_axis(&text, word)) {
        if (a < 0) {
            const char *near = cs_nearest(word, wl_axis_names, WL_N_AXES);
            return cs_fail(err, CS_EINVAL,
                           "placement: \"%s\" is no axis (tp, sp, ep, dp, pp)%s%s%s", word,
                           near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                           near != NULL ? "\"?" : "");
        }
        if ((seen & (1u << a)) != 0)
            return cs_fail(err, CS_EINVAL, "placement: axis %s is given twice", word);
        seen |= 1u << a;
        axis[(*n)++] = a;
    }
    for (int a = 0; a < WL_N_AXES; a++)
        if (a != WL_EP && (seen & (1u << a)) == 0)
            return cs_fail(err, CS_EINVAL, "placement: axis %s is missing", wl_axis_names[a]);
    return CS_OK;
}

cs_status sim_order_parse(const char *text, int32_t *out, cs_error *err)
{
    int axis[WL_N_AXES], n = 0;
    int32_t order = 0;
    cs_status status = CS_OK;
    int place = 0;

    CS_TRY(collect_axes(text, axis, &n, err));
    for (int i = 0; i < n; i++) {
        if (n < WL_N_AXES && axis[i] == WL_DP)
            order |= WL_EP << (NIBBLE * place++);
        order |= axis[i] << (NIBBLE * place++);
    }
    *out = order;
done:
    return status;
}

const char *sim_order_format(int32_t order, char text[64])
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < WL_N_AXES; i++) {
        int axis = (order >> (NIBBLE * i)) & MASK;
        const char *name = axis < WL_N_AXES ? wl_axis_names[axis] : "?";
        used += (size_t)snprintf(text + used, 64 - used, "%s%s", i > 0 ? " " : "", name);
    }
    return text;
}

double sim_network_bandwidth(const sim_network *net)
{
    double sum = 0;

    for (size_t d = 0; d < net->n_dims; d++)
        if (net->dim[d].n > 1)
            sum += net->dim[d].bandwidth_bytes_per_s;
    return sum;
}

double sim_bus_factor(wl_collective type, int64_t n)
{
    double share = n > 0 ? (double)(n - 1) / (double)n : 0;

    if (type == WL_ALL_REDUCE)
        return 2 * share;
    if (type == WL_BROADCAST || type == WL_REDUCE)
        return 1;
    return share;
}
