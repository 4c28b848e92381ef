/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_delete.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <longhaul/error.h>
#include <longhaul/types.h>

#include "cli/file/file_names.h"
#include "cli/file/tree_beneath.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_rules.h"
#include "cli/file/tree_store.h"
#include "cli/file/tree_walk.h"
#include "cli/terminal/terminal.h"

/* ---- list ------------------------------------------------------------------------------------------ */

/* Each level holds a folder open, as the walker's do. */
#define DEPTH_MAX 512u

static bool refuse(struct cli_tree_store *store, const char *what, int error)
{
    snprintf(store->reason, sizeof store->reason, "%s%s%s", what, error ? ": " : "",
             error ? strerror(error) : "");
    return false;
}

struct lister {
    struct cli_tree_held *held;
    struct cli_tree_store *store;
    unsigned depth;
    size_t path_bytes;
    char path[CLI_TREE_PATH_MAX + 1];
};

static bool add(struct lister *l, const struct stat *status)
{
    struct cli_tree_held *held = l->held;
    size_t bytes = sizeof(struct cli_tree_holding) + l->path_bytes + 1;
    if (held->bytes + bytes > CLI_TREE_HELD_BYTES_MAX)
        return refuse(l->store, "too many entries to compare (64 MiB of names)", 0);
    if (held->count == held->capacity) {
        uint64_t capacity = held->capacity ? 2 * held->capacity : 1024;
        void *entries = reallocarray(held->entries, capacity, sizeof(void *));
        if (!entries)
            return refuse(l->store, "memory", ENOMEM);
        held->entries = entries;
        held->capacity = capacity;
    }
    struct cli_tree_holding *holding = malloc(bytes);
    if (!holding)
        return refuse(l->store, "memory", ENOMEM);
    *holding = (struct cli_tree_holding){.number = status->st_ino,
                                         .written = status->st_mtim,
                                         .folder = S_ISDIR(status->st_mode),
                                         .path_bytes = l->path_bytes};
    memcpy(holding->path, l->path, l->path_bytes + 1);
    held->entries[held->count++] = holding;
    held->bytes += bytes;
    return true;
}

static bool list_folder(struct lister *l, int folder);

/* An entry of the open folder, and what is in it. One that went away meanwhile is none. */
static bool list_entry(struct lister *l, int folder, const char *name)
{
    struct stat status;
    size_t before = l->path_bytes, bytes = strlen(name), slash = before > 0;
    if (!strcmp(name, ".") || !strcmp(name, "..") || cli_file_name_reserved(name, bytes) ||
        !cli_tree_store_takes(l->store, before, name))
        return true;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT || refuse(l->store, "reading the folder", errno);
    if (before + slash + bytes > CLI_TREE_PATH_MAX)
        return refuse(l->store, "holds an entry whose path is longer than 4095 bytes", 0);
    memcpy(l->path + before, "/", slash);
    memcpy(l->path + before + slash, name, bytes + 1);
    l->path_bytes = before + slash + bytes;
    bool listed = true;
    if (S_ISDIR(status.st_mode)) {
        int inside = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        listed = inside >= 0 ? list_folder(l, inside) : refuse(l->store, "reading a folder in it", errno);
    }
    listed = listed && add(l, &status);
    l->path_bytes = before;
    l->path[before] = 0;
    return listed;
}

/* Closes the folder. */
static bool list_folder(struct lister *l, int folder)
{
    DIR *stream = l->depth < DEPTH_MAX ? fdopendir(folder) : NULL;
    const struct dirent *found;
    bool listed = true;
    if (!stream) {
        close(folder);
        return refuse(l->store, "folders are nested too deeply (at most 512)", 0);
    }
    l->depth++;
    while (listed && !cli_stopped() && (errno = 0, found = readdir(stream))) /* each entry */
        listed = list_entry(l, folder, found->d_name);
    if (listed && (errno || cli_stopped()))
        listed = refuse(l->store, "reading the folder", errno ? errno : EINTR);
    l->depth--;
    closedir(stream);
    return listed;
}

bool cli_tree_held_list(struct cli_tree_held *held, struct cli_tree_store *store, const char *path,
                        size_t path_bytes)
{
    bool there;
    int folder = cli_tree_store_open_folder(store, path, path_bytes, &there);
    if (folder < 0)
        return !there;
    struct lister *l = calloc(1, sizeof *l);
    if (!l) {
        close(folder);
        return refuse(store, "memory", ENOMEM);
    }
    *l = (struct lister){.held = held, .store = store, .path_bytes = path_bytes};
    memcpy(l->path, path, path_bytes);
    bool listed = list_folder(l, folder);
    free(l);
    return listed;
}

const struct cli_tree_holding *cli_tree_held_entry(const struct cli_tree_held *held, uint64_t number)
{
    assert(number < held->count);
    return held->entries[number];
}

bool cli_tree_held_decide(struct cli_tree_held *held, const char *fates, size_t count)
{
    if (count > held->count - held->decided)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (fates[i] != CLI_TREE_KEEP && fates[i] != CLI_TREE_REMOVE)
            return false;
        held->entries[held->decided++]->removed = fates[i] == CLI_TREE_REMOVE;
    }
    return true;
}

uint64_t cli_tree_held_removed(const struct cli_tree_held *held,
                               char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX])
{
    uint64_t removed = 0;
    for (uint64_t i = 0; i < held->count; i++) { /* each entry */
        const struct cli_tree_holding *holding = held->entries[i];
        if (holding->removed && removed < CLI_TREE_EXTRAS_SHOWN)
            cli_tree_path_shown(holding->path, holding->path_bytes, shown[removed], CLI_TREE_SHOWN_MAX);
        removed += holding->removed;
    }
    return removed;
}

void cli_tree_held_close(struct cli_tree_held *held)
{
    for (uint64_t i = 0; i < held->count; i++)
        free(held->entries[i]);
    free(held->entries);
    *held = (struct cli_tree_held){0};
}

/* ---- judge ----------------------------------------------------------------------------------------- */

/* Whether the rules exclude it, or a folder that it is in. */
static bool is_excluded(const struct cli_tree_rules *rules, const char *path, bool folder)
{
    char part[CLI_TREE_PATH_MAX + 1];
    for (const char *slash = path; rules && rules->count && (slash = strchr(slash, '/')); slash++) {
        memcpy(part, path, (size_t)(slash - path));
        part[slash - path] = 0;
        if (cli_tree_rules_exclude(rules, part, true))
            return true;
    }
    return cli_tree_rules_exclude(rules, path, folder);
}

/* Whether an operand has an entry of that path; in doubt it has. */
static bool operand_has(struct cli_tree_judge *judge, const struct cli_tree_operand *operand,
                        const char *path)
{
    struct stat status;
    int code;
    if (*operand->reason)
        return true;
    if (judge->follow) {
        code = fstatat(operand->folder, path, &status, 0) ? errno : 0;
    } else {
        if (judge->at.root != operand->folder)
            cli_beneath_close(&judge->at);
        judge->at.root = operand->folder;
        code = -cli_beneath_parent(&judge->at, path, strlen(path));
        if (code <= 0)
            code = fstatat(judge->at.folder, judge->at.name, &status, AT_SYMLINK_NOFOLLOW) ? errno : 0;
    }
    bool missing = code == ENOENT || code == ENOTDIR || code == ELOOP;
    judge->error = code && !missing ? code : judge->error;
    return !missing;
}

static bool source_has(struct cli_tree_judge *judge, const char *path)
{
    size_t first = strcspn(path, "/");
    for (unsigned i = 0; i < judge->count; i++) {
        const struct cli_tree_operand *operand = &judge->operands[i];
        bool named = strlen(operand->name) == first && !memcmp(operand->name, path, first);
        if ((named || !*operand->name) && operand_has(judge, operand, path))
            return true;
    }
    return false;
}

/* Whether something in the folder is kept: it came before. */
static bool has_kept(const struct cli_tree_judge *judge, const char *path, size_t bytes)
{
    return !strncmp(judge->kept, path, bytes) && judge->kept[bytes] == '/';
}

int cli_tree_judge_next(struct cli_tree_judge *judge, const char *path, size_t path_bytes, bool folder)
{
    char name[CLI_TREE_PATH_MAX + 1];
    memcpy(name, path, path_bytes);
    name[path_bytes] = 0;
    if (judge->judged == judge->capacity) {
        uint64_t capacity = judge->capacity ? 2 * judge->capacity : 1024;
        char *fates = capacity <= CLI_TREE_FATES_MAX ? realloc(judge->fates, capacity) : NULL;
        if (!fates)
            return -LH_ENOMEM;
        judge->fates = fates;
        judge->capacity = capacity;
    }
    bool kept = (folder && has_kept(judge, name, path_bytes)) || is_excluded(judge->rules, name, folder) ||
                source_has(judge, name);
    if (kept)
        memcpy(judge->kept, name, path_bytes + 1);
    else if (judge->removed++ < CLI_TREE_EXTRAS_SHOWN)
        cli_tree_path_shown(path, path_bytes, judge->shown[judge->removed - 1], CLI_TREE_SHOWN_MAX);
    judge->fates[judge->judged++] = kept ? CLI_TREE_KEEP : CLI_TREE_REMOVE;
    return kept ? CLI_TREE_KEEP : CLI_TREE_REMOVE;
}

void cli_tree_judge_close(struct cli_tree_judge *judge)
{
    cli_beneath_close(&judge->at);
    free(judge->fates);
    judge->fates = NULL;
}

/* ---- question -------------------------------------------------------------------------------------- */

bool cli_tree_question_possible(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

void cli_tree_question_ask(uint64_t count, const char *where,
                           char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX])
{
    cli_output_lock();
    cli_output_erase_bars();
    fprintf(stderr, "%" PRIu64 " %s (%s):\n", count,
            count == 1 ? "entry that the sender does not have" : "entries that the sender does not have",
            where);
    for (uint64_t i = 0; i < count && i < CLI_TREE_EXTRAS_SHOWN; i++)
        fprintf(stderr, "  %s\n", shown[i]);
    if (count > CLI_TREE_EXTRAS_SHOWN)
        fprintf(stderr, "  and %" PRIu64 " more\n", count - CLI_TREE_EXTRAS_SHOWN);
    fprintf(stderr, "Delete? [y/N] ");
    fflush(stderr);
    cli_output_unlock();
}

enum cli_tree_answer cli_tree_question_look(void)
{
    char line[64];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(&input, 1, (int)(CLI_SLICE_NS / LH_NS_PER_MS));
    if (ready <= 0)
        return !ready || errno == EINTR ? CLI_TREE_NO_ANSWER : CLI_TREE_NO;
    ssize_t got = read(STDIN_FILENO, line, sizeof line);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return CLI_TREE_NO_ANSWER;
    return got > 0 && (line[0] == 'y' || line[0] == 'Y') ? CLI_TREE_YES : CLI_TREE_NO;
}
