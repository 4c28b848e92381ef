/*
 * error.c - the last error of each thread, and the words for each code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Longer words are cut: an address, two values and a remedy fit well. */
#define ERROR_TEXT_BYTES 512

static _Thread_local char last_text[ERROR_TEXT_BYTES];

int lh_fail(enum lh_error code, const char *format, ...)
{
    assert(code > 0);
    /* Not formatted in place: callers wrap the former error with "%s", lh_last_error(). */
    char text[ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        text[0] = '\0';
    memcpy(last_text, text, strlen(text) + 1);
    return -(int)code;
}

const char *lh_last_error(void)
{
    return last_text;
}

bool lh_error_known(int code)
{
    switch (code) {
#define ERROR_KNOWN(name, number, words) case number:
        LH_ERRORS(ERROR_KNOWN)
#undef ERROR_KNOWN
        return true;
    default:
        return false;
    }
}

const char *lh_strerror(int code)
{
    switch (code < 0 ? 0u - (unsigned)code : (unsigned)code) {
    case 0:
        return "success";
#define ERROR_WORDS(name, number, words)                                                                   \
    case number:                                                                                           \
        return words;
        LH_ERRORS(ERROR_WORDS)
#undef ERROR_WORDS
    default:
        return "unknown error";
    }
}
