/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/json.h"

#include "cli/terminal/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names of files may hold any bytes; those that are no text become U+FFFD, the replacement character. */
static void write_text(FILE *out, const char *text)
{
    size_t left = strlen(text), length = 0;
    fputc('"', out);
    for (; left; left -= length, text += length) {
        unsigned char byte = (unsigned char)*text;
        length = cli_utf8_bytes(text, left);
        if (!length)
            fputs("\\ufffd", out);
        else if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20)
            fprintf(out, "\\u%04x", byte);
        else
            fwrite(text, 1, length, out);
        length += !length;
    }
    fputc('"', out);
}

static void start_member(struct cli_json *json, const char *name)
{
    if (json->filled)
        fputc(',', json->out);
    if (json->depth)
        fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
    json->filled = 1;
    if (name) {
        write_text(json->out, name);
        fputs(": ", json->out);
    }
}

void cli_json_open(struct cli_json *json, const char *name, char bracket)
{
    start_member(json, name);
    fputc(bracket, json->out);
    json->depth++;
    json->filled = 0;
}

void cli_json_close(struct cli_json *json, char bracket)
{
    json->depth--;
    if (json->filled)
        fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
    fputc(bracket, json->out);
    json->filled = 1;
}

void cli_json_text(struct cli_json *json, const char *name, const char *text)
{
    start_member(json, name);
    write_text(json->out, text);
}

void cli_json_count(struct cli_json *json, const char *name, uint64_t value)
{
    start_member(json, name);
    fprintf(json->out, "%" PRIu64, value);
}

void cli_json_number(struct cli_json *json, const char *name, double value)
{
    char text[40] = "null";
    /* The shortest of the two that is exact: 15 digits mostly do, 17 always. */
    if (isfinite(value))
        snprintf(text, sizeof text, "%.15g", value);
    if (isfinite(value) && strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    start_member(json, name);
    fputs(text, json->out);
}

void cli_json_end(struct cli_json *json)
{
    fputc('\n', json->out);
}
