/*
 * line_reader.c - see line_reader.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/base/line_reader.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

void netsim_line_reader_init(struct netsim_line_reader *reader, const char *key,
                             const struct netsim_text *text)
{
    assert(text->data != NULL || text->bytes == 0);
    *reader = (struct netsim_line_reader){
        .name = netsim_text_name(text, key), .at = text->data, .end = text->data};
    if (text->bytes > 0)
        reader->end += text->bytes;
}

const char *netsim_text_name(const struct netsim_text *text, const char *key)
{
    return text->name != NULL ? text->name : key;
}

int netsim_line_fail(const struct netsim_line *line, enum lh_error code, const char *format, ...)
{
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return lh_fail(code, "%s:%u: %s", line->name, line->number, words);
}

int netsim_line_blame(const struct netsim_line *line, int rc)
{
    assert(rc < 0);
    return netsim_line_fail(line, (enum lh_error)(-rc), "%s", lh_last_error());
}

/* The text of the line into line->text, with spaces for what separates words. */
static int take_text(struct netsim_line *line, const char *from, size_t bytes)
{
    const char *comment = memchr(from, '#', bytes);
    if (comment != NULL)
        bytes = (size_t)(comment - from);
    if (bytes > NETSIM_LINE_BYTES_MAX)
        return netsim_line_fail(line, LH_EINVAL, "line longer than %u characters (is this the right file?)",
                                NETSIM_LINE_BYTES_MAX);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)from[i];
        bool separates = c == ' ' || c == '\t' || (c == '\r' && i + 1 == bytes);
        if (!separates && (c < ' ' || c > '~'))
            return netsim_line_fail(line, LH_EINVAL, "byte 0x%02x is not text (is this the right file?)",
                                    c);
        line->text[i] = separates ? ' ' : from[i];
    }
    line->text[bytes] = '\0';
    return 0;
}

static int split(struct netsim_line *line)
{
    char *at = line->text;
    line->words_count = 0;
    for (at += strspn(at, " "); *at != '\0'; at += strspn(at, " ")) {
        if (line->words_count == NETSIM_LINE_WORDS_MAX)
            return netsim_line_fail(line, LH_EINVAL, "more than %u words (is this the right file?)",
                                    NETSIM_LINE_WORDS_MAX);
        line->words[line->words_count++] = at;
        at += strcspn(at, " ");
        if (*at != '\0')
            *at++ = '\0';
    }
    return 0;
}

int netsim_line_next(struct netsim_line_reader *reader, struct netsim_line *line)
{
    line->name = reader->name;
    /* Each turn passes over one line at least. */
    while (reader->at != reader->end) {
        size_t rest = (size_t)(reader->end - reader->at);
        const char *newline = memchr(reader->at, '\n', rest);
        size_t bytes = newline != NULL ? (size_t)(newline - reader->at) : rest;
        const char *from = reader->at;
        reader->at += newline != NULL ? bytes + 1 : bytes;
        line->number = ++reader->lines;
        int rc = take_text(line, from, bytes);
        if (rc == 0)
            rc = split(line);
        if (rc != 0)
            return rc;
        if (line->words_count > 0)
            return 1;
    }
    return 0;
}

int netsim_line_number(const struct netsim_line *line, const char *what, const char *word, uint32_t maximum,
                       uint32_t *number)
{
    struct lh_decimal decimal = {0};
    const char *at = word;
    int rc = lh_decimal_read(&at, &decimal);
    bool whole = rc == 0 && *at == '\0' && decimal.fraction_digits == 0;
    if (rc != -LH_ERANGE && !whole)
        return netsim_line_fail(line, LH_EINVAL, "%s \"%.64s\": not a whole number (0 to %u)", what, word,
                                maximum);
    if (rc == -LH_ERANGE || decimal.whole > maximum)
        return netsim_line_fail(line, LH_ERANGE, "%s %.64s: out of range (0 to %u)", what, word, maximum);
    *number = (uint32_t)decimal.whole;
    return 0;
}
