/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What every test includes: cmocka with the headers it needs before it, and a comparison of
 * doubles (cmocka's own compares floats). */
#ifndef TEST_H
#define TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Relative comparison; exact zeros compare exactly. */
#define assert_close(actual, expect, tolerance)                                                    \
    do {                                                                                           \
        double actual_ = (actual), expect_ = (expect);                                             \
        if (!(fabs(actual_ - expect_) <= (tolerance)*fabs(expect_)))                               \
            fail_msg("%s = %.17g, expected %.17g", #actual, actual_, expect_);                     \
    } while (0)

#endif
