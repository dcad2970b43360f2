/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Rows of a study as trials, each checked: a damaged file must not lead out of bounds. */
#include "search/search_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False when the row is not a trial of this space. */
static bool read_trial(const psa_space *space, const search__row *row, search_trial *trial,
                       int32_t *point)
{
    const size_t n = psa_space_n_vars(space);

    if (row->status < SEARCH_FEASIBLE || row->status > SEARCH_INVALID ||
        !search__unpack_point(row->point, row->point_bytes, point, n) ||
        !search__unpack_result(row->result, row->result_bytes, &trial->result))
        return false;
    for (size_t v = 0; v < n && row->status != SEARCH_INVALID; v++)
        if (point[v] < 0 || point[v] >= psa_space_card(space, v))
            return false;
    trial->id = row->id;
    trial->status = (search_status)row->status;
    trial->violation = row->violation;
    (void)snprintf(trial->reason, sizeof trial->reason, "%s", row->reason);
    memcpy(trial->objective, row->objective, sizeof trial->objective);
    trial->point = point;
    return true;
}

typedef struct {
    const search__reader *to;
    int32_t *point;
    uint64_t damaged; /* id of a row that cannot be read, 0: none */
} reading;

static bool on_row(void *context, const search__row *row)
{
    reading *r = context;
    search_trial trial;

    if (!read_trial(r->to->problem->space, row, &trial, r->point)) {
        r->damaged = row->id;
        return false;
    }
    return r->to->fn(r->to->context, &trial);
}

cs_status search__read_trials(const search__reader *reader, uint64_t first, uint64_t last,
                              cs_error *err)
{
    cs_status status;
    /* Its own point, so that fn may read the study too. */
    reading r = {.to = reader,
                 .point = calloc(psa_space_n_vars(reader->problem->space) + 1, sizeof *r.point)};

    if (r.point == NULL)
        return cs_fail(err, CS_ENOMEM, "study");
    CS_TRY(search__store_each(reader->store, first, last, on_row, &r, err));
    if (r.damaged > 0)
        status = cs_fail(err, CS_EIO, "the study is damaged: trial %" PRIu64 " cannot be read",
                         r.damaged);
done:
    free(r.point);
    return status;
}
