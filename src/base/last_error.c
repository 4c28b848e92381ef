/*
 * last_error.c - the last error of each thread, and the text of each code.
 *
 * Apart from error.c: that one is in both libraries, this one, with its state, only in liblonghaul.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/error.h"

#include <string.h>

static _Thread_local char last_text[LH_ERROR_TEXT_BYTES];

int lh_error_set(int code, const char *text)
{
    size_t bytes = strnlen(text, sizeof last_text - 1);
    memmove(last_text, text, bytes); /* it may be lh_last_error() */
    last_text[bytes] = '\0';
    return code < 0 ? code : -code;
}

const char *lh_last_error(void)
{
    return last_text;
}

const char *lh_strerror(int code)
{
    switch (code < 0 ? 0u - (unsigned)code : (unsigned)code) {
    case 0:
        return "success";
#define ERROR_TEXT(name, number, text)                                                                     \
    case number:                                                                                           \
        return text;
        LH_ERRORS(ERROR_TEXT)
#undef ERROR_TEXT
    default:
        return "unknown error";
    }
}
