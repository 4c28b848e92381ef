/*
 * json.h - JSON: a writer with the commas and indents in place, and a reader.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_JSON_H
#define LH_CLI_RESULTS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_json {
    FILE *out;
    unsigned depth;
    int filled; /* the object or array we are in has a member already */
    bool line;  /* all on one line */
};

/* name: of a member of an object; NULL in an array or at the top. */
void cli_json_open(struct cli_json *json, const char *name, char bracket);
void cli_json_close(struct cli_json *json, char bracket);
void cli_json_text(struct cli_json *json, const char *name, const char *text);
void cli_json_count(struct cli_json *json, const char *name, uint64_t value);
/* Written so that it reads back as the same double; null when it is not a finite number. */
void cli_json_number(struct cli_json *json, const char *name, double value);
/* The newline at the end. */
void cli_json_end(struct cli_json *json);

/* ---- json read ------------------------------------------------------------------------------------- */

/* Reading JSON (RFC 8259) strictly, a value at a time, out of memory that it never copies. */

/* Objects and arrays in each other; more are refused. */
#define CLI_JSON_DEPTH_MAX 16

enum cli_json_kind {
    CLI_JSON_NULL,
    CLI_JSON_BOOL,
    CLI_JSON_NUMBER,
    CLI_JSON_TEXT,
    CLI_JSON_ARRAY,
    CLI_JSON_OBJECT
};

/* Position of a reader. */
struct cli_json_cursor {
    const char *at, *end;
};

/* A value as it is written; text is without its quotes, its escapes as they are. */
struct cli_json_value {
    enum cli_json_kind kind;
    const char *text;
    size_t bytes;
    double number; /* of CLI_JSON_NUMBER; always finite */
};

/* Reads one value, of whatever kind, with the blanks around it. False: there is none, and the cursor is
 * at the error. */
bool cli_json_read(struct cli_json_cursor *cursor, struct cli_json_value *value);

/* Members of an object in turn: cli_json_enter on its value, then cli_json_next until it returns false. The
 * object was read by cli_json_read, so it is right. */
struct cli_json_cursor cli_json_enter(const struct cli_json_value *object);
bool cli_json_next(struct cli_json_cursor *inside, struct cli_json_value *name,
                   struct cli_json_value *value);

#endif
