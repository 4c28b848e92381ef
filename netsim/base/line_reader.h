/*
 * line_reader.h - texts of lines and words: topologies, lists of flows, distributions.
 *
 * Words are separated by spaces and tabs. What follows a '#' is a comment; lines without a word are passed
 * over. A carriage return at the end of a line is taken as a space. Every other control character, and
 * every byte from 127 on outside a comment, is refused, so that a binary file is noticed at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_BASE_LINE_READER_H
#define LH_NETSIM_BASE_LINE_READER_H

#include <longhaul/error.h>

#include "netsim/base/netsim_config.h"

#define NETSIM_LINE_BYTES_MAX 512u /* without the comment */
#define NETSIM_LINE_WORDS_MAX 24u

struct netsim_line_reader {
    const char *name; /* of the text, for errors: a file, or the key that it belongs to */
    const char *at;
    const char *end;
    uint32_t lines; /* read so far */
};

struct netsim_line {
    const char *name;
    uint32_t number; /* from 1 */
    uint32_t words_count;
    const char *words[NETSIM_LINE_WORDS_MAX]; /* in text, each with a final zero */
    char text[NETSIM_LINE_BYTES_MAX + 1];
};

/* What errors call a text: by its name, or by its key ("topology.file") when it has none. */
const char *netsim_text_name(const struct netsim_text *text, const char *key);
/* A text without a name goes by its key ("topology.file"). */
void netsim_line_reader_init(struct netsim_line_reader *reader, const char *key,
                             const struct netsim_text *text);
/* 1: the next line that has words; 0: there is none; -LH_EINVAL with the line named in lh_last_error(). */
int netsim_line_next(struct netsim_line_reader *reader, struct netsim_line *line);

/* lh_fail() with "topology.file:7: " before the words. */
__attribute__((format(printf, 3, 4))) int netsim_line_fail(const struct netsim_line *line,
                                                           enum lh_error code, const char *format, ...);
/* As lh_last_error() has it, with the line before it. `rc` is the negative code, and is returned. */
int netsim_line_blame(const struct netsim_line *line, int rc);
/* Reads a whole number of at most `most`. Else -LH_EINVAL or -LH_ERANGE with `what` it is in the words. */
int netsim_line_number(const struct netsim_line *line, const char *what, const char *word, uint32_t maximum,
                       uint32_t *number);

#endif
