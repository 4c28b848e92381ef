/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_records.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/terminal/terminal.h"

/* ---- path ------------------------------------------------------------------------------------------ */

static const char *name_wrong(const char *name, size_t bytes)
{
    if (!bytes)
        return "has an empty name";
    if (bytes > CLI_FILE_NAME_MAX)
        return "has a name longer than 255 bytes";
    if ((bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.'))
        return "has the name . or ..";
    return NULL;
}

const char *cli_tree_path_wrong(const char *path, size_t bytes)
{
    if (!bytes)
        return "is empty";
    if (bytes > CLI_TREE_PATH_MAX)
        return "is longer than 4095 bytes";
    if (memchr(path, 0, bytes))
        return "contains a zero byte";
    for (size_t at = 0; at <= bytes;) { /* a name at a time */
        const char *slash = memchr(path + at, '/', bytes - at);
        size_t length = slash ? (size_t)(slash - path) - at : bytes - at;
        const char *wrong = name_wrong(path + at, length);
        if (wrong)
            return wrong;
        at += length + 1;
    }
    return NULL;
}

char *cli_tree_path_shown(const char *path, size_t bytes, char *out, size_t size)
{
    size_t used = 0;
    assert(size > 4);
    for (size_t at = 0; at < bytes && used + 5 <= size;) {
        size_t length = cli_utf8_bytes(path + at, bytes - at);
        bool plain = length && path[at] != '\\' && cli_text_is_clean(path + at, length);
        if (plain) {
            memcpy(out + used, path + at, length);
            used += length;
        } else {
            length = 1;
            used += (size_t)snprintf(out + used, size - used, "\\%03o", (unsigned char)path[at]);
        }
        at += length;
    }
    out[used] = 0;
    return out;
}

/* ---- table of kinds -------------------------------------------------------------------------------- */

#define HEADER           8u
#define ATTRIBUTES_BYTES 24u

/* Parts of a record besides its header; what its path and rest are. */
enum part {
    ATTRIBUTES = 1,
    NUMBER = 2,
    DIGEST = 4,
    PATH = 8,        /* one that cli_tree_path_wrong() lets pass */
    PATH_EMPTY = 16, /* or none */
    REST_TEXT = 32,
    REST_PATH = 64,
    REST_TARGET = 128,
    REST_BYTES = 256, /* one or more */
    POSITIVE = 512,   /* the number */
    REST_XATTR = 1024,
};

struct shape {
    enum cli_tree_kind kind;
    unsigned parts;
    uint8_t flags; /* known ones */
};

/* Flags that a getter asks for, and ROOT repeats. */
#define ASKED (CLI_TREE_DRY_RUN | CLI_TREE_DELETES | CLI_TREE_XATTRS | CLI_TREE_OWNERS)

static const struct shape shapes[] = {
    {CLI_TREE_ROOT, NUMBER | PATH | PATH_EMPTY, CLI_TREE_PIPE | ASKED},
    {CLI_TREE_LISTED, ATTRIBUTES | PATH, 0},
    {CLI_TREE_FOLDER, ATTRIBUTES | PATH, 0},
    {CLI_TREE_FOLDER_END, ATTRIBUTES | PATH, 0},
    {CLI_TREE_LINK, ATTRIBUTES | PATH | REST_TARGET, 0},
    {CLI_TREE_HARD_LINK, ATTRIBUTES | PATH | REST_PATH, 0},
    {CLI_TREE_FILE, ATTRIBUTES | NUMBER | PATH, CLI_TREE_SPARSE | CLI_TREE_CHANGED},
    {CLI_TREE_DATA, REST_BYTES, 0},
    {CLI_TREE_HOLE, NUMBER | POSITIVE, 0},
    {CLI_TREE_FILE_END, DIGEST, 0},
    {CLI_TREE_CANCEL, 0, 0},
    {CLI_TREE_IDLE, 0, 0},
    {CLI_TREE_END, NUMBER, 0},
    {CLI_TREE_GET, NUMBER, ASKED},
    {CLI_TREE_WANT, PATH | PATH_EMPTY, 0},
    {CLI_TREE_LIST, PATH | PATH_EMPTY, 0},
    {CLI_TREE_FATES, REST_BYTES, 0},
    {CLI_TREE_XATTR, PATH | PATH_EMPTY | REST_XATTR, 0},
    {CLI_TREE_OWNER, NUMBER | PATH | PATH_EMPTY | REST_TEXT, 0},
    {CLI_TREE_DECISIONS, REST_BYTES, 0},
    {CLI_TREE_COPY, NUMBER | POSITIVE, 0},
    {CLI_TREE_CHANGES, NUMBER | DIGEST | REST_BYTES, 0},
    {CLI_TREE_RESUME, NUMBER | DIGEST | POSITIVE, 0},
    {CLI_TREE_REFUSED, REST_TEXT, 0},
    {CLI_TREE_FAULT, PATH | REST_TEXT, 0},
    {CLI_TREE_HELD, PATH, CLI_TREE_IS_FOLDER},
    {CLI_TREE_HELD_END, 0, 0},
    {CLI_TREE_VERDICT, NUMBER | REST_TEXT, CLI_TREE_STOPPED},
};

static const struct shape *shape_of(unsigned kind)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (shapes[i].kind == kind)
            return &shapes[i];
    return NULL;
}

/* Of the parts before path and rest. */
static size_t fixed_bytes(const struct shape *shape)
{
    return HEADER + (shape->parts & ATTRIBUTES ? ATTRIBUTES_BYTES : 0u) +
           (shape->parts & NUMBER ? 8u : 0u) + (shape->parts & DIGEST ? (size_t)CLI_DIGEST_BYTES : 0u);
}

/* ---- encoding -------------------------------------------------------------------------------------- */

/* Both return where the next part goes. */
static uint8_t *put_attributes(uint8_t *at, const struct cli_tree_record *record)
{
    uint8_t bytes[CLI_DIGEST_BYTES];
    struct cli_file_attributes attributes = record->attributes;
    attributes.known = true;
    cli_file_attributes_encode(&attributes, bytes);
    cli_put_u64(at, record->size_bytes);
    memcpy(at + 8, bytes, sizeof bytes);
    return at + ATTRIBUTES_BYTES;
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t length)
{
    if (bytes && length)
        memcpy(at, bytes, length);
    return at + length;
}

size_t cli_tree_encode(const struct cli_tree_record *record, uint8_t *out, size_t capacity)
{
    const struct shape *shape = shape_of(record->kind);
    assert(shape && record->path_bytes <= CLI_TREE_PATH_MAX && record->rest_bytes <= CLI_TREE_MESSAGE_MAX);
    size_t bytes = fixed_bytes(shape) + record->path_bytes + record->rest_bytes;
    if (bytes > capacity)
        return 0;
    out[0] = (uint8_t)record->kind;
    out[1] = record->flags;
    out[2] = (uint8_t)record->path_bytes;
    out[3] = (uint8_t)(record->path_bytes >> 8);
    cli_put_u32(out + 4, (uint32_t)record->rest_bytes);
    uint8_t *at = out + HEADER;
    if (shape->parts & ATTRIBUTES)
        at = put_attributes(at, record);
    if (shape->parts & NUMBER) {
        cli_put_u64(at, record->number);
        at += 8;
    }
    if (shape->parts & DIGEST)
        at = put_bytes(at, record->digest, CLI_DIGEST_BYTES);
    at = put_bytes(at, record->path, record->path_bytes);
    at = put_bytes(at, record->rest, record->rest_bytes);
    assert(at == out + bytes);
    return bytes;
}

/* ---- decoding -------------------------------------------------------------------------------------- */

static bool get_attributes(const uint8_t *at, struct cli_tree_record *record)
{
    record->size_bytes = cli_get_u64(at);
    return record->size_bytes <= INT64_MAX && !cli_file_attributes_decode(at + 8, &record->attributes) &&
           record->attributes.known;
}

static bool path_right(const struct shape *shape, const struct cli_tree_record *record)
{
    if (!(shape->parts & PATH) || (shape->parts & PATH_EMPTY && !record->path_bytes))
        return !record->path_bytes;
    return !cli_tree_path_wrong(record->path, record->path_bytes);
}

/* A name, a zero, and a value. */
static bool xattr_right(const char *rest, size_t bytes)
{
    const char *zero = memchr(rest, 0, bytes);
    size_t name = zero ? (size_t)(zero - rest) : 0;
    return name > 0 && name <= CLI_TREE_XATTR_NAME_MAX && bytes - name - 1 <= CLI_TREE_XATTR_VALUE_MAX;
}

static bool rest_right(const struct shape *shape, const struct cli_tree_record *record)
{
    size_t bytes = record->rest_bytes;
    if (shape->parts & REST_BYTES)
        return bytes > 0;
    if (shape->parts & REST_PATH)
        return !cli_tree_path_wrong(record->rest, bytes);
    if (shape->parts & REST_TARGET)
        return bytes > 0 && bytes <= CLI_TREE_PATH_MAX && !memchr(record->rest, 0, bytes);
    if (shape->parts & REST_TEXT)
        return bytes <= CLI_TREE_TEXT_MAX && !memchr(record->rest, 0, bytes);
    if (shape->parts & REST_XATTR)
        return xattr_right(record->rest, bytes);
    return !bytes;
}

/* The parts before path and rest, all of which are there. */
static bool get_fixed(const struct shape *shape, const uint8_t *at, struct cli_tree_record *record)
{
    if (shape->parts & ATTRIBUTES) {
        if (!get_attributes(at, record))
            return false;
        at += ATTRIBUTES_BYTES;
    }
    if (shape->parts & NUMBER) {
        record->number = cli_get_u64(at);
        at += 8;
    }
    if (shape->parts & DIGEST)
        memcpy(record->digest, at, CLI_DIGEST_BYTES);
    return !(shape->parts & POSITIVE) || record->number;
}

int64_t cli_tree_decode(const uint8_t *data, size_t bytes, struct cli_tree_record *record)
{
    const struct shape *shape = bytes >= HEADER ? shape_of(data[0]) : NULL;
    if (!shape || data[1] & ~shape->flags || bytes < fixed_bytes(shape))
        return -LH_EPROTOCOL;
    size_t path = (size_t)data[2] | (size_t)data[3] << 8, rest = cli_get_u32(data + 4);
    size_t before = fixed_bytes(shape);
    if (path > bytes - before || rest > bytes - before - path)
        return -LH_EPROTOCOL;
    struct cli_tree_record found = {
        .kind = shape->kind,
        .flags = data[1],
        .path = (const char *)data + before,
        .path_bytes = path,
        .rest = (const char *)data + before + path,
        .rest_bytes = rest,
    };
    if (!get_fixed(shape, data + HEADER, &found) || !path_right(shape, &found) ||
        !rest_right(shape, &found))
        return -LH_EPROTOCOL;
    *record = found;
    return (int64_t)(before + path + rest);
}

int cli_tree_first(const uint8_t *data, size_t bytes, struct cli_tree_record *record)
{
    /* Releases before 0.3 began with that. */
    if (bytes >= 6 && !memcmp(data, "LHFILE", 6))
        return -LH_EVERSION;
    if (cli_tree_decode(data, bytes, record) < 0 ||
        (record->kind != CLI_TREE_ROOT && record->kind != CLI_TREE_GET))
        return -LH_EPROTOCOL;
    return record->number == CLI_TREE_VERSION ? 0 : -LH_EVERSION;
}
