/*
 * tree_source.h - a file of a tree being read into messages: packed with others if it is small, cut if it is
 * large, without its holes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_SOURCE_H
#define LH_CLI_FILE_TREE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_attributes.h"
#include "cli/file/tree_list.h"
#include "cli/file/tree_message.h"
#include "cli/file/tree_report.h"
#include "cli/file/tree_walk.h"

struct cli_tree_source {
    struct cli_tree_packer *packer;
    struct cli_tree_report *report;
    bool follow; /* links on the path, too */
    struct cli_tree_reading reading;
    struct cli_digest digest;
};

/* 0 or -LH_ENOMEM. */
int cli_tree_source_open(struct cli_tree_source *source, struct cli_tree_packer *packer,
                         struct cli_tree_report *report, bool follow);
void cli_tree_source_close(struct cli_tree_source *source);

/* Sends a file that the receiver wants. What is wrong with it is reported, and no failure. False: a message
 * could not be sent, or a signal came. */
bool cli_tree_source_send(struct cli_tree_source *source, const struct cli_tree_operand *operand,
                          const struct cli_tree_entry *entry);

/* Sends the attributes of a folder that is complete; false as above. */
bool cli_tree_source_folder(struct cli_tree_source *source, const struct cli_tree_operand *operand,
                            const struct cli_tree_entry *entry);

/* Sends what comes from a pipe, until its end: DATA and FILE_END. False: as above, or reading failed, which
 * is in *error, an errno. */
bool cli_tree_source_pipe(struct cli_tree_source *source, int pipe, int *error);

#endif
