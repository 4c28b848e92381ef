/*
 * last_error.h - the last error of each thread, as the calls of <longhaul/error.h> set and read it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BASE_LAST_ERROR_H
#define LH_BASE_LAST_ERROR_H

#include <longhaul/error.h>

/* With the final zero; longer texts are cut: an address, two values and a remedy fit well. */
#define LH_ERROR_TEXT_BYTES 512

#endif
