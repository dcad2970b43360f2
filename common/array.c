/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Arrays that grow. */
#include "common/common.h"

#include <stdlib.h>

enum { FIRST_ROOM = 16 };

void *cs_room(void *array, size_t *capacity, size_t want, size_t size)
{
    size_t grown = *capacity < FIRST_ROOM ? FIRST_ROOM : *capacity + *capacity / 2;
    void *larger;

    if (want <= *capacity && array != NULL)
        return array;
    if (grown < want)
        grown = want;
    if (size == 0 || grown > SIZE_MAX / 2 / size)
        return NULL;
    larger = realloc(array, grown * size);
    if (larger != NULL)
        *capacity = grown;
    return larger;
}
