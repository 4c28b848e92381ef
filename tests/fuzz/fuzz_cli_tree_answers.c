/*
 * fuzz_cli_tree_answers.c - what a getter asks for, and what a receiver answers: paths to open, decisions on
 * the list, entries that it has.
 *
 * No path that is asked for leads out of the folder, and no decision is taken on more entries than there are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/file/tree_changes.h"
#include "cli/file/tree_delete.h"
#include "cli/file/tree_list.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_walk.h"

#define FILES      8u
#define FILE_BYTES ((uint64_t)20 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char base[64]; /* holds served, with a folder, a file in it and a link out; and secret/d/x */
static int served = -1;
static struct stat outside;

static void remove_base(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", base);
    if (system(command))
        perror(base);
}

static void set_up(void)
{
    char path[96];
    snprintf(base, sizeof base, "/tmp/fuzz_cli_tree_answers.XXXXXX");
    assert(mkdtemp(base));
    atexit(remove_base);
    snprintf(path, sizeof path, "%s/secret", base);
    assert(!mkdir(path, 0700));
    snprintf(path, sizeof path, "%s/secret/d", base);
    assert(!mkdir(path, 0700) && !stat(path, &outside));
    snprintf(path, sizeof path, "%s/secret/d/x", base);
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert(file >= 0 && !close(file));
    snprintf(path, sizeof path, "%s/served", base);
    assert(!mkdir(path, 0700));
    served = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(served >= 0 && !mkdirat(served, "d", 0700) && !symlinkat("../secret", served, "l"));
    file = openat(served, "d/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert(file >= 0);
    close(file);
}

/* A path of WANT. */
static void open_wanted(const struct cli_tree_record *record)
{
    struct cli_tree_operand operand;
    struct stat status;
    if (!cli_tree_operand_beneath(&operand, served, record->path, record->path_bytes)) {
        assert(*operand.reason && operand.folder < 0);
        return;
    }
    assert(!fstat(operand.folder, &status) && status.st_ino != outside.st_ino);
    assert(!strchr(operand.name, '/') && strcmp(operand.name, "..") != 0);
    cli_tree_operand_close(&operand);
}

static void fill_list(struct cli_tree_list *list)
{
    assert(!cli_tree_list_open(list));
    for (unsigned i = 0; i < FILES; i++) {
        const struct cli_tree_record file = {
            .kind = CLI_TREE_LISTED, .path = "f", .path_bytes = 1, .size_bytes = i % 2 ? FILE_BYTES : 5};
        assert(cli_tree_list_add(list, &file, 0));
    }
    cli_tree_list_announce(list);
}

static void decide(struct cli_tree_list *list, const struct cli_tree_record *record, unsigned *decided)
{
    char path[CLI_TREE_PATH_MAX + 1];
    uint64_t size;
    struct cli_tree_record one = {.kind = CLI_TREE_DECISIONS};
    if (record->kind != CLI_TREE_DECISIONS) {
        *decided += cli_tree_list_decide(list, record, path, &size);
    } else {
        for (size_t i = 0; i < record->rest_bytes; i++) {
            one.number = (uint8_t)record->rest[i];
            *decided += cli_tree_list_decide(list, &one, path, &size);
        }
    }
    assert(*decided <= FILES);
}

/* Looks at each file as the sender does. */
static void take_all(struct cli_tree_list *list)
{
    static const uint8_t block[CLI_BLOCK_BYTES];
    struct cli_tree_entry *entry;
    size_t bytes = cli_tree_changes_block(FILE_BYTES);
    while (cli_tree_list_take(list, 0, &entry) == CLI_TREE_NEXT) { /* each that is decided */
        for (uint64_t at = 0; entry->changes && at < FILE_BYTES; at += bytes)
            cli_tree_changes_same(entry->changes, entry->changes_bytes, at, block, bytes);
        assert(!entry->changes || entry->size_bytes == FILE_BYTES);
        cli_tree_entry_free(entry);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct cli_tree_rules rules = {.count = 1, .rules = {{.pattern = "*.o", .includes = false}}};
    struct cli_tree_operand operand;
    struct cli_tree_list list;
    struct cli_tree_record record;
    unsigned decided = 0;
    if (served < 0)
        set_up();
    fill_list(&list);
    assert(cli_tree_operand_beneath(&operand, served, "d", 1));
    struct cli_tree_judge judge = {
        .operands = &operand, .count = 1, .rules = &rules, .at = {.root = -1, .folder = -1}};
    for (size_t at = 0; at < size;) { /* each record */
        int64_t used = cli_tree_decode(data + at, size - at, &record);
        if (used < 0)
            break;
        at += (size_t)used;
        if (record.kind == CLI_TREE_WANT)
            open_wanted(&record);
        if (record.kind == CLI_TREE_HELD)
            cli_tree_judge_next(&judge, record.path, record.path_bytes, record.flags & CLI_TREE_IS_FOLDER);
        if (record.kind == CLI_TREE_DECISIONS || record.kind == CLI_TREE_REFUSED ||
            record.kind == CLI_TREE_RESUME || record.kind == CLI_TREE_CHANGES)
            decide(&list, &record, &decided);
    }
    assert(judge.removed <= judge.judged && judge.judged <= size);
    take_all(&list);
    cli_tree_list_close(&list);
    cli_tree_judge_close(&judge);
    cli_tree_operand_close(&operand);
    return 0;
}
