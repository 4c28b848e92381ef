/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_attributes.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_records.h"
#include "cli/terminal/terminal.h"

/* Bytes that the names service is given for one name at first and, for groups of many members, at most. */
#define ACCOUNT_BYTES     4096u
#define ACCOUNT_BYTES_MAX (16u << 20)
/* Of an encoded record besides its path, name and value. */
#define RECORD_OVERHEAD 32u

/* ---- accounts -------------------------------------------------------------------------------------- */

struct account {
    id_t id;
    const char *name; /* NULL: there is none */
};

/* One call of the names service: of a user or of a group, by name, or by number without one. */
static int look_up(bool is_group, const char *name, id_t id, char *bytes, size_t size,
                   struct account *account)
{
    struct passwd user, *is_user = NULL;
    struct group group, *has_group = NULL;
    int code;
    if (is_group)
        code = name ? getgrnam_r(name, &group, bytes, size, &has_group)
                    : getgrgid_r(id, &group, bytes, size, &has_group);
    else
        code = name ? getpwnam_r(name, &user, bytes, size, &is_user)
                    : getpwuid_r(id, &user, bytes, size, &is_user);
    *account = is_user     ? (struct account){user.pw_uid, user.pw_name}
               : has_group ? (struct account){group.gr_gid, group.gr_name}
                           : (struct account){0, NULL};
    return code;
}

/* The user or group of that name, or without one the name of that user or group, into shown. */
static bool find_account(bool is_group, const char *name, id_t *id, char shown[CLI_TREE_ACCOUNT_MAX + 1])
{
    struct account account = {0, NULL};
    char *bytes = NULL;
    int code = ERANGE;
    for (size_t size = ACCOUNT_BYTES; code == ERANGE && size <= ACCOUNT_BYTES_MAX; size *= 4) {
        free(bytes);
        bytes = malloc(size);
        code = bytes ? look_up(is_group, name, *id, bytes, size, &account) : ENOMEM;
    }
    /* A part of a longer name could be another's. */
    bool known = !code && account.name && strlen(account.name) <= CLI_TREE_ACCOUNT_MAX;
    if (known) {
        *id = account.id;
        snprintf(shown, CLI_TREE_ACCOUNT_MAX + 1, "%s", account.name);
    }
    free(bytes);
    return known;
}

/* ---- names ----------------------------------------------------------------------------------------- */

static bool begins(const char *name, const char *space)
{
    return !strncmp(name, space, strlen(space)) && name[strlen(space)];
}

static bool is_taken(const char *name)
{
    if (begins(name, "user.") || !strcmp(name, "system.posix_acl_access") ||
        !strcmp(name, "system.posix_acl_default"))
        return true;
    return !geteuid() && strcmp(name, "security.capability") != 0 &&
           (begins(name, "trusted.") || begins(name, "security."));
}

static bool fail(char reason[CLI_TREE_ATTRIBUTE_REASON_MAX + 1], const char *name, const char *cause)
{
    char shown[64];
    if (!*reason)
        snprintf(reason, CLI_TREE_ATTRIBUTE_REASON_MAX + 1, "attribute %s: %s (the entry is in place)",
                 cli_tree_path_shown(name, strlen(name), shown, sizeof shown), cause);
    return false;
}

/* ---- reading --------------------------------------------------------------------------------------- */

static bool reserve(struct cli_tree_reading *reading, size_t bytes)
{
    const size_t capacity = CLI_TREE_XATTRS_MAX;
    if (!reading->records)
        reading->records = malloc(capacity);
    return reading->records && bytes <= capacity - reading->used;
}

static bool add_record(struct cli_tree_reading *reading, const struct cli_tree_record *record)
{
    size_t bytes =
        reserve(reading, record->path_bytes + record->rest_bytes + RECORD_OVERHEAD)
            ? cli_tree_encode(record, reading->records + reading->used, CLI_TREE_XATTRS_MAX - reading->used)
            : 0;
    reading->used += bytes;
    return bytes;
}

/* The value behind the name, and its zero, in rest. */
static bool read_xattr(struct cli_tree_reading *reading, int file, const char *name, char *rest,
                       const char *path, size_t path_bytes)
{
    size_t name_bytes = strlen(name);
    if (!is_taken(name) || name_bytes > CLI_TREE_XATTR_NAME_MAX)
        return true;
    memcpy(rest, name, name_bytes + 1);
    ssize_t bytes = fgetxattr(file, name, rest + name_bytes + 1, CLI_TREE_XATTR_VALUE_MAX);
    if (bytes < 0)
        return errno == ENODATA || fail(reading->reason, name, strerror(errno));
    const struct cli_tree_record record = {.kind = CLI_TREE_XATTR,
                                           .path = path,
                                           .path_bytes = path_bytes,
                                           .rest = rest,
                                           .rest_bytes = name_bytes + 1 + (size_t)bytes};
    return add_record(reading, &record) ||
           fail(reading->reason, name, "more than 1 MiB of extended attributes, or no memory");
}

static bool read_xattrs(struct cli_tree_reading *reading, int file, const char *path, size_t path_bytes)
{
    char *names = malloc(XATTR_LIST_MAX), *rest;
    ssize_t bytes = names ? flistxattr(file, names, XATTR_LIST_MAX) : 0;
    bool whole = true;
    rest = bytes > 0 ? malloc(CLI_TREE_XATTR_NAME_MAX + 1 + CLI_TREE_XATTR_VALUE_MAX) : NULL;
    if (bytes < 0 && errno != EOPNOTSUPP)
        whole = fail(reading->reason, "list", strerror(errno));
    else if (!names || (bytes > 0 && !rest))
        whole = fail(reading->reason, "list", "no memory");
    for (ssize_t at = 0; rest && at < bytes; at += (ssize_t)strlen(names + at) + 1) /* each name */
        whole = read_xattr(reading, file, names + at, rest, path, path_bytes) && whole;
    free(rest);
    free(names);
    return whole;
}

/* A tree has few owners: an entry often has that of the one before. */
static void look_up_names(struct cli_tree_reading *reading, const struct stat *status)
{
    char user[CLI_TREE_ACCOUNT_MAX + 1] = "", group[CLI_TREE_ACCOUNT_MAX + 1] = "";
    if (reading->named && reading->user == status->st_uid && reading->group == status->st_gid)
        return;
    reading->user = status->st_uid;
    reading->group = status->st_gid;
    find_account(false, NULL, &reading->user, user);
    find_account(true, NULL, &reading->group, group);
    snprintf(reading->names, sizeof reading->names, "%s:%s", user, group);
    reading->named = true;
}

bool cli_tree_reading_take_owner(struct cli_tree_reading *reading, const struct stat *status,
                                 const char *path, size_t path_bytes)
{
    reading->used = 0;
    reading->reason[0] = 0;
    if (!reading->owners)
        return true;
    look_up_names(reading, status);
    const struct cli_tree_record owner = {
        .kind = CLI_TREE_OWNER,
        .number = (uint64_t)status->st_uid | (uint64_t)status->st_gid << 32,
        .path = path,
        .path_bytes = path_bytes,
        .rest = reading->names,
        .rest_bytes = strlen(reading->names),
    };
    return add_record(reading, &owner) || fail(reading->reason, "owner", "no memory");
}

bool cli_tree_reading_take(struct cli_tree_reading *reading, int file, const struct stat *status,
                           const char *path, size_t path_bytes)
{
    bool whole = cli_tree_reading_take_owner(reading, status, path, path_bytes);
    return (!reading->xattrs || read_xattrs(reading, file, path, path_bytes)) && whole;
}

void cli_tree_reading_close(struct cli_tree_reading *reading)
{
    free(reading->records);
    reading->records = NULL;
}

/* ---- setting --------------------------------------------------------------------------------------- */

/* Where an attribute lies in dress->xattrs: bytes of its value, its name, a zero, the value. */
struct piece {
    const char *name;
    uint8_t *value;
    size_t value_bytes;
};

static size_t next_piece(uint8_t *at, struct piece *piece)
{
    piece->value_bytes = cli_get_u32(at);
    piece->name = (const char *)at + 4;
    piece->value = at + 4 + strlen(piece->name) + 1;
    return 4 + strlen(piece->name) + 1 + piece->value_bytes;
}

static void take_xattr(struct cli_tree_dress *dress, const struct cli_tree_record *record)
{
    const char *name = record->rest; /* ends with a zero: the decoder has checked it */
    if (!is_taken(name)) {
        fail(dress->reason, name, "such names are not taken");
        return;
    }
    if (!dress->xattrs)
        dress->xattrs = malloc(CLI_TREE_XATTRS_MAX);
    if (!dress->xattrs || record->rest_bytes + 4 > CLI_TREE_XATTRS_MAX - dress->used) {
        fail(dress->reason, name, "more than 1 MiB of extended attributes, or no memory");
        return;
    }
    cli_put_u32(dress->xattrs + dress->used, (uint32_t)(record->rest_bytes - strlen(name) - 1));
    memcpy(dress->xattrs + dress->used + 4, record->rest, record->rest_bytes);
    dress->used += 4 + record->rest_bytes;
}

/* By name, or by number. */
static void take_owner(struct cli_tree_dress *dress, const struct cli_tree_record *record)
{
    char names[CLI_TREE_TEXT_MAX + 1], shown[CLI_TREE_ACCOUNT_MAX + 1];
    memcpy(names, record->rest, record->rest_bytes);
    names[record->rest_bytes] = 0;
    char *colon = strchr(names, ':');
    dress->user = (uid_t)record->number;
    dress->group = (gid_t)(record->number >> 32);
    if (colon)
        *colon = 0;
    if (*names)
        find_account(false, names, &dress->user, shown);
    if (colon && colon[1])
        find_account(true, colon + 1, &dress->group, shown);
    /* To chown(2) that number means to leave it. */
    dress->owned = dress->user != (uid_t)-1 && dress->group != (gid_t)-1;
    if (!dress->owned)
        fail(dress->reason, "owner", "no user or group has that number");
}

void cli_tree_dress_take(struct cli_tree_dress *dress, const struct cli_tree_record *record)
{
    if (record->kind == CLI_TREE_XATTR)
        take_xattr(dress, record);
    else
        take_owner(dress, record);
}

/* An access control list as setxattr(2) takes it: version u32; then tag u16, permissions u16 and id u32 of
 * each entry. */
#define LIST_HEADER 4u
#define LIST_ENTRY  8u

enum list_tag { TAG_OWNER = 1, TAG_GROUP = 4, TAG_MASK = 16, TAG_OTHER = 32 };

static unsigned tag_of(const uint8_t *entry)
{
    return (unsigned)entry[0] | (unsigned)entry[1] << 8;
}

/* Takes away what the umask does, as chmod(2) would: of a list with a mask it is the mask that bounds groups.
 * A default list replaces the umask for all that is created in its folder. */
static void restrict_list(uint8_t *list, size_t bytes, mode_t umask)
{
    bool masked = false;
    for (size_t at = LIST_HEADER; at + LIST_ENTRY <= bytes; at += LIST_ENTRY)
        masked = masked || tag_of(list + at) == TAG_MASK;
    for (size_t at = LIST_HEADER; at + LIST_ENTRY <= bytes; at += LIST_ENTRY) {
        unsigned tag = tag_of(list + at), denied = 0;
        if (tag == TAG_OWNER)
            denied = umask >> 6;
        else if (tag == (masked ? TAG_MASK : TAG_GROUP))
            denied = umask >> 3;
        else if (tag == TAG_OTHER)
            denied = umask;
        list[at + 2] &= (uint8_t) ~(denied & 7);
    }
}

void cli_tree_dress_put_on(struct cli_tree_dress *dress, int file, mode_t umask)
{
    struct piece piece;
    /* First: a new owner takes some attributes away. */
    if (dress->owned && fchown(file, dress->user, dress->group))
        fail(dress->reason, "owner", strerror(errno));
    for (size_t at = 0; at < dress->used;) { /* each attribute */
        at += next_piece(dress->xattrs + at, &piece);
        if (begins(piece.name, "system.posix_acl_"))
            restrict_list(piece.value, piece.value_bytes, umask);
        if (fsetxattr(file, piece.name, piece.value, piece.value_bytes, 0))
            fail(dress->reason, piece.name, strerror(errno));
    }
}

void cli_tree_dress_clear(struct cli_tree_dress *dress)
{
    free(dress->xattrs);
    *dress = (struct cli_tree_dress){0};
}
