/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_rules.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/options/cli_options.h"
#include "cli/terminal/terminal.h"

/* ---- tokens ---------------------------------------------------------------------------------------- */

/* A pattern is a sequence of these. */
enum token_kind { TOKEN_BYTE, TOKEN_ANY_BYTE, TOKEN_SET, TOKEN_NAME_PART, TOKEN_PATH_PART };

struct token {
    enum token_kind kind;
    unsigned char byte; /* TOKEN_BYTE */
    const char *set;    /* TOKEN_SET: behind [, ! and ^, up to its ] */
    const char *set_end;
    bool inverted;
};

/* The end of a set that begins behind '['; a ']' that is its first byte belongs to it. NULL: none. */
static const char *find_set_end(const char *set)
{
    return *set ? strchr(set + 1, ']') : NULL;
}

/* Without one of these a pattern is plain text, and a backslash is a byte of it. */
static bool is_wild(const char *pattern)
{
    return strpbrk(pattern, "*?[");
}

/* The token that a pattern begins with; returns the rest of the pattern. It is one that
 * cli_tree_pattern_wrong() lets pass. */
static const char *next_token(const char *at, bool wild, struct token *token)
{
    *token = (struct token){.kind = TOKEN_BYTE, .byte = (unsigned char)*at};
    if (!wild)
        return at + 1;
    if (*at == '?') {
        token->kind = TOKEN_ANY_BYTE;
    } else if (*at == '*') {
        size_t stars = strspn(at, "*");
        token->kind = stars > 1 ? TOKEN_PATH_PART : TOKEN_NAME_PART;
        return at + stars;
    } else if (*at == '\\') {
        token->byte = (unsigned char)*++at;
    } else if (*at == '[') {
        token->kind = TOKEN_SET;
        token->inverted = at[1] == '!' || at[1] == '^';
        token->set = at + 1 + token->inverted;
        token->set_end = find_set_end(token->set);
        at = token->set_end;
    }
    return at + 1;
}

static bool in_set(const struct token *token, unsigned char byte)
{
    const unsigned char *at = (const unsigned char *)token->set,
                        *end = (const unsigned char *)token->set_end;
    bool found = false;
    while (at < end) { /* each byte or range */
        bool range = at + 2 < end && at[1] == '-';
        found = found || (range ? byte >= at[0] && byte <= at[2] : byte == at[0]);
        at += range ? 3 : 1;
    }
    return found != token->inverted && byte != '/';
}

static bool takes(const struct token *token, unsigned char byte)
{
    switch (token->kind) {
    case TOKEN_BYTE:
        return byte == token->byte;
    case TOKEN_ANY_BYTE:
    case TOKEN_NAME_PART:
        return byte != '/';
    case TOKEN_SET:
        return in_set(token, byte);
    default:
        return true;
    }
}

/* ---- matching -------------------------------------------------------------------------------------- */

/* States of the pattern after a byte: place i is reached when the tokens before it took all bytes so far. */
struct places {
    bool reached[CLI_TREE_PATTERN_MAX + 3];
};

/* Reaches a place; and those behind it, as long as tokens take nothing. */
static void reach(struct places *places, const struct token *tokens, unsigned count, unsigned place)
{
    places->reached[place] = true;
    while (place < count &&
           (tokens[place].kind == TOKEN_NAME_PART || tokens[place].kind == TOKEN_PATH_PART))
        places->reached[++place] = true;
}

static void step(const struct places *before, struct places *after, const struct token *tokens,
                 unsigned count, unsigned char byte)
{
    memset(after->reached, 0, count + 1);
    for (unsigned i = 0; i < count; i++) {
        if (!before->reached[i] || !takes(&tokens[i], byte))
            continue;
        bool repeats = tokens[i].kind == TOKEN_NAME_PART || tokens[i].kind == TOKEN_PATH_PART;
        reach(after, tokens, count, repeats ? i : i + 1);
    }
}

/* Whether the tokens take all of the text; free: or its end behind a slash. */
static bool matches(const struct token *tokens, unsigned count, const char *text, bool free)
{
    struct places one = {{false}}, other;
    struct places *before = &one, *after = &other;
    reach(before, tokens, count, 0);
    for (; *text; text++) { /* each byte */
        step(before, after, tokens, count, (unsigned char)*text);
        if (free && *text == '/')
            reach(after, tokens, count, 0);
        struct places *swapped = before;
        before = after;
        after = swapped;
    }
    return before->reached[count];
}

/* ---- patterns -------------------------------------------------------------------------------------- */

const char *cli_tree_pattern_wrong(const char *pattern)
{
    size_t bytes = strlen(pattern);
    if (!bytes || !strcmp(pattern, "/"))
        return "is empty";
    if (bytes > CLI_TREE_PATTERN_MAX)
        return "is longer than 1023 bytes";
    bool wild = is_wild(pattern);
    while (wild && *pattern) { /* each token */
        struct token token;
        const char *set = pattern + 1 + (pattern[1] == '!' || pattern[1] == '^');
        if (*pattern == '\\' && !pattern[1])
            return "ends in a backslash";
        if (*pattern == '[' && !find_set_end(set))
            return "has a [ without its ]";
        pattern = next_token(pattern, wild, &token);
        if (token.kind == TOKEN_SET && memmem(token.set, (size_t)(token.set_end - token.set), "[:", 2))
            return "has a class such as [:alpha:], which is not taken (write a range: [a-z])";
    }
    return NULL;
}

/* "dir/" and "dir/" with three stars. */
struct shape {
    const char *pattern;
    size_t bytes; /* of it */
    bool anchored, folders, content;
};

static struct shape shape_of(const char *pattern)
{
    struct shape shape = {.pattern = pattern, .bytes = strlen(pattern), .anchored = *pattern == '/'};
    shape.pattern += shape.anchored;
    shape.bytes -= shape.anchored;
    shape.content = shape.bytes > 4 && !strcmp(shape.pattern + shape.bytes - 4, "/***");
    shape.bytes -= shape.content ? 4 : 0;
    shape.folders = !shape.content && shape.bytes > 1 && shape.pattern[shape.bytes - 1] == '/';
    shape.bytes -= shape.folders;
    return shape;
}

/* content: what is in the folder, not the folder. */
static bool matches_shape(const struct shape *shape, const char *path, bool content)
{
    static _Thread_local struct token tokens[CLI_TREE_PATTERN_MAX + 2];
    const char *at = shape->pattern, *end = shape->pattern + shape->bytes, *slash = strrchr(path, '/');
    unsigned count = 0;
    bool of_path =
        shape->anchored || content || memchr(at, '/', shape->bytes) || memmem(at, shape->bytes, "**", 2);
    bool wild = shape->content || is_wild(shape->pattern);
    while (at < end)
        at = next_token(at, wild, &tokens[count++]);
    if (content) {
        tokens[count++] = (struct token){.kind = TOKEN_BYTE, .byte = '/'};
        tokens[count++] = (struct token){.kind = TOKEN_PATH_PART};
    }
    assert(count <= CLI_TREE_PATTERN_MAX);
    return matches(tokens, count, of_path || !slash ? path : slash + 1, of_path && !shape->anchored);
}

bool cli_tree_pattern_matches(const char *pattern, const char *path, bool folder)
{
    const struct shape shape = shape_of(pattern);
    if (shape.content && matches_shape(&shape, path, true))
        return true;
    return (folder || (!shape.folders && !shape.content)) && matches_shape(&shape, path, false);
}

/* ---- rules ----------------------------------------------------------------------------------------- */

/* Where on the command line a text stands. */
static int place_of(const char *text, int argc, char *const argv[])
{
    for (int i = 0; i < argc; i++)
        if (text >= argv[i] && text <= argv[i] + strlen(argv[i]))
            return i;
    return argc;
}

int cli_tree_rules_read(const struct cli_texts *includes, const struct cli_texts *excludes, int argc,
                        char *const argv[], struct cli_tree_rules *rules)
{
    unsigned in = 0, out = 0;
    rules->count = 0;
    while (in < includes->count || out < excludes->count) { /* each of both, in their order */
        bool first = out == excludes->count ||
                     (in < includes->count &&
                      place_of(includes->text[in], argc, argv) < place_of(excludes->text[out], argc, argv));
        const char *pattern = first ? includes->text[in++] : excludes->text[out++];
        const char *wrong = cli_tree_pattern_wrong(pattern);
        if (wrong)
            return cli_misused("--%s %s: the pattern %s", first ? "include" : "exclude", pattern, wrong);
        rules->rules[rules->count++] = (struct cli_tree_rule){.pattern = pattern, .includes = first};
    }
    return CLI_PROCEED;
}

bool cli_tree_rules_exclude(const struct cli_tree_rules *rules, const char *path, bool folder)
{
    for (unsigned i = 0; rules && i < rules->count; i++)
        if (cli_tree_pattern_matches(rules->rules[i].pattern, path, folder))
            return !rules->rules[i].includes;
    return false;
}
