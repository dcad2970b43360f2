/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "common/common.h"

#include <stdio.h>
#include <string.h>

const char *cs_status_text(cs_status status)
{
    switch (status) {
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        CS_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

cs_status cs_fail(cs_error *err, cs_status status, const char *fmt, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
    }
    return status;
}

void cs_error_append(cs_error *err, const char *fmt, ...)
{
    va_list args;
    size_t used;

    if (err == NULL)
        return;
    used = strlen(err->text);
    va_start(args, fmt);
    (void)vsnprintf(err->text + used, sizeof err->text - used, fmt, args);
    va_end(args);
}

const char *cs_version(void)
{
    return CS_VERSION;
}
