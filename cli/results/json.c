/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/results/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal/terminal.h"

/* ---- json ------------------------------------------------------------------------------------------ */

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
        else if (!cli_text_is_clean(text, length)) /* in UTF-8: one byte, or C2 and its number */
            fprintf(out, "\\u%04x", (unsigned char)text[length - 1]);
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
    if (json->depth && !json->line)
        fprintf(json->out, "\n%*s", (int)(2 * json->depth), "");
    json->filled = 1;
    if (name) {
        write_text(json->out, name);
        fputs(json->line ? ":" : ": ", json->out);
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
    if (json->filled && !json->line)
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

/* ---- json read ------------------------------------------------------------------------------------- */

/* A longer number has digits that no double holds. */
#define NUMBER_MAX 64

static bool read_value(struct cli_json_cursor *cursor, unsigned depth, struct cli_json_value *value);

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static void skip_blanks(struct cli_json_cursor *cursor)
{
    while (cursor->at < cursor->end && is_one_of(*cursor->at, " \t\r\n"))
        cursor->at++;
}

static bool take(struct cli_json_cursor *cursor, char wanted)
{
    if (cursor->at == cursor->end || *cursor->at != wanted)
        return false;
    cursor->at++;
    return true;
}

static bool take_word(struct cli_json_cursor *cursor, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool is_digit(const struct cli_json_cursor *cursor)
{
    return cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9';
}

static bool take_digits(struct cli_json_cursor *cursor)
{
    if (!is_digit(cursor))
        return false;
    while (is_digit(cursor))
        cursor->at++;
    return true;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind the backslash. */
static bool take_escape(struct cli_json_cursor *cursor)
{
    if (cursor->at == cursor->end || !is_one_of(*cursor->at, "\"\\/bfnrtu"))
        return false;
    bool coded = *cursor->at++ == 'u';
    for (unsigned i = 0; coded && i < 4; i++)
        if (cursor->at == cursor->end || !is_hex(*cursor->at++))
            return false;
    return true;
}

/* Behind the quote, up to the next one. */
static bool read_text(struct cli_json_cursor *cursor, struct cli_json_value *value)
{
    value->kind = CLI_JSON_TEXT;
    value->text = cursor->at;
    while (cursor->at < cursor->end && *cursor->at != '"') {
        size_t bytes = cli_utf8_bytes(cursor->at, (size_t)(cursor->end - cursor->at));
        bool escape = *cursor->at == '\\';
        if (!bytes || (unsigned char)*cursor->at < 0x20)
            return false;
        cursor->at += bytes;
        if (escape && !take_escape(cursor))
            return false;
    }
    value->bytes = (size_t)(cursor->at - value->text);
    return take(cursor, '"');
}

/* RFC 8259, section 6: no plus, no leading zeros, digits on both sides of the point. */
static bool read_number(struct cli_json_cursor *cursor, struct cli_json_value *value)
{
    char copy[NUMBER_MAX];
    value->kind = CLI_JSON_NUMBER;
    value->text = cursor->at;
    take(cursor, '-');
    if (!take(cursor, '0') && !take_digits(cursor))
        return false;
    if (is_digit(cursor))
        return false;
    if (take(cursor, '.') && !take_digits(cursor))
        return false;
    if (take(cursor, 'e') || take(cursor, 'E')) {
        if (!take(cursor, '+'))
            take(cursor, '-');
        if (!take_digits(cursor))
            return false;
    }
    value->bytes = (size_t)(cursor->at - value->text);
    if (value->bytes >= sizeof copy)
        return false;
    memcpy(copy, value->text, value->bytes);
    copy[value->bytes] = 0;
    value->number = strtod(copy, NULL);
    return isfinite(value->number);
}

/* `"name": value` */
static bool read_member(struct cli_json_cursor *cursor, unsigned depth, struct cli_json_value *name,
                        struct cli_json_value *value)
{
    skip_blanks(cursor);
    if (!take(cursor, '"') || !read_text(cursor, name))
        return false;
    skip_blanks(cursor);
    return take(cursor, ':') && read_value(cursor, depth, value);
}

/* Behind the opening bracket. */
static bool read_inside(struct cli_json_cursor *cursor, char close, unsigned depth)
{
    struct cli_json_value name, value;
    if (depth == CLI_JSON_DEPTH_MAX)
        return false;
    skip_blanks(cursor);
    if (take(cursor, close))
        return true;
    /* Each round takes bytes off the cursor. */
    do {
        bool right = close == '}' ? read_member(cursor, depth + 1, &name, &value)
                                  : read_value(cursor, depth + 1, &value);
        if (!right)
            return false;
    } while (take(cursor, ','));
    return take(cursor, close);
}

static bool read_brackets(struct cli_json_cursor *cursor, unsigned depth, struct cli_json_value *value)
{
    bool object = *cursor->at == '{';
    value->kind = object ? CLI_JSON_OBJECT : CLI_JSON_ARRAY;
    value->text = cursor->at++;
    if (!read_inside(cursor, object ? '}' : ']', depth))
        return false;
    value->bytes = (size_t)(cursor->at - value->text);
    return true;
}

static bool read_word(struct cli_json_cursor *cursor, struct cli_json_value *value)
{
    value->text = cursor->at;
    value->kind = *cursor->at == 'n' ? CLI_JSON_NULL : CLI_JSON_BOOL;
    if (!take_word(cursor, "null") && !take_word(cursor, "true") && !take_word(cursor, "false"))
        return false;
    value->bytes = (size_t)(cursor->at - value->text);
    return true;
}

static bool read_value(struct cli_json_cursor *cursor, unsigned depth, struct cli_json_value *value)
{
    bool right;
    *value = (struct cli_json_value){0};
    skip_blanks(cursor);
    if (cursor->at == cursor->end)
        return false;
    if (take(cursor, '"'))
        right = read_text(cursor, value);
    else if (*cursor->at == '{' || *cursor->at == '[')
        right = read_brackets(cursor, depth, value);
    else if (*cursor->at == '-' || is_digit(cursor))
        right = read_number(cursor, value);
    else
        right = read_word(cursor, value);
    skip_blanks(cursor);
    return right;
}

bool cli_json_read(struct cli_json_cursor *cursor, struct cli_json_value *value)
{
    return read_value(cursor, 0, value);
}

struct cli_json_cursor cli_json_enter(const struct cli_json_value *object)
{
    return (struct cli_json_cursor){object->text + 1, object->text + object->bytes - 1};
}

bool cli_json_next(struct cli_json_cursor *inside, struct cli_json_value *name,
                   struct cli_json_value *value)
{
    skip_blanks(inside);
    if (inside->at == inside->end || !read_member(inside, 1, name, value))
        return false;
    take(inside, ',');
    return true;
}
