/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/sdk_warning.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_BYTES 512u

void sdk_warn(struct sdr_context *context, enum sdk_warning kind, const char *format, ...)
{
    if (atomic_fetch_or(&context->warned, (uint32_t)kind) & (uint32_t)kind)
        return;
    char line[LINE_MAX_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* In one piece: several processes may share a log. */
    fprintf(stderr, "longhaul: %s\n", line);
}
