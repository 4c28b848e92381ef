/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/notice.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_BYTES 512u

void notice_print(struct sdr_context *context, enum notice kind, const char *format, ...)
{
    if (atomic_fetch_or(&context->notices, (uint32_t)kind) & (uint32_t)kind)
        return;
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* In one piece: several processes may share a log. */
    fprintf(stderr, "longhaul: %s\n", line);
}
