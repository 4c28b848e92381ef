/*
 * tree_records.h - the stream of a tree between sender and receiver: records in messages, encoding, reading.
 *
 * A message holds whole records, at most CLI_TREE_MESSAGE_MAX bytes of them. There is no answer to a message:
 * both directions flow. The receiver decides on the files of the list while it is still being written.
 *
 *   sender                                         receiver
 *   ROOT version, folder                     --->
 *   FOLDER, LINK, LISTED, LISTED, …          --->
 *                                            <---  DECISIONS (skip, send, …), RESUME, CHANGES or REFUSED, in
 *                                                  the order of LISTED
 *   FILE, DATA, HOLE or COPY, …, FILE_END          --->
 *   FOLDER_END, HARD_LINK                    --->
 *                                            <---  FAULT for what could not be written
 *   LIST                                     --->  (with CLI_TREE_DELETES)
 *                                            <---  HELD, HELD, …, HELD_END
 *   FATES                                    --->
 *   END                                      --->
 *                                            <---  VERDICT
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_RECORDS_H
#define LH_CLI_FILE_TREE_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/file/file_blocks.h"

/*
 * Who connects is the sender; or it asks by a message of GET and a WANT for each path: then the other side is
 * the sender, or ends it by VERDICT. FAULT of a sender names an entry that it cannot send.
 * FOLDER and LINK take effect where they stand; LISTED asks. FILE repeats what LISTED has announced, so the
 * receiver keeps no list. With CLI_TREE_PIPE DATA and one FILE_END follow ROOT, without a FILE. IDLE says
 * that the sender lives.
 *
 * All kinds have one shape. Which parts a kind has stands in one table (tree_records.c); the others are not
 * in the record. Numbers are little-endian:
 *
 *   0 kind u8 | 1 flags u8 | 2 path bytes u16 | 4 rest bytes u32
 *   attributes: size u64, seconds i64, nanoseconds u32, mode u32 | number u64 | digest 16 | path | rest
 */

#define CLI_TREE_VERSION 2

#define CLI_TREE_MESSAGE_MAX CLI_BLOCK_BYTES
#define CLI_TREE_PATH_MAX    4095u /* PATH_MAX without its zero */
#define CLI_TREE_TEXT_MAX    255u

/* Of an extended attribute: what Linux takes. */
#define CLI_TREE_XATTR_NAME_MAX  255u
#define CLI_TREE_XATTR_VALUE_MAX 65536u

/* An interrupted file of more than that, without holes, is continued; its changed blocks are sent. */
#define CLI_TREE_LARGE_BYTES ((uint64_t)16 << 20)

/* Explicit numbers of the wire. */
enum cli_tree_kind {
    CLI_TREE_ROOT = 1,       /* number: version; path: folder below the output folder, or empty */
    CLI_TREE_LISTED = 2,     /* a file that the receiver decides on */
    CLI_TREE_FOLDER = 3,     /* its content follows */
    CLI_TREE_FOLDER_END = 4, /* all of its content was sent: its permissions and time */
    CLI_TREE_LINK = 5,       /* symbolic; rest: where it leads, not looked at */
    CLI_TREE_HARD_LINK = 6,  /* rest: the path of a file that was sent before; its attributes */
    CLI_TREE_FILE = 7,       /* number: offset of the first byte that follows */
    CLI_TREE_DATA = 8,       /* rest: the next bytes of the file */
    CLI_TREE_HOLE = 9,       /* number: bytes of a hole there */
    CLI_TREE_FILE_END = 10,  /* digest of all DATA and HOLE: cli_tree_hole_bytes() */
    CLI_TREE_CANCEL = 11,    /* the file could not be read to its end */
    CLI_TREE_IDLE = 12,
    CLI_TREE_END = 13,   /* number: entries that the sender could not send */
    CLI_TREE_GET = 14,   /* in place of ROOT; number: the version */
    CLI_TREE_WANT = 15,  /* path: below the sender's folder; empty: all that is in it */
    CLI_TREE_LIST = 16,  /* asks for all that is below that folder, or below that of ROOT */
    CLI_TREE_XATTR = 18, /* path: a folder, empty: the open file; rest: name, a zero, value */
    CLI_TREE_OWNER = 19, /* path: a folder or link, empty: the open file; number: user, group << 32;
                            rest: their names, "user:group" */
    CLI_TREE_COPY = 20,  /* number: bytes of the receiver's file of that name, from the same offset */
    CLI_TREE_FATES = 17, /* rest: a byte for each HELD, enum cli_tree_fate */

    CLI_TREE_DECISIONS = 32, /* rest: a byte for each LISTED, enum cli_tree_decision */
    CLI_TREE_RESUME = 33,    /* decision: send it from an offset on, if what precedes has that digest */
    CLI_TREE_REFUSED = 34,   /* decision: no; rest: the reason */
    CLI_TREE_FAULT = 35,     /* of either side; path, rest: the reason */
    CLI_TREE_CHANGES = 39,   /* decision: as RESUME, or from the start; rest: tree_changes.h */
    CLI_TREE_HELD = 37,      /* an entry that is there; its folder follows it */
    CLI_TREE_HELD_END = 38,  /* of one LIST */
    CLI_TREE_VERDICT = 36, /* number: entries that failed at the receiver; rest: what ended it, or empty */
};

enum cli_tree_decision { CLI_TREE_SKIP = 0, CLI_TREE_SEND = 1 };
enum cli_tree_fate { CLI_TREE_KEEP = 0, CLI_TREE_REMOVE = 1 };

enum cli_tree_flag {
    CLI_TREE_DRY_RUN = 1,   /* ROOT, GET: decide, and write nothing */
    CLI_TREE_PIPE = 2,      /* ROOT: one file of unknown size; path: its name, or empty */
    CLI_TREE_XATTRS = 8,    /* ROOT, GET: XATTR may come */
    CLI_TREE_OWNERS = 16,   /* ROOT, GET: OWNER may come */
    CLI_TREE_DELETES = 4,   /* ROOT, GET: LIST and FATES may come */
    CLI_TREE_IS_FOLDER = 1, /* HELD */
    CLI_TREE_STOPPED = 1,   /* VERDICT: by a signal or a lost path; a later transfer goes on */
    CLI_TREE_CHANGED = 2,   /* FILE: COPY may follow */
    CLI_TREE_SPARSE = 1,    /* FILE: holes may follow, and no later transfer goes on in the middle */
};

/* What a record has of these is its kind's; pointers lead into the message, and end with no zero. */
struct cli_tree_record {
    enum cli_tree_kind kind;
    uint8_t flags;
    struct cli_file_attributes attributes; /* known: always */
    uint64_t size_bytes;
    uint64_t number;
    uint8_t digest[CLI_DIGEST_BYTES];
    const char *path;
    size_t path_bytes;
    const char *rest;
    size_t rest_bytes;
};

/* Into out[capacity]: the bytes used; 0: it does not fit. A rest of NULL is left to the caller, to be filled
 * in: it is the last part. */
size_t cli_tree_encode(const struct cli_tree_record *record, uint8_t *out, size_t capacity);
/* The bytes of the first record of the message; or -LH_EPROTOCOL. Checks everything but the order: paths are
 * such that cli_tree_path_wrong() lets pass, numbers in range, texts without a zero. */
int64_t cli_tree_decode(const uint8_t *data, size_t bytes, struct cli_tree_record *record);

/* What a digest takes in for a hole. */
static inline void cli_tree_hole_bytes(uint64_t hole_bytes, uint8_t out[8])
{
    cli_put_u64(out, hole_bytes);
}

/* Of a first message: 0; -LH_EVERSION: it is one of another version; -LH_EPROTOCOL: it is none. */
int cli_tree_first(const uint8_t *data, size_t bytes, struct cli_tree_record *record);

/* NULL when it is a relative path of plain names, none of them . or .., that is as long as file systems take;
 * else what is wrong with it, in words that go after "the path". */
const char *cli_tree_path_wrong(const char *path, size_t bytes);

/* As it can be printed: control characters, backslashes and what is not UTF-8 as \ooo; cut at size. Returns
 * out. */
char *cli_tree_path_shown(const char *path, size_t bytes, char *out, size_t size);
#define CLI_TREE_SHOWN_MAX 1024

#endif
