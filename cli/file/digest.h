/*
 * digest.h - the XXH3-128 digest of a file, as xxhsum -H2 prints it; and of each prefix of whole blocks on
 * the way.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_DIGEST_H
#define LH_CLI_FILE_DIGEST_H

#include "cli/file/message.h"

#include <xxhash.h>

struct cli_digest {
    XXH3_state_t *state;
};

/* 0 or -LH_ENOMEM. */
int cli_digest_open(struct cli_digest *digest);
void cli_digest_close(struct cli_digest *digest);

void cli_digest_reset(struct cli_digest *digest);
void cli_digest_add(struct cli_digest *digest, const void *data, size_t bytes);
void cli_digest_copy(struct cli_digest *to, const struct cli_digest *from);
/* Of all that was added so far; more may be added afterwards. */
void cli_digest_get(const struct cli_digest *digest, uint8_t out[CLI_DIGEST_BYTES]);

/* Of these bytes. */
void cli_digest_of(const void *data, size_t bytes, uint8_t out[CLI_DIGEST_BYTES]);

/* 32 hexadecimal digits and a zero. */
#define CLI_DIGEST_TEXT_MAX (2 * CLI_DIGEST_BYTES + 1)
char *cli_digest_text(const uint8_t digest[CLI_DIGEST_BYTES], char out[CLI_DIGEST_TEXT_MAX]);

#endif
