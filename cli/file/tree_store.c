/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/file_partial.h"
#include "cli/file/tree_beneath.h"
#include "cli/file/tree_changes.h"
#include "cli/file/tree_records.h"
#include "cli/terminal/terminal.h"

/* Of a folder and a file while they are written. */
#define FOLDER_MODE    0700
#define TEMPORARY_MODE 0600

#define DOT_REASON "name begins with a dot (recv --dotfiles accepts such names)"

/* ---- reasons --------------------------------------------------------------------------------------- */

static bool refuse(struct cli_tree_store *store, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct cli_tree_store *store, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(store->reason, sizeof store->reason, format, arguments);
    va_end(arguments);
    return false;
}

/* A system call failed with that errno. */
static bool failed(struct cli_tree_store *store, const char *doing, int error)
{
    store->fatal = store->fatal || error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO;
    return refuse(store, "%s: %s%s", doing, strerror(error),
                  error == ELOOP || error == ENOTDIR ? " (a link or a file is in place of a folder)" : "");
}

static bool exists(struct cli_tree_store *store, bool folder)
{
    return refuse(store, folder ? "a folder of that name exists"
                                : "a file of that name exists (--force at the receiver replaces it)");
}

/* ---- changes --------------------------------------------------------------------------------------- */

/* The file that gets its name now; -1: something else that has to come to the disk. */
static void note_change(struct cli_tree_store *store, int file)
{
    if (store->only >= 0)
        close(store->only);
    store->only = file >= 0 && !store->changes ? fcntl(file, F_DUPFD_CLOEXEC, 3) : -1;
    store->changes = store->changes || store->only < 0 ? 2 : 1;
}

/* ---- names ----------------------------------------------------------------------------------------- */

/* Whether a path begins with a name that was asked for. */
static bool is_asked_for(const struct cli_tree_options *options, const char *path, size_t bytes)
{
    const char *slash = memchr(path, '/', bytes);
    size_t name = slash ? (size_t)(slash - path) : bytes;
    for (unsigned i = 0; i < options->names_count; i++)
        if (strlen(options->names[i]) == name && !memcmp(options->names[i], path, name))
            return true;
    return false;
}

bool cli_tree_store_takes(const struct cli_tree_store *store, size_t folder_bytes, const char *name)
{
    return folder_bytes || store->root != store->options->folder || store->options->names ||
           store->options->dotfiles || name[0] != '.';
}

/* A name that this transfer may use: the folder of it open in beneath->folder, the name in beneath->name. */
static bool find_parent(struct cli_tree_store *store, struct cli_beneath *beneath, const char *path,
                        size_t bytes)
{
    int parent = cli_beneath_parent(beneath, path, bytes);
    if (parent < 0)
        return failed(store, "the folder cannot be opened", -parent);
    if (cli_file_name_reserved(beneath->name, strlen(beneath->name)))
        return refuse(store, "the name is reserved for unfinished files");
    if (store->options->names)
        return is_asked_for(store->options, path, bytes) || refuse(store, "was not asked for");
    return cli_tree_store_takes(store, 0, path) || refuse(store, DOT_REASON);
}

/* Another one each time: a process that was killed may have left one. */
static const char *next_temporary(char out[CLI_TREE_TEMPORARY_MAX])
{
    struct timespec now;
    static unsigned number;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(out, CLI_TREE_TEMPORARY_MAX, ".%lx%lx-%x%s", (unsigned long)now.tv_sec,
             (unsigned long)now.tv_nsec, __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED),
             CLI_COMMIT_SUFFIX);
    return out;
}

/* The temporary name becomes the final one. */
static bool rename_temporary(struct cli_tree_store *store, int parent, const char *temporary,
                             const char *name)
{
    int code = cli_file_rename(parent, temporary, name, store->options->force);
    if (!code)
        return true;
    unlinkat(parent, temporary, 0);
    if (code == -EEXIST || code == -EISDIR)
        return exists(store, code == -EISDIR);
    return failed(store, "renaming", -code);
}

/* Whether something of that name may be replaced: a folder never. */
static bool may_replace(struct cli_tree_store *store, int parent, const char *name)
{
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT || failed(store, "checking the name", errno);
    if (S_ISDIR(status.st_mode))
        return exists(store, true);
    return store->options->force || exists(store, false);
}

/* ---- open and close -------------------------------------------------------------------------------- */

/* Creates what is missing of the folders of a path, and opens the last. */
static int make_folders(int root, const char *path)
{
    char part[CLI_TREE_PATH_MAX + 1];
    struct cli_beneath *at = malloc(sizeof *at);
    int code = at ? 0 : -ENOMEM;
    for (size_t bytes = 0; !code && path[bytes]; bytes += path[bytes] == '/') { /* each name of the path */
        bytes += strcspn(path + bytes, "/");
        memcpy(part, path, bytes);
        *at = (struct cli_beneath){.root = root, .folder = -1};
        code = cli_beneath_parent(at, part, bytes);
        if (code >= 0 && cli_file_name_reserved(at->name, strlen(at->name)))
            code = -EPERM;
        if (code >= 0)
            code = mkdirat(code, at->name, 0777) && errno != EEXIST ? -errno : 0;
        cli_beneath_close(at);
    }
    free(at);
    return code ? code : cli_beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0);
}

static bool open_root(struct cli_tree_store *store, const struct cli_tree_record *root)
{
    char path[CLI_TREE_PATH_MAX + 1];
    memcpy(path, root->path, root->path_bytes);
    path[root->path_bytes] = 0;
    if (path[0] == '.' && !store->options->dotfiles)
        return refuse(store, DOT_REASON);
    int opened = store->dry_run ? cli_beneath_open(store->options->folder, path, O_RDONLY | O_DIRECTORY, 0)
                                : make_folders(store->options->folder, path);
    /* In a folder that a dry run does not create nothing is found. */
    if (opened < 0 && !(opened == -ENOENT && store->dry_run))
        return failed(store, "the folder cannot be opened", -opened);
    store->root = opened;
    note_change(store, -1);
    return true;
}

bool cli_tree_store_open(struct cli_tree_store *store, const struct cli_tree_options *options,
                         const struct cli_tree_record *root)
{
    bool pipe = root->flags & CLI_TREE_PIPE;
    *store = (struct cli_tree_store){
        .options = options, .root = options->folder, .dry_run = root->flags & CLI_TREE_DRY_RUN};
    store->list_at.folder = store->data_at.folder = store->file.file = store->file.old = store->mounted =
        store->only = -1;
    if (cli_digest_open(&store->digest))
        return failed(store, "memory", ENOMEM);
    if (options->folder < 0 && !pipe)
        return refuse(store, "the receiver writes to standard output (longhaul send - HOST < FILE)");
    if (options->folder >= 0 && pipe && !root->path_bytes)
        return refuse(store, "standard input has no name (longhaul send - HOST:NAME)");
    if (!pipe && root->path_bytes && !open_root(store, root))
        return false;
    store->list_at.root = store->data_at.root = store->root;
    return true;
}

void cli_tree_store_close(struct cli_tree_store *store)
{
    cli_tree_store_drop(store, true);
    cli_beneath_close(&store->list_at);
    cli_beneath_close(&store->data_at);
    if (store->root >= 0 && store->root != store->options->folder)
        close(store->root);
    if (store->digest.state)
        cli_digest_close(&store->digest);
    if (store->mounted >= 0)
        close(store->mounted);
    note_change(store, -1);
    store->mounted = -1;
    free(store->block);
    store->block = NULL;
    free(store->hashes);
    store->hashes = NULL;
    cli_tree_dress_clear(&store->dress);
}

/* ---- decisions ------------------------------------------------------------------------------------- */

static bool is_large(uint64_t size_bytes)
{
    return size_bytes > CLI_TREE_LARGE_BYTES;
}

static bool unchanged(const struct stat *status, const struct cli_tree_record *listed)
{
    const struct timespec *written = &listed->attributes.written;
    return S_ISREG(status->st_mode) && (uint64_t)status->st_size == listed->size_bytes &&
           status->st_mtim.tv_sec == written->tv_sec && status->st_mtim.tv_nsec == written->tv_nsec;
}

/* How far an earlier transfer of that file came. */
static void find_partial(struct cli_tree_store *store, int parent, const char *name,
                         const struct cli_tree_record *listed, struct cli_tree_record *answer)
{
    char unfinished[CLI_FILE_NAME_MAX + 1];
    struct stat status;
    struct cli_partial partial;
    struct cli_resume_point point = {0};
    cli_file_name_unfinished(name, CLI_PARTIAL_SUFFIX, unfinished);
    if (fstatat(parent, unfinished, &status, AT_SYMLINK_NOFOLLOW))
        return;
    store->block = store->block ? store->block : malloc(CLI_BLOCK_BYTES);
    if (!store->block ||
        !cli_partial_open(&partial, parent, name, listed->size_bytes, store->options->force, true))
        return;
    struct cli_digest digest;
    bool checked = !cli_digest_open(&digest);
    if (checked) {
        checked = cli_partial_check(&partial, UINT64_MAX, store->block, &digest, cli_stopped, &point);
        cli_digest_close(&digest);
    }
    cli_partial_abandon(&partial, true);
    if (!checked || !point.blocks)
        return;
    *answer = (struct cli_tree_record){.kind = CLI_TREE_RESUME, .number = point.blocks * CLI_BLOCK_BYTES};
    memcpy(answer->digest, point.digest, sizeof answer->digest);
}

/* Which parts of it the file here has. */
static void find_changes(struct cli_tree_store *store, int parent, const char *name,
                         const struct cli_tree_record *listed, struct cli_tree_record *answer)
{
    struct stat status;
    uint64_t from = answer->kind == CLI_TREE_RESUME ? answer->number : 0;
    int file = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    store->block = store->block ? store->block : malloc(CLI_BLOCK_BYTES);
    store->hashes = store->hashes ? store->hashes : malloc(CLI_TREE_CHANGES_BYTES_MAX);
    bool readable = store->block && store->hashes && !fstat(file, &status) && S_ISREG(status.st_mode);
    size_t bytes = readable ? cli_tree_changes_hash(file, (uint64_t)status.st_size, listed->size_bytes,
                                                    from, store->block, cli_stopped, store->hashes)
                            : 0;
    close(file);
    if (!bytes)
        return;
    answer->kind = CLI_TREE_CHANGES;
    answer->number = from;
    answer->rest = (const char *)store->hashes;
    answer->rest_bytes = bytes;
}

void cli_tree_store_decide(struct cli_tree_store *store, const struct cli_tree_record *listed,
                           struct cli_tree_record *answer)
{
    struct stat status;
    struct cli_beneath *at = &store->list_at;
    *answer = (struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .number = CLI_TREE_SEND};
    if (!find_parent(store, at, listed->path, listed->path_bytes)) {
        /* What a dry run did not create, a transfer would. */
        if (at->folder >= 0 || !store->dry_run)
            answer->kind = CLI_TREE_REFUSED;
        return;
    }
    bool found = !fstatat(at->folder, at->name, &status, AT_SYMLINK_NOFOLLOW);
    if (found && unchanged(&status, listed)) {
        /* Of an earlier transfer, which may have ended before it was on disk. */
        note_change(store, -1);
        answer->number = CLI_TREE_SKIP;
    } else if (found && (S_ISDIR(status.st_mode) || !store->options->force)) {
        exists(store, S_ISDIR(status.st_mode));
        answer->kind = CLI_TREE_REFUSED;
    } else if (is_large(listed->size_bytes) && !store->dry_run) {
        find_partial(store, at->folder, at->name, listed, answer);
        /* Opening a FIFO or a device can have effects. */
        if (found && S_ISREG(status.st_mode) && store->options->hashes)
            find_changes(store, at->folder, at->name, listed, answer);
    }
}

/* ---- folders --------------------------------------------------------------------------------------- */

/* A folder that was there is made writable until its end, as one whose permissions came in an earlier run. */
static bool reuse_folder(struct cli_tree_store *store, int parent, const char *name)
{
    struct stat status;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
        return failed(store, "checking the name", errno);
    if (!S_ISDIR(status.st_mode))
        return exists(store, false);
    if ((status.st_mode & FOLDER_MODE) == FOLDER_MODE)
        return true;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool open = folder >= 0 && !fchmod(folder, (status.st_mode & 07777) | FOLDER_MODE);
    if (folder >= 0)
        close(folder);
    return open || failed(store, "the folder cannot be written to", errno);
}

bool cli_tree_store_folder(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct cli_beneath *at = &store->list_at;
    if (store->dry_run)
        return true;
    if (!find_parent(store, at, record->path, record->path_bytes))
        return false;
    note_change(store, -1);
    if (!mkdirat(at->folder, at->name, FOLDER_MODE))
        return true;
    return errno == EEXIST ? reuse_folder(store, at->folder, at->name)
                           : failed(store, "creating the folder", errno);
}

bool cli_tree_store_folder_end(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct stat status;
    struct cli_beneath *at = &store->data_at;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, record->attributes.written};
    if (store->dry_run)
        return true;
    note_change(store, -1);
    if (!find_parent(store, at, record->path, record->path_bytes))
        return false;
    int folder = openat(at->folder, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return failed(store, "the folder cannot be opened", errno);
    /* The set-group-ID and the sticky bit are those of the folder here, not the sender's. */
    bool kept =
        !fstat(folder, &status) && !fchmod(folder, (record->attributes.mode & ~store->options->umask) |
                                                       (status.st_mode & (S_ISGID | S_ISVTX)));
    kept = !futimens(folder, times) && kept;
    close(folder);
    store->attributes_lost = store->attributes_lost || !kept;
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------------ */

/* An open link: what has taken its name since is left alone. */
static bool dress_link(struct cli_tree_store *store, const struct cli_tree_dress *dress, int link)
{
    if (*dress->reason)
        return refuse(store, "%s", dress->reason);
    return !fchownat(link, "", dress->user, dress->group, AT_EMPTY_PATH) || failed(store, "owner", errno);
}

static bool dress_folder(struct cli_tree_store *store, struct cli_tree_dress *dress)
{
    const struct cli_beneath *at = &store->list_at;
    int folder = openat(at->folder, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return failed(store, "the folder cannot be opened", errno);
    cli_tree_dress_put_on(dress, folder, store->options->umask);
    close(folder);
    return !*dress->reason || refuse(store, "%s", dress->reason);
}

bool cli_tree_store_dress(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct cli_beneath *at = &store->list_at;
    struct cli_tree_dress dress = {0};
    struct stat status;
    bool dressed;
    if (store->dry_run)
        return true;
    if (!find_parent(store, at, record->path, record->path_bytes))
        return false;
    note_change(store, -1);
    int entry = openat(at->folder, at->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (entry < 0 || fstat(entry, &status)) {
        dressed = failed(store, "checking the name", errno);
    } else if (S_ISLNK(status.st_mode) && record->kind == CLI_TREE_OWNER) {
        cli_tree_dress_take(&dress, record);
        dressed = dress_link(store, &dress, entry);
    } else if (S_ISDIR(status.st_mode)) {
        cli_tree_dress_take(&dress, record);
        dressed = dress_folder(store, &dress);
    } else {
        dressed = exists(store, false);
    }
    if (entry >= 0)
        close(entry);
    cli_tree_dress_clear(&dress);
    return dressed;
}

/* ---- links ----------------------------------------------------------------------------------------- */

static bool same_link(int parent, const char *name, const char *target)
{
    char there[CLI_TREE_PATH_MAX + 2];
    ssize_t bytes = readlinkat(parent, name, there, sizeof there);
    return bytes == (ssize_t)strlen(target) && !memcmp(there, target, (size_t)bytes);
}

static void set_link_time(struct cli_tree_store *store, int parent, const char *name,
                          const struct cli_tree_record *record)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, record->attributes.written};
    if (utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW))
        store->attributes_lost = true;
}

bool cli_tree_store_link(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct cli_beneath *at = &store->list_at;
    char target[CLI_TREE_PATH_MAX + 1], temporary[CLI_TREE_TEMPORARY_MAX];
    if (store->dry_run)
        return true;
    memcpy(target, record->rest, record->rest_bytes);
    target[record->rest_bytes] = 0;
    if (!find_parent(store, at, record->path, record->path_bytes))
        return false;
    note_change(store, -1);
    if (same_link(at->folder, at->name, target)) {
        set_link_time(store, at->folder, at->name, record);
        return true;
    }
    if (!may_replace(store, at->folder, at->name))
        return false;
    if (symlinkat(target, at->folder, next_temporary(temporary)))
        return failed(store, "creating the link", errno);
    set_link_time(store, at->folder, temporary, record);
    return rename_temporary(store, at->folder, temporary, at->name);
}

/* Whether that is a name of the file, too. */
static bool same_file(const struct stat *file, int parent, const char *name)
{
    struct stat there;
    return !fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) && there.st_dev == file->st_dev &&
           there.st_ino == file->st_ino;
}

bool cli_tree_store_hard_link(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct cli_beneath *at = &store->data_at, *from = &store->list_at;
    char temporary[CLI_TREE_TEMPORARY_MAX];
    struct stat status;
    if (store->dry_run)
        return true;
    if (!find_parent(store, from, record->rest, record->rest_bytes) ||
        !find_parent(store, at, record->path, record->path_bytes))
        return false;
    note_change(store, -1);
    if (fstatat(from->folder, from->name, &status, AT_SYMLINK_NOFOLLOW))
        return failed(store, "the file that it is a hard link to", errno);
    /* It may have been refused, or canceled: the file of that name is then an older one. */
    if (!unchanged(&status, record))
        return refuse(store, "the file that it is a hard link to is another one here");
    if (same_file(&status, at->folder, at->name))
        return true;
    if (!may_replace(store, at->folder, at->name))
        return false;
    if (linkat(from->folder, from->name, at->folder, next_temporary(temporary), 0))
        return failed(store, "creating the hard link", errno);
    return rename_temporary(store, at->folder, temporary, at->name);
}

/* ---- entries that are there ------------------------------------------------------------------------ */

int cli_tree_store_open_folder(struct cli_tree_store *store, const char *path, size_t path_bytes,
                               bool *there)
{
    struct cli_beneath *at = &store->list_at;
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    *there = store->root >= 0; /* a dry run has not created it */
    if (!*there)
        return -1;
    if (!path_bytes && store->options->names) {
        refuse(store, "was not asked for");
        return -1;
    }
    if (path_bytes && !find_parent(store, at, path, path_bytes)) {
        *there = at->folder >= 0 || !store->dry_run;
        return -1;
    }
    int folder = path_bytes ? openat(at->folder, at->name, flags) : openat(store->root, ".", flags);
    *there = folder >= 0 || errno != ENOENT;
    if (folder < 0)
        failed(store, "the folder cannot be opened", errno);
    return folder;
}

/* A file that took its name since was not listed. */
static bool is_listed(const struct cli_tree_holding *holding, const struct stat *status)
{
    return S_ISDIR(status->st_mode) == holding->folder &&
           (holding->folder ||
            (status->st_ino == holding->number && status->st_mtim.tv_sec == holding->written.tv_sec &&
             status->st_mtim.tv_nsec == holding->written.tv_nsec));
}

bool cli_tree_store_remove(struct cli_tree_store *store, const struct cli_tree_holding *holding)
{
    struct cli_beneath *at = &store->data_at;
    struct stat status;
    note_change(store, -1);
    if (!find_parent(store, at, holding->path, holding->path_bytes))
        return false;
    if (fstatat(at->folder, at->name, &status, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT || failed(store, "removing", errno);
    if (!is_listed(holding, &status))
        return refuse(store, "was replaced meanwhile, and is kept");
    if (!unlinkat(at->folder, at->name, holding->folder ? AT_REMOVEDIR : 0) || errno == ENOENT)
        return true;
    return errno == ENOTEMPTY || errno == EEXIST
               ? refuse(store, "the folder is kept: unfinished or new files are in it")
               : failed(store, "removing", errno);
}

/* ---- disk ------------------------------------------------------------------------------------------ */

/* The file systems of two descriptors; a difference that cannot be seen is none. */
static bool same_file_system(int file, int other)
{
    struct stat first, second;
    return fstat(file, &first) || fstat(other, &second) || first.st_dev == second.st_dev;
}

/* Of a file system that is mounted below the root: all that was written there is on disk. */
static bool sync_mounted(struct cli_tree_store *store)
{
    int error = store->mounted >= 0 && syncfs(store->mounted) ? errno : 0;
    if (store->mounted >= 0)
        close(store->mounted);
    store->mounted = -1;
    return !error || failed(store, "writing to disk", error);
}

/* Of a file that was written. */
static bool note_file_system(struct cli_tree_store *store, int file)
{
    if (same_file_system(file, store->mounted >= 0 ? store->mounted : store->root))
        return true;
    if (!sync_mounted(store))
        return false;
    store->mounted = same_file_system(file, store->root) ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
    return true;
}

/* The only file, and its name: without all that other processes have written. */
static bool sync_only(struct cli_tree_store *store)
{
    int folder = openat(store->data_at.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fsync(store->only) ? errno : 0;
    /* Folders that cannot be synced (some network file systems) do it on their own. */
    if (folder >= 0)
        fsync(folder);
    if (folder >= 0)
        close(folder);
    return !error || failed(store, "writing to disk", error);
}

bool cli_tree_store_sync(struct cli_tree_store *store)
{
    if (store->dry_run || store->root < 0)
        return true;
    if (store->only >= 0)
        return sync_only(store);
    if (syncfs(store->root))
        return failed(store, "writing to disk", errno);
    return sync_mounted(store);
}

/* ---- files ----------------------------------------------------------------------------------------- */

static bool open_temporary(struct cli_tree_store *store, int parent, mode_t mode)
{
    struct cli_tree_file *file = &store->file;
    file->file = openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    if (file->file >= 0)
        return true;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
        return failed(store, "creating the file", errno);
    file->file = openat(parent, next_temporary(file->temporary),
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, TEMPORARY_MODE);
    file->temporary_named = file->file >= 0;
    return file->temporary_named || failed(store, "creating the file", errno);
}

static bool partial_failed(struct cli_tree_store *store)
{
    const struct cli_partial *partial = &store->file.partial;
    store->fatal = store->fatal || partial->fault == CLI_PARTIAL_NO_SPACE;
    return refuse(store, "%.*s", CLI_REASON_MAX - 1, partial->reason);
}

/* A large file, from an offset on that a decision named. */
static bool open_partial(struct cli_tree_store *store, const char *name, uint64_t offset)
{
    struct cli_tree_file *file = &store->file;
    struct cli_resume_point point = {0};
    uint64_t blocks = offset / CLI_BLOCK_BYTES;
    store->block = store->block ? store->block : malloc(CLI_BLOCK_BYTES);
    if (!store->block)
        return failed(store, "memory", ENOMEM);
    if (!cli_partial_open(&file->partial, file->parent, name, file->size_bytes, store->options->force,
                          true))
        return partial_failed(store);
    file->partial_open = true;
    if (blocks &&
        !cli_partial_check(&file->partial, blocks, store->block, &store->digest, cli_stopped, &point))
        return partial_failed(store);
    if (point.blocks != blocks || offset % CLI_BLOCK_BYTES)
        return refuse(store, "the unfinished file was changed meanwhile");
    return cli_partial_start(&file->partial, blocks) || partial_failed(store);
}

/* The file that is about to be replaced. */
static bool open_old(struct cli_tree_store *store, int parent, const char *name)
{
    struct cli_tree_file *file = &store->file;
    struct stat status;
    if (!is_large(file->size_bytes) || file->sparse || !store->options->hashes)
        return refuse(store, "such a file comes as a whole");
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW))
        return failed(store, "checking the name", errno);
    if (!S_ISREG(status.st_mode))
        return refuse(store, "the existing file was replaced meanwhile");
    file->old = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file->old < 0 || fstat(file->old, &status))
        return failed(store, "opening the existing file", errno);
    return S_ISREG(status.st_mode) || refuse(store, "the existing file was replaced meanwhile");
}

static bool begin(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct cli_tree_file *file = &store->file;
    struct cli_beneath *at = &store->data_at;
    file->attributes = record->attributes;
    file->sparse = record->flags & CLI_TREE_SPARSE;
    file->position = record->number;
    if (!find_parent(store, at, record->path, record->path_bytes))
        return false;
    file->parent = at->folder;
    if (!may_replace(store, at->folder, at->name))
        return false;
    if (record->flags & CLI_TREE_CHANGED && !open_old(store, at->folder, at->name))
        return false;
    if (is_large(file->size_bytes) && !file->sparse)
        return open_partial(store, at->name, record->number);
    if (record->number)
        return refuse(store, "a file of that size begins at its start");
    return open_temporary(store, at->folder, record->attributes.mode);
}

/* The folders that a name of standard input stands in. */
static bool make_parent(struct cli_tree_store *store, const char *path, size_t bytes)
{
    char folders[CLI_TREE_PATH_MAX + 1];
    memcpy(folders, path, bytes);
    folders[bytes] = 0;
    if (path[0] == '.' && !store->options->dotfiles)
        return refuse(store, DOT_REASON);
    int opened = make_folders(store->root, folders);
    if (opened < 0)
        return failed(store, "the folder cannot be opened", -opened);
    close(opened);
    return true;
}

static bool begin_pipe(struct cli_tree_store *store, const struct cli_tree_record *root)
{
    struct cli_tree_file *file = &store->file;
    struct cli_beneath *at = &store->data_at;
    file->to_pipe = store->options->folder < 0;
    if (file->to_pipe)
        return true;
    const char *slash = memrchr(root->path, '/', root->path_bytes);
    if (slash && !make_parent(store, root->path, (size_t)(slash - root->path)))
        return false;
    if (!find_parent(store, at, root->path, root->path_bytes) || !may_replace(store, at->folder, at->name))
        return false;
    file->parent = at->folder;
    file->attributes.mode = 0666;
    return open_temporary(store, at->folder, 0666);
}

bool cli_tree_store_begin(struct cli_tree_store *store, const struct cli_tree_record *record)
{
    struct cli_tree_file *file = &store->file;
    bool pipe = record->kind == CLI_TREE_ROOT;
    /* Its folder takes the place of that of the only file so far. */
    if (store->changes)
        note_change(store, -1);
    *file =
        (struct cli_tree_file){.file = -1, .old = -1, .size_bytes = pipe ? UINT64_MAX : record->size_bytes};
    cli_tree_dress_clear(&store->dress);
    cli_digest_reset(&store->digest);
    if (pipe ? begin_pipe(store, record) : begin(store, record))
        return true;
    cli_tree_store_drop(store, true);
    return false;
}

/* Waits for a slow reader, until a signal. */
static bool write_pipe(struct cli_tree_store *store, const char *data, size_t bytes)
{
    struct pollfd reader = {.fd = store->options->pipe, .events = POLLOUT};
    struct stat status;
    bool regular = !fstat(reader.fd, &status) && S_ISREG(status.st_mode);
    while (bytes) {
        if (cli_stopped())
            return failed(store, "standard output", EINTR);
        if (poll(&reader, 1, (int)(CLI_SLICE_NS / LH_NS_PER_MS)) <= 0)
            continue;
        /* A pipe that can be written to takes PIPE_BUF at once (pipe(7)); a file takes all. */
        ssize_t put = write(reader.fd, data, bytes < PIPE_BUF || regular ? bytes : PIPE_BUF);
        if (put < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (put < 0) {
            store->fatal = true;
            return failed(store, "standard output", errno);
        }
        data += put;
        bytes -= (size_t)put;
    }
    return true;
}

static bool write_data(struct cli_tree_store *store, const void *data, size_t bytes)
{
    struct cli_tree_file *file = &store->file;
    if (bytes > file->size_bytes - file->position)
        return refuse(store, "more data than announced");
    if (file->partial_open)
        return cli_partial_append(&file->partial, &store->digest, file->position, data, bytes) ||
               partial_failed(store);
    cli_digest_add(&store->digest, data, bytes);
    if (file->to_pipe)
        return write_pipe(store, data, bytes);
    int code = cli_write_at(file->file, data, bytes, file->position);
    return !code || failed(store, "writing the file", -code);
}

bool cli_tree_store_data(struct cli_tree_store *store, const void *data, size_t bytes)
{
    if (write_data(store, data, bytes)) {
        store->file.position += bytes;
        return true;
    }
    cli_tree_store_drop(store, true);
    return false;
}

static bool copy_old(struct cli_tree_store *store, uint64_t bytes)
{
    struct cli_tree_file *file = &store->file;
    if (file->old < 0 || bytes > file->size_bytes - file->position)
        return refuse(store, "a copy where none can be");
    while (bytes) { /* each block */
        size_t part = bytes < CLI_BLOCK_BYTES ? (size_t)bytes : CLI_BLOCK_BYTES;
        int64_t got = cli_read_at(file->old, store->block, part, file->position);
        if (got < 0)
            return failed(store, "reading the existing file", (int)-got);
        if ((size_t)got < part || cli_stopped())
            return refuse(store, "the existing file shrank meanwhile");
        if (!write_data(store, store->block, part))
            return false;
        file->position += part;
        bytes -= part;
    }
    return true;
}

bool cli_tree_store_copy(struct cli_tree_store *store, uint64_t bytes)
{
    if (copy_old(store, bytes))
        return true;
    cli_tree_store_drop(store, true);
    return false;
}

bool cli_tree_store_hole(struct cli_tree_store *store, uint64_t bytes)
{
    struct cli_tree_file *file = &store->file;
    uint8_t length[8];
    bool right = file->sparse && bytes <= file->size_bytes - file->position;
    cli_tree_hole_bytes(bytes, length);
    cli_digest_add(&store->digest, length, sizeof length);
    file->position += right ? bytes : 0;
    if (right)
        return true;
    refuse(store, "a hole where none can be");
    cli_tree_store_drop(store, true);
    return false;
}

/* The open file without a name, or with a temporary one, gets its final name. */
static bool name_file(struct cli_tree_store *store, const char *name)
{
    struct cli_tree_file *file = &store->file;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->file);
    if (!file->temporary_named && !linkat(AT_FDCWD, path, file->parent, name, AT_SYMLINK_FOLLOW))
        return true;
    if (!file->temporary_named && errno == EEXIST && !store->options->force)
        return exists(store, false);
    if (!file->temporary_named &&
        linkat(AT_FDCWD, path, file->parent, next_temporary(file->temporary), AT_SYMLINK_FOLLOW))
        return failed(store, "naming the file", errno);
    file->temporary_named = false;
    return rename_temporary(store, file->parent, file->temporary, name);
}

static bool set_attributes(struct cli_tree_store *store)
{
    struct cli_tree_file *file = &store->file;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, file->attributes.written};
    cli_tree_dress_put_on(&store->dress, file->file, store->options->umask);
    bool kept = !file->attributes.known || !futimens(file->file, times);
    /* An access control list has changed the mode, and it, too, is under the umask. */
    if (file->temporary_named || store->dress.used)
        kept = !fchmod(file->file, file->attributes.mode & ~store->options->umask) && kept;
    store->attributes_lost = store->attributes_lost || !kept;
    return true;
}

static bool end(struct cli_tree_store *store, const uint8_t digest[CLI_DIGEST_BYTES])
{
    struct cli_tree_file *file = &store->file;
    uint8_t found[CLI_DIGEST_BYTES];
    cli_digest_get(&store->digest, found);
    if (memcmp(found, digest, sizeof found) != 0) {
        file->partial.blocks_recorded = 0;
        return refuse(store, "digest mismatch: received data differ from the sender's");
    }
    if (file->size_bytes != UINT64_MAX && file->position != file->size_bytes)
        return refuse(store, "the file ended before its announced size");
    if (file->to_pipe)
        return true;
    if (file->partial_open) {
        if (!note_file_system(store, file->partial.file))
            return false;
        note_change(store, file->partial.file);
        cli_tree_dress_put_on(&store->dress, file->partial.file, store->options->umask);
        if (!cli_partial_commit(&file->partial, file->attributes.mode & ~store->options->umask,
                                &file->attributes.written))
            return partial_failed(store);
        store->attributes_lost = store->attributes_lost || file->partial.attributes_lost;
        file->partial_open = false;
        return true;
    }
    /* With its size on disk before its data, it would look complete after a loss of power. */
    if (file->sparse && (ftruncate(file->file, (off_t)file->size_bytes) || fsync(file->file)))
        return failed(store, "writing the file", errno);
    note_change(store, file->file);
    return set_attributes(store) && note_file_system(store, file->file) &&
           name_file(store, store->data_at.name);
}

bool cli_tree_store_end(struct cli_tree_store *store, const uint8_t digest[CLI_DIGEST_BYTES])
{
    bool right = end(store, digest);
    /* A later transfer has no use for one that is complete and may not have its name. */
    cli_tree_store_drop(store, store->fatal);
    return right;
}

void cli_tree_store_drop(struct cli_tree_store *store, bool keep)
{
    struct cli_tree_file *file = &store->file;
    store->kept_bytes = file->partial_open ? cli_partial_abandon(&file->partial, keep) : 0;
    store->kept_of = file->size_bytes;
    if (file->temporary_named)
        unlinkat(file->parent, file->temporary, 0);
    if (file->file >= 0)
        close(file->file);
    if (file->old >= 0)
        close(file->old);
    *file = (struct cli_tree_file){.file = -1, .old = -1};
}
