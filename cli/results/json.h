/*
 * json.h - writing JSON: objects, arrays, numbers and text, with the commas and indents in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_RESULTS_JSON_H
#define LH_CLI_RESULTS_JSON_H

#include <stdint.h>
#include <stdio.h>

struct cli_json {
    FILE *out;
    unsigned depth;
    int filled; /* the object or array we are in has a member already */
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

#endif
