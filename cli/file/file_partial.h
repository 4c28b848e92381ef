/*
 * file_partial.h - a file being received: .NAME.longhaul-partial until it is complete, on disk and verified,
 * NAME then.
 *
 * Of a long NAME these names contain the beginning and the digest (file_names.h). Beside it is
 * .NAME.longhaul-resume. Only the receiver's user can read them. The first is locked while
 * they are written, and every name is taken relative to the open output folder, without following links.
 * Names can be removed or taken by others at any time: what is committed, kept or deleted is the file
 * that is open, never what a name leads to by then.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_PARTIAL_H
#define LH_CLI_FILE_FILE_PARTIAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"

/* ---- resume ---------------------------------------------------------------------------------------- */

/*
 * The record file of an unfinished file: its verified blocks.
 *
 * A header, then one record for each complete block: the digest of the file from its start to the end
 * of that block. On resumption the unfinished file is read again and compared, so that nothing is believed
 * that was not written, whatever ended the first try.
 *
 *   0 magic "LHRESUME" | 8 version u32 | 12 block bytes u32 | 16 size of the whole file u64 | 24 records,
 * 16 bytes each
 */

/* Calls return 0 or -errno. */

struct cli_resume_point {
    uint64_t blocks;                  /* that are right, from the start on */
    uint64_t other_size_bytes;        /* the records are of a file of that size: not of this one; else 0 */
    uint8_t digest[CLI_DIGEST_BYTES]; /* of those */
};

/* ---- partial --------------------------------------------------------------------------------------- */

#define CLI_REASON_MAX 240

/* What a caller has a remedy for. */
enum cli_partial_fault { CLI_PARTIAL_OTHER, CLI_PARTIAL_EXISTS, CLI_PARTIAL_IN_USE, CLI_PARTIAL_NO_SPACE };

struct cli_partial {
    int folder;  /* of the caller */
    int file;    /* -1: not open */
    int sidecar; /* -1: not open */
    uint64_t size_bytes;
    uint64_t found_bytes; /* the unfinished file of an earlier try was that long */
    uint64_t blocks_recorded;
    uint64_t reserved_bytes; /* of the file, from its start: on disk or set aside there */
    bool started;            /* cli_partial_start() was called: what an earlier try left is no more */
    bool force;              /* may replace a file that exists */
    bool attributes_lost;    /* the committed file has not the mode and time that it was to have */
    char name[CLI_FILE_NAME_MAX + 1];
    /* After a call that returned false: why, in words that go to both sides. */
    char reason[CLI_REASON_MAX];
    enum cli_partial_fault fault;
};

/* Takes the name, which cli_file_name_wrong() has let pass, where there is room on disk for the file. With
 * resume what is there of an earlier try stays, else it is replaced. After false nothing is open, and what
 * was there before is as before. */
bool cli_partial_open(struct cli_partial *partial, int folder, const char *name, uint64_t size_bytes,
                      bool force, bool resume);
/* How far an earlier try came, up to blocks_max; as cli_resume_check. */
bool cli_partial_check(struct cli_partial *partial, uint64_t blocks_max, uint8_t *block,
                       struct cli_digest *digest, int (*stopped)(void), struct cli_resume_point *point);
/* Writing starts after that many blocks; what stood behind them is cut off. */
bool cli_partial_start(struct cli_partial *partial, uint64_t blocks);
/* The next bytes of the file, in pieces of any length: written, added to the digest of all before them, and
 * recorded at the end of each block. */
bool cli_partial_append(struct cli_partial *partial, struct cli_digest *digest, uint64_t offset,
                        const void *data, size_t bytes);
/* All that was written is on disk; or false. */
bool cli_partial_sync(struct cli_partial *partial);
/* On disk and under its name, with that mode (of 0777) and time (NULL: as it is), or false; then still to be
 * abandoned. It is so also when the partial file lost its name meanwhile. */
bool cli_partial_commit(struct cli_partial *partial, mode_t mode, const struct timespec *written);
/* Whether the open files still have their names: not removed or replaced by others. */
bool cli_partial_named(const struct cli_partial *partial);
/* Closes it; keeps it for a resumption when that is asked for and something in it is worth it, else deletes
 * it. Returns the bytes that are kept of this try. */
uint64_t cli_partial_abandon(struct cli_partial *partial, bool keep);

#endif
