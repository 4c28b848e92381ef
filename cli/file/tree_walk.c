/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_walk.h"

#include <arpa/inet.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/tree_attributes.h"
#include "cli/file/tree_beneath.h"
#include "cli/file/tree_list.h"
#include "cli/file/tree_message.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_report.h"
#include "cli/file/tree_rules.h"
#include "cli/options/peer_address.h"
#include "cli/terminal/terminal.h"

/* ---- remote paths ---------------------------------------------------------------------------------- */

/* As far as its letters go: "::" stands in no port and no path that begins behind one. */
static bool is_ipv6(const char *text, size_t bytes)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr unused;
    if (memmem(text, bytes, "::", 2))
        return true;
    snprintf(address, sizeof address, "%.*s", (int)(bytes < sizeof address ? bytes : 0), text);
    return inet_pton(AF_INET6, address, &unused) == 1;
}

/* Where HOST ends in "HOST…", "[IPv6]…" or an IPv6 address. */
static size_t host_bytes(const char *text)
{
    const char *bracket = *text == '[' ? strchr(text, ']') : NULL;
    size_t colon = strcspn(text, ":"), digits = strspn(text, "0123456789abcdefABCDEF:.");
    if (*text == '[')
        return bracket ? (size_t)(bracket - text) + 1 : strlen(text);
    bool whole = digits > colon && (!text[digits] || text[digits] == '%');
    return whole && is_ipv6(text, digits) ? strlen(text) : colon;
}

/* Drops "." and further slashes. */
static bool plain_path(const char *text, char folder[CLI_TREE_PATH_MAX + 1])
{
    size_t used = 0;
    while (*text) { /* each name */
        size_t bytes = strcspn(text, "/"), slash = used > 0;
        if (bytes && !(bytes == 1 && *text == '.')) {
            if (used + slash + bytes > CLI_TREE_PATH_MAX)
                return false;
            memcpy(folder + used, "/", slash);
            memcpy(folder + used + slash, text, bytes);
            used += slash + bytes;
        }
        text += bytes + strspn(text + bytes, "/");
    }
    folder[used] = 0;
    return true;
}

int cli_remote_parse(const char *text, const char *absolute, struct cli_remote *remote)
{
    char host[CLI_ADDRESS_MAX];
    size_t bytes = host_bytes(text),
           digits = text[bytes] == ':' ? strspn(text + bytes + 1, "0123456789") : 0;
    const char *after = digits ? text + bytes + 1 + digits : text + bytes;
    bool port = digits && (!*after || *after == ':');
    size_t kept = port ? (size_t)(after - text) : bytes;
    const char *path = text[kept] == ':' && text[kept + 1] ? text + kept + 1 : NULL;
    remote->path[0] = 0;
    remote->has_path = path;
    if (!path)
        return cli_address_parse("HOST[:PORT]", text, CLI_PORT_FILES, false, &remote->address);
    if (*path == '/')
        return cli_misused("%s: %s is absolute (%s)", text, path, absolute);
    const char *wrong = plain_path(path, remote->path) ? NULL : "is longer than 4095 bytes";
    wrong = !wrong && *remote->path ? cli_tree_path_wrong(remote->path, strlen(remote->path)) : wrong;
    if (wrong)
        return cli_misused("%s: the path %s", text, wrong);
    snprintf(host, sizeof host, "%.*s", kept < sizeof host ? (int)kept : (int)sizeof host - 1, text);
    return cli_address_parse("HOST[:PORT]", host, CLI_PORT_FILES, false, &remote->address);
}

/* ---- operands -------------------------------------------------------------------------------------- */

static bool give_reason(struct cli_tree_operand *operand, const char *reason, int error)
{
    snprintf(operand->reason, sizeof operand->reason, "%s%s%s", reason, error ? ": " : "",
             error ? strerror(error) : "");
    cli_tree_operand_close(operand);
    return false;
}

bool cli_tree_operand_open(struct cli_tree_operand *operand, const char *path)
{
    size_t bytes = strlen(path);
    struct stat status;
    *operand = (struct cli_tree_operand){.folder = -1};
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    const char *slash = memrchr(path, '/', bytes);
    size_t before = slash ? (size_t)(slash - path) + 1 : 0;
    if (!bytes || before > CLI_TREE_PATH_MAX || bytes - before > CLI_FILE_NAME_MAX)
        return give_reason(operand, bytes ? "is longer than paths may be" : "is empty (a folder: .)", 0);
    snprintf(operand->prefix, sizeof operand->prefix, "%.*s", (int)before, path);
    snprintf(operand->name, sizeof operand->name, "%.*s", (int)(bytes - before), path + before);
    /* Their names are no names: what is in them is sent. */
    if (!*operand->name || !strcmp(operand->name, ".") || !strcmp(operand->name, "..")) {
        snprintf(operand->prefix, sizeof operand->prefix, "%.*s%s", (int)bytes, path,
                 path[bytes - 1] == '/' ? "" : "/");
        operand->name[0] = 0;
    }
    operand->folder = open(*operand->prefix ? operand->prefix : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (operand->folder < 0 ||
        (*operand->name && fstatat(operand->folder, operand->name, &status, AT_SYMLINK_NOFOLLOW)))
        return give_reason(operand, "cannot be opened", errno);
    return true;
}

bool cli_tree_operand_beneath(struct cli_tree_operand *operand, int root, const char *path, size_t bytes)
{
    const char *slash = bytes ? memrchr(path, '/', bytes) : NULL;
    size_t before = slash ? (size_t)(slash - path) : 0, name = bytes ? bytes - before - (slash != NULL) : 0;
    struct stat status;
    assert(bytes <= CLI_TREE_PATH_MAX && name <= CLI_FILE_NAME_MAX);
    *operand = (struct cli_tree_operand){.folder = -1};
    memcpy(operand->prefix, path, before);
    memcpy(operand->name, path + bytes - name, name);
    int folder = cli_beneath_open(root, operand->prefix, O_RDONLY | O_DIRECTORY, 0);
    memcpy(operand->prefix, path, bytes); /* a reason names all of it */
    if (folder < 0)
        return give_reason(operand,
                           folder == -ELOOP || folder == -ENOTDIR
                               ? "a link or a file is in place of a folder"
                               : "cannot be opened",
                           folder == -ELOOP || folder == -ENOTDIR ? 0 : -folder);
    operand->folder = folder;
    if (name && fstatat(folder, operand->name, &status, AT_SYMLINK_NOFOLLOW))
        return give_reason(operand, "cannot be opened", errno);
    operand->prefix[before + (slash != NULL)] = 0;
    return true;
}

void cli_tree_operand_close(struct cli_tree_operand *operand)
{
    if (operand->folder >= 0)
        close(operand->folder);
    operand->folder = -1;
}

/* ---- hard links ------------------------------------------------------------------------------------ */

/* Files with several names, until all of them are found; a bounded number. Of others each name is a file. */
#define INODES_MAX 262144u

struct inode {
    dev_t device;
    ino_t number;
    nlink_t left; /* names that were not found yet */
    size_t path_bytes;
    char path[];
};

static int compare(const void *first, const void *second)
{
    const struct inode *one = first, *other = second;
    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* ---- state ----------------------------------------------------------------------------------------- */

/* Each level holds a folder open. */
#define DEPTH_MAX 512u
/* A list is sent when it has that many bytes; or that time has passed since it began, and few are in flight:
 * else the last ones wait for a place in the ring. */
#define LIST_BYTES      262144u
#define LIST_NS         (2 * LH_NS_PER_MS)
#define LISTS_IN_FLIGHT 4u
/* The first lists are small messages, which need no receive that is posted: decisions come a round trip
 * earlier, on files enough to fill a path. */
#define LISTS_SMALL      8u
#define LIST_SMALL_BYTES 3800u

struct level {
    DIR *folder;
    size_t path_bytes; /* of its path, in walker.path */
    bool root;         /* the content of "." alone is sent: its attributes are not */
    dev_t device;
    ino_t number;
    struct cli_file_attributes attributes;
};

struct walker {
    const struct cli_tree_walk *walk;
    unsigned operand;
    struct level *levels; /* DEPTH_MAX */
    unsigned depth;
    char path[CLI_TREE_PATH_MAX + 1];
    size_t path_bytes;
    void *inodes; /* a tree of tsearch(3) */
    unsigned inode_count;
    struct cli_tree_reading reading;
    lh_time began_ns; /* the list that is being filled */
    unsigned lists;   /* that were sent */
};

/* False: a message could not be sent. */
static bool fault(struct walker *w, const char *reason)
{
    cli_tree_report_fault(w->walk->report, w->walk->operands[w->operand].prefix, w->path, w->path_bytes,
                          reason);
    return cli_tree_packer_fault(w->walk->packer, w->path, w->path_bytes, reason);
}

static bool flush(struct walker *w)
{
    if (!cli_tree_packer_flush(w->walk->packer))
        return false;
    w->lists++;
    cli_tree_list_announce(w->walk->list);
    return true;
}

/* Puts a record into the list that goes to the receiver now. */
static bool send_record(struct walker *w, const struct cli_tree_record *record)
{
    struct cli_tree_packer *packer = w->walk->packer;
    lh_time now = cli_now();
    if (!packer->used)
        w->began_ns = now;
    if (!cli_tree_packer_add(packer, record))
        return false;
    bool full = packer->used >= (w->lists < LISTS_SMALL ? LIST_SMALL_BYTES : LIST_BYTES);
    bool late = now - w->began_ns >= LIST_NS && cli_tree_packer_in_flight(packer) < LISTS_IN_FLIGHT;
    return (!full && !late) || flush(w);
}

/* Puts it into the queue of entries. The receiver must have the list to decide on what is in the queue. */
static bool add_entry(struct walker *w, const struct cli_tree_record *record)
{
    if (cli_tree_list_full(w->walk->list) && !flush(w))
        return false;
    return cli_tree_list_add(w->walk->list, record, w->operand);
}

static struct cli_tree_record record_of(const struct walker *w, enum cli_tree_kind kind,
                                        const struct stat *status)
{
    return (struct cli_tree_record){
        .kind = kind,
        .attributes = cli_file_attributes_of(status->st_mode, status->st_mtim),
        .size_bytes = S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0,
        .path = w->path,
        .path_bytes = w->path_bytes,
    };
}

/* ---- entries --------------------------------------------------------------------------------------- */

/* The path of another name of the file that was found before: *first; NULL: there is none, and it is noted.
 * The last name frees what is known of it: to be freed by the caller, if *last. */
static struct inode *find_inode(struct walker *w, const struct stat *status, bool *last)
{
    struct inode *inode = malloc(sizeof *inode + w->path_bytes);
    *last = false;
    if (!inode)
        return NULL;
    *inode = (struct inode){.device = status->st_dev,
                            .number = status->st_ino,
                            .left = status->st_nlink - 1,
                            .path_bytes = w->path_bytes};
    memcpy(inode->path, w->path, w->path_bytes);
    void *node = tfind(inode, &w->inodes, compare);
    if (!node) {
        if (w->inode_count == INODES_MAX || !tsearch(inode, &w->inodes, compare))
            free(inode);
        else
            w->inode_count++;
        return NULL;
    }
    free(inode);
    struct inode *found = *(struct inode **)node;
    *last = !--found->left;
    if (*last) {
        tdelete(found, &w->inodes, compare);
        w->inode_count--;
    }
    return found;
}

static bool add_file(struct walker *w, const struct stat *status)
{
    bool last = false;
    struct inode *first = status->st_nlink > 1 ? find_inode(w, status, &last) : NULL;
    if (!first) {
        const struct cli_tree_record listed = record_of(w, CLI_TREE_LISTED, status);
        return add_entry(w, &listed) && send_record(w, &listed);
    }
    struct cli_tree_record link = record_of(w, CLI_TREE_HARD_LINK, status);
    link.rest = first->path;
    link.rest_bytes = first->path_bytes;
    bool added = add_entry(w, &link);
    if (last)
        free(first);
    return added;
}

static bool send_link_owner(struct walker *w, const struct stat *status)
{
    w->reading.owners = true;
    if (!cli_tree_reading_take_owner(&w->reading, status, w->path, w->path_bytes))
        return fault(w, w->reading.reason);
    uint8_t *at = cli_tree_packer_reserve(w->walk->packer, w->reading.used);
    if (at)
        memcpy(at, w->reading.records, w->reading.used);
    w->walk->packer->used += at ? w->reading.used : 0;
    return at;
}

static bool add_link(struct walker *w, int folder, const char *name, const struct stat *status)
{
    char target[CLI_TREE_PATH_MAX + 2];
    struct cli_tree_record link = record_of(w, CLI_TREE_LINK, status);
    ssize_t bytes = readlinkat(folder, name, target, sizeof target);
    if (bytes <= 0 || bytes > (ssize_t)CLI_TREE_PATH_MAX)
        return fault(w, bytes < 0 ? strerror(errno) : "the link leads to a path that is too long");
    link.rest = target;
    link.rest_bytes = (size_t)bytes;
    cli_output_lock();
    w->walk->report->links++;
    cli_output_unlock();
    return send_record(w, &link) && (!w->walk->owners || send_link_owner(w, status));
}

/* Whether the folder is one that the walk is in: by links that are followed. */
static bool is_circle(const struct walker *w, const struct stat *status)
{
    for (unsigned i = 0; i < w->depth; i++)
        if (w->levels[i].device == status->st_dev && w->levels[i].number == status->st_ino)
            return true;
    return false;
}

/* Opens a folder; its entries come next. */
static bool enter(struct walker *w, int parent, const char *name, bool root)
{
    struct stat status;
    struct level *level = &w->levels[w->depth];
    if (w->depth == DEPTH_MAX)
        return fault(w, "folders are nested too deeply (at most 512)");
    int folder = openat(parent, name,
                        O_RDONLY | O_DIRECTORY | O_CLOEXEC | (w->walk->follow || root ? 0 : O_NOFOLLOW));
    DIR *stream = folder >= 0 && !fstat(folder, &status) ? fdopendir(folder) : NULL;
    if (!stream || is_circle(w, &status)) {
        bool sent = fault(w, stream ? "the link leads to a folder that contains it" : strerror(errno));
        if (stream)
            closedir(stream);
        else if (folder >= 0)
            close(folder);
        return sent;
    }
    *level = (struct level){.folder = stream,
                            .path_bytes = w->path_bytes,
                            .root = root,
                            .device = status.st_dev,
                            .number = status.st_ino,
                            .attributes = cli_file_attributes_of(status.st_mode, status.st_mtim)};
    w->depth++;
    if (root)
        return true;
    const struct cli_tree_record record = record_of(w, CLI_TREE_FOLDER, &status);
    cli_output_lock();
    w->walk->report->folders++;
    cli_output_unlock();
    return send_record(w, &record);
}

static bool leave(struct walker *w)
{
    struct level *level = &w->levels[--w->depth];
    closedir(level->folder);
    if (level->root)
        return true;
    const struct cli_tree_record end = {.kind = CLI_TREE_FOLDER_END,
                                        .attributes = level->attributes,
                                        .path = w->path,
                                        .path_bytes = w->path_bytes};
    return add_entry(w, &end);
}

static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode)   ? "is a FIFO, which is not sent"
           : S_ISSOCK(mode) ? "is a socket, which is not sent"
                            : "is a device, which is not sent";
}

/* What has that name in the open folder; w->path is its path. */
static bool visit(struct walker *w, int folder, const char *name)
{
    struct stat status;
    int error = fstatat(folder, name, &status, w->walk->follow ? 0 : AT_SYMLINK_NOFOLLOW) ? errno : 0;
    w->path[w->path_bytes] = 0;
    if (cli_tree_rules_exclude(w->walk->rules, w->path, !error && S_ISDIR(status.st_mode)))
        return true;
    if (cli_file_name_reserved(name, strlen(name)))
        return fault(w, "the name is reserved for unfinished files");
    if (error)
        return fault(w, strerror(error));
    if (S_ISREG(status.st_mode))
        return add_file(w, &status);
    if (S_ISDIR(status.st_mode))
        return enter(w, folder, name, false);
    if (S_ISLNK(status.st_mode))
        return add_link(w, folder, name, &status);
    return fault(w, kind_of(status.st_mode));
}

/* ---- walk ------------------------------------------------------------------------------------------ */

/* Appends a name to the path of the folder that the walk is in. False: too long. */
static bool set_path(struct walker *w, const char *name)
{
    size_t before = w->depth ? w->levels[w->depth - 1].path_bytes : 0, bytes = strlen(name);
    size_t slash = before > 0;
    w->path_bytes = before;
    if (before + slash + bytes > CLI_TREE_PATH_MAX)
        return false;
    memcpy(w->path + before, "/", slash);
    memcpy(w->path + before + slash, name, bytes);
    w->path_bytes = before + slash + bytes;
    return true;
}

/* The next entry of the folder that the walk is in, or its end. */
static bool step(struct walker *w)
{
    DIR *folder = w->levels[w->depth - 1].folder;
    errno = 0;
    const struct dirent *found = readdir(folder);
    if (found && (!strcmp(found->d_name, ".") || !strcmp(found->d_name, "..")))
        return true;
    if (!found) {
        int error = errno;
        w->path_bytes = w->levels[w->depth - 1].path_bytes;
        return (!error || fault(w, strerror(error))) && leave(w);
    }
    if (!set_path(w, found->d_name))
        return fault(w, "holds an entry whose path is longer than 4095 bytes");
    return visit(w, dirfd(folder), found->d_name);
}

/* A path that was asked for, and that cannot be sent. */
static bool refuse_operand(struct walker *w, const struct cli_tree_operand *operand)
{
    size_t bytes = strlen(operand->prefix);
    cli_tree_report_fault(w->walk->report, "", operand->prefix, bytes, operand->reason);
    return cli_tree_packer_fault(w->walk->packer, operand->prefix, bytes, operand->reason);
}

static bool walk_operand(struct walker *w)
{
    const struct cli_tree_operand *operand = &w->walk->operands[w->operand];
    w->path_bytes = 0;
    if (*operand->reason)
        return refuse_operand(w, operand);
    bool going = *operand->name ? set_path(w, operand->name) && visit(w, operand->folder, operand->name)
                                : enter(w, operand->folder, ".", true);
    while (going && w->depth && !cli_stopped()) /* each entry of the tree */
        going = step(w);
    return going && !w->depth;
}

bool cli_tree_walk(const struct cli_tree_walk *walk)
{
    struct walker *w = calloc(1, sizeof *w);
    bool going = w && (w->levels = calloc(DEPTH_MAX, sizeof *w->levels));
    if (going)
        w->walk = walk;
    for (unsigned i = 0; going && i < walk->count; i++) {
        w->operand = i;
        going = walk_operand(w);
    }
    if (going && cli_tree_packer_flush(walk->packer))
        cli_tree_list_end(walk->list);
    while (w && w->levels && w->depth)
        closedir(w->levels[--w->depth].folder);
    if (w) {
        tdestroy(w->inodes, free);
        cli_tree_reading_close(&w->reading);
        free(w->levels);
    }
    free(w);
    return going;
}
