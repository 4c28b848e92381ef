/*
 * fuzz_cli_tree_store.c - records of a sender, or of a server, in any order, into a folder.
 *
 * Besides what sanitizers see: nothing appears or changes outside of the folder. The first byte chooses what
 * the receiver permits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/file/tree_delete.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[64]; /* holds out and elsewhere, with one file and an empty folder */
static int out = -1;
static struct cli_tree_store store;
static struct cli_tree_held held;
static bool open_file;

static int remove_any(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    return place->level ? remove(path) : 0;
}

static void remove_base(void)
{
    nftw(base, remove_any, 16, FTW_DEPTH | FTW_PHYS);
    rmdir(base);
}

static void set_up(void)
{
    char path[96];
    snprintf(base, sizeof base, "/tmp/fuzz_cli_tree_store.XXXXXX");
    assert(mkdtemp(base));
    atexit(remove_base);
    snprintf(path, sizeof path, "%s/elsewhere", base);
    assert(!mkdir(path, 0700));
    snprintf(path, sizeof path, "%s/elsewhere/f", base);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    assert(file >= 0 && write(file, "untouched", 9) == 9 && !close(file));
    snprintf(path, sizeof path, "%s/elsewhere/d", base);
    assert(!mkdir(path, 0700));
    snprintf(path, sizeof path, "%s/out", base);
    assert(!mkdir(path, 0700));
    out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(out >= 0);
}

static void check_elsewhere(void)
{
    char path[96], text[16] = "";
    struct stat folder, file;
    snprintf(path, sizeof path, "%s/elsewhere", base);
    assert(!lstat(path, &folder) && (folder.st_mode & 07777) == 0700 && folder.st_nlink == 3);
    snprintf(path, sizeof path, "%s/elsewhere/f", base);
    assert(!lstat(path, &file) && (file.st_mode & 07777) == 0400 && file.st_size == 9 &&
           file.st_nlink == 1);
    int opened = open(path, O_RDONLY | O_CLOEXEC);
    assert(opened >= 0 && read(opened, text, sizeof text) == 9 && !strcmp(text, "untouched"));
    close(opened);
    snprintf(path, sizeof path, "%s/elsewhere/d", base);
    assert(!rmdir(path) && !mkdir(path, 0700));
    /* Nothing beside both. */
    assert(!lstat(base, &folder) && folder.st_nlink == 4);
}

/* A folder, a file and a link out of it, for records to find; the attributes are those of the records. */
static void fill(void)
{
    int file = openat(out, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert(file >= 0 && write(file, "old", 3) == 3);
    close(file);
    assert(!mkdirat(out, "d", 0700) && !symlinkat("../elsewhere", out, "l"));
}

static void file_record(const struct cli_tree_record *record)
{
    if (record->kind == CLI_TREE_FILE && !open_file)
        open_file = cli_tree_store_begin(&store, record);
    else if (record->kind == CLI_TREE_DATA && open_file)
        open_file = cli_tree_store_data(&store, record->rest, record->rest_bytes);
    else if (record->kind == CLI_TREE_HOLE && open_file)
        open_file = cli_tree_store_hole(&store, record->number);
    else if (record->kind == CLI_TREE_COPY && open_file)
        open_file = cli_tree_store_copy(&store, record->number);
    else if (record->kind == CLI_TREE_CANCEL && open_file)
        cli_tree_store_drop(&store, open_file = false);
    else if (record->kind == CLI_TREE_FILE_END && open_file)
        open_file = cli_tree_store_end(&store, record->digest) && false;
}

static void entry_record(const struct cli_tree_record *record)
{
    struct cli_tree_record answer;
    switch ((int)record->kind) {
    case CLI_TREE_LISTED:
        cli_tree_store_decide(&store, record, &answer);
        break;
    case CLI_TREE_FOLDER:
        cli_tree_store_folder(&store, record);
        break;
    case CLI_TREE_LINK:
        cli_tree_store_link(&store, record);
        break;
    case CLI_TREE_FOLDER_END:
        if (!open_file)
            cli_tree_store_folder_end(&store, record);
        break;
    case CLI_TREE_HARD_LINK:
        if (!open_file)
            cli_tree_store_hard_link(&store, record);
        break;
    case CLI_TREE_XATTR:
    case CLI_TREE_OWNER:
        if (record->path_bytes)
            cli_tree_store_dress(&store, record);
        else if (open_file)
            cli_tree_dress_take(&store.dress, record);
        break;
    case CLI_TREE_LIST:
        if (!open_file && !held.decided)
            cli_tree_held_list(&held, &store, record->path, record->path_bytes);
        break;
    case CLI_TREE_FATES:
        cli_tree_held_decide(&held, record->rest, record->rest_bytes);
        break;
    default:
        file_record(record);
    }
}

static void remove_decided(void)
{
    for (uint64_t i = 0; i < held.count; i++)
        if (cli_tree_held_entry(&held, i)->removed)
            cli_tree_store_remove(&store, cli_tree_held_entry(&held, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"d", "f"};
    struct cli_tree_record record;
    char path[96];
    if (out < 0)
        set_up();
    uint8_t choice = size ? data[0] : 0;
    const struct cli_tree_options options = {.folder = out,
                                             .pipe = -1,
                                             .force = choice & 1,
                                             .dotfiles = choice & 2,
                                             .deletes = true,
                                             .hashes = true,
                                             .xattrs = true,
                                             .owners = true,
                                             .names = choice & 4 ? names : NULL,
                                             .names_count = 2};
    size_t at = size > 0;
    int64_t used = cli_tree_decode(data + at, size - at, &record);
    if (used < 0 || record.kind != CLI_TREE_ROOT || record.flags & CLI_TREE_PIPE)
        return 0;
    fill();
    if (cli_tree_store_open(&store, &options, &record))
        while ((size_t)used <= size - at && (at += (size_t)used) < size) { /* each record */
            used = cli_tree_decode(data + at, size - at, &record);
            if (used < 0)
                break;
            entry_record(&record);
        }
    if (!open_file)
        remove_decided();
    open_file = false;
    cli_tree_held_close(&held);
    cli_tree_store_close(&store);
    check_elsewhere();
    snprintf(path, sizeof path, "%s/out", base);
    assert(!nftw(path, remove_any, 16, FTW_DEPTH | FTW_PHYS));
    return 0;
}
