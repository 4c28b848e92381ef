/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include <longhaul/error.h>
#include <longhaul/longhaul.h>

/* ---- error ----------------------------------------------------------------------------------------- */

/* An error's text, formatted. */

int lh_fail(enum lh_error code, const char *format, ...)
{
    assert(code > 0);
    /* Not formatted in place: callers wrap the former error with "%s", lh_last_error(). */
    char text[LH_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0)
        text[0] = '\0';
    return lh_error_set((int)code, text);
}

int lh_fail_if_null(const char *call, const char *argument, const void *pointer)
{
    return pointer ? 0 : lh_fail(LH_EINVAL, "%s: %s is NULL", call, argument);
}

bool lh_error_known(int code)
{
    switch (code) {
#define ERROR_KNOWN(name, number, text) case number:
        LH_ERRORS(ERROR_KNOWN)
#undef ERROR_KNOWN
        return true;
    default:
        return false;
    }
}

/* ---- version --------------------------------------------------------------------------------------- */

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *lh_version(void)
{
    return TEXT(LH_VERSION_MAJOR) "." TEXT(LH_VERSION_MINOR) "." TEXT(LH_VERSION_PATCH);
}
