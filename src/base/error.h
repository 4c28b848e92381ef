/*
 * error.h - setting the last error of a thread, where it arises.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_ERROR_H
#define LH_BASE_ERROR_H

#include <longhaul/error.h>

/* Keeps the formatted text for lh_last_error() and returns -code. It names what was wrong, the value and the
 * remedy, and ends without a full stop or newline. */
__attribute__((format(printf, 2, 3))) int lh_fail(enum lh_error code, const char *format, ...);
/* 0; -LH_EINVAL: a pointer that the call needs is NULL. */
int lh_fail_if_null(const char *call, const char *argument, const void *pointer);
/* Whether a number that came from elsewhere is a code of LH_ERRORS. */
bool lh_error_known(int code);

/* With the final zero; longer texts are cut: an address, two values and a remedy fit well. */
#define LH_ERROR_TEXT_BYTES 512

#endif
