/*
 * attributes.h - attributes of a file in an offer besides name and size: its permissions, and when it was
 * last written to.
 *
 * They stand where other messages have a digest (offset 32 of message.h). Older receivers do not look
 * there, and older senders leave zeros:
 *
 *   0 seconds i64 | 8 nanoseconds u32 | 12 mode u32: 0777, and 0x80000000 for "the rest is valid"
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_ATTRIBUTES_H
#define LH_CLI_FILE_ATTRIBUTES_H

#include "cli/file/message.h"

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct cli_file_attributes {
    bool known;              /* false: the sender did not announce them */
    mode_t mode;             /* of 0777: no set-user-ID, set-group-ID or sticky bit */
    struct timespec written; /* from 1901 to 9999 */
};

/* Of the source file; a time outside the range is announced as its nearest end. */
struct cli_file_attributes cli_file_attributes_of(mode_t mode, struct timespec written);

void cli_file_attributes_encode(const struct cli_file_attributes *attributes,
                                uint8_t out[CLI_DIGEST_BYTES]);
/* 0, or -LH_EPROTOCOL: a mode, a time or a bit that no sender announces. */
int cli_file_attributes_decode(const uint8_t in[CLI_DIGEST_BYTES], struct cli_file_attributes *attributes);

#endif
