/*
 * tree_store.h - the output folder of a tree: files, folders and links as the stream brings them, and nothing
 * outside of it.
 *
 * A file has no name (O_TMPFILE; where a file system lacks that, a short one of its own) until it is complete
 * and its digest is right. A large one is a file_partial.h, so that a later transfer goes on in the middle.
 * Paths come from the decoder (tree_records.h), so they are relative and plain; links on them are not
 * followed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_STORE_H
#define LH_CLI_FILE_TREE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/file_partial.h"
#include "cli/file/tree_attributes.h"
#include "cli/file/tree_beneath.h"
#include "cli/file/tree_records.h"

struct cli_tree_options {
    int folder;               /* where all goes, open; -1: to `pipe` */
    int pipe;                 /* standard output, for a stream of CLI_TREE_PIPE; else -1 */
    bool force;               /* may replace files */
    bool dotfiles;            /* takes names in the output folder that begin with a dot */
    bool xattrs, owners;      /* are set, if the sender sends them */
    bool hashes;              /* of files that it may replace go to the sender: their changed blocks come */
    bool deletes;             /* removes what the sender does not have, if it asks for that */
    mode_t umask;             /* what files may not permit */
    bool json;                /* a line for each event, on stdout */
    bool names_peer;          /* one of several transfers of this process */
    const char *const *names; /* the only ones that may come in the output folder; NULL: any */
    unsigned names_count;
    const _Atomic bool
        *crowded; /* slow peers lose their place while it is set (cli_pace_is_slow); or NULL */
};

#define CLI_TREE_TEMPORARY_MAX 48

/* A file being written. */
struct cli_tree_file {
    int file;             /* -1: of the partial, or none */
    bool partial_open;    /* it is a large one */
    bool temporary_named; /* it has the temporary name below */
    bool to_pipe;         /* it is standard output */
    bool sparse;          /* digest of data and holes, not of all bytes */
    int old;              /* the file of that name so far, to copy from; or -1 */
    int parent;           /* of the cache data_at */
    uint64_t size_bytes;  /* as announced; UINT64_MAX: not known */
    uint64_t position;
    struct cli_file_attributes attributes;
    struct cli_partial partial;
    char temporary[CLI_TREE_TEMPORARY_MAX];
};

struct cli_tree_store {
    const struct cli_tree_options *options;
    int root;     /* the options' folder, or one below it */
    bool dry_run; /* decides, and writes nothing */
    struct cli_beneath list_at, data_at;
    struct cli_tree_file file;
    struct cli_digest digest;
    struct cli_tree_dress dress;  /* of the open file; after its end: of the last one, for its reason */
    uint64_t kept_bytes, kept_of; /* of the file that was dropped last: for a later transfer */
    unsigned changes;             /* files that were named, folders, links; up to 2 */
    int only;                     /* the file that is the only change so far; or -1 */
    int mounted;                  /* a file on another file system than root: not synced; or -1 */
    uint8_t *block;               /* for files that are there; or NULL */
    uint8_t *hashes;              /* of the last answer of CLI_TREE_CHANGES; or NULL */
    bool fatal;                   /* after false: nothing else can be written either */
    bool attributes_lost;         /* some time was not preserved */
    char reason[CLI_REASON_MAX];  /* after false: why, in words that go to both sides */
};

/* All return false with the reason, unless they say something else. */

/* Takes what ROOT says: the folder of that path, created unless it is a dry run. The options must stay. */
bool cli_tree_store_open(struct cli_tree_store *store, const struct cli_tree_options *options,
                         const struct cli_tree_record *root);
void cli_tree_store_close(struct cli_tree_store *store);

/* An answer to LISTED: CLI_TREE_DECISIONS with one decision in number, CLI_TREE_RESUME, CLI_TREE_CHANGES or
 * CLI_TREE_REFUSED. The reason of the latter, and the rest of CHANGES, are the store's. */
void cli_tree_store_decide(struct cli_tree_store *store, const struct cli_tree_record *listed,
                           struct cli_tree_record *answer);

bool cli_tree_store_folder(struct cli_tree_store *store, const struct cli_tree_record *record);
bool cli_tree_store_folder_end(struct cli_tree_store *store, const struct cli_tree_record *record);
bool cli_tree_store_link(struct cli_tree_store *store, const struct cli_tree_record *record);
bool cli_tree_store_hard_link(struct cli_tree_store *store, const struct cli_tree_record *record);

/* Attributes of a folder or, owners only, of a link that is there. */
bool cli_tree_store_dress(struct cli_tree_store *store, const struct cli_tree_record *record);

/* A file: begun, written in order, ended or dropped. Between them no other is begun. After false it is
 * dropped. */
bool cli_tree_store_begin(struct cli_tree_store *store, const struct cli_tree_record *record);
bool cli_tree_store_data(struct cli_tree_store *store, const void *data, size_t bytes);
/* The same bytes as the file of that name has there. */
bool cli_tree_store_copy(struct cli_tree_store *store, uint64_t bytes);
bool cli_tree_store_hole(struct cli_tree_store *store, uint64_t bytes);
/* It gets its name, unless its digest or size is another. */
bool cli_tree_store_end(struct cli_tree_store *store, const uint8_t digest[CLI_DIGEST_BYTES]);
/* keep: of a large one stays what was written. */
void cli_tree_store_drop(struct cli_tree_store *store, bool keep);

/* ---- entries that are there ------------------------------------------------------------------------ */

/* As it was when it was listed. */
struct cli_tree_holding {
    ino_t number;
    struct timespec written;
    bool folder;
    bool removed; /* that is decided */
    size_t path_bytes;
    char path[]; /* ends with a zero */
};

/* The folder of a path, or the root for an empty one, to be closed; -1 with the reason. there: it is no
 * reason that nothing is there. */
int cli_tree_store_open_folder(struct cli_tree_store *store, const char *path, size_t path_bytes,
                               bool *there);
/* Whether a name in a folder of so many bytes below the root is one that this transfer may use. */
bool cli_tree_store_takes(const struct cli_tree_store *store, size_t folder_bytes, const char *name);
/* Removes it: an empty folder, or a file that is still the one that was listed. */
bool cli_tree_store_remove(struct cli_tree_store *store, const struct cli_tree_holding *holding);

/* All that was written is on disk. */
bool cli_tree_store_sync(struct cli_tree_store *store);

#endif
