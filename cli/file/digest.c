/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/digest.h"

#include <longhaul/error.h>

#include <stdio.h>
#include <string.h>

int cli_digest_open(struct cli_digest *digest)
{
    digest->state = XXH3_createState();
    if (!digest->state)
        return -LH_ENOMEM;
    cli_digest_reset(digest);
    return 0;
}

void cli_digest_close(struct cli_digest *digest)
{
    XXH3_freeState(digest->state);
    digest->state = NULL;
}

void cli_digest_reset(struct cli_digest *digest)
{
    XXH3_128bits_reset(digest->state);
}

void cli_digest_add(struct cli_digest *digest, const void *data, size_t bytes)
{
    XXH3_128bits_update(digest->state, data, bytes);
}

void cli_digest_copy(struct cli_digest *to, const struct cli_digest *from)
{
    XXH3_copyState(to->state, from->state);
}

void cli_digest_get(const struct cli_digest *digest, uint8_t out[CLI_DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(digest->state));
    memcpy(out, canonical.digest, CLI_DIGEST_BYTES);
}

void cli_digest_of(const void *data, size_t bytes, uint8_t out[CLI_DIGEST_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
    memcpy(out, canonical.digest, CLI_DIGEST_BYTES);
}

char *cli_digest_text(const uint8_t digest[CLI_DIGEST_BYTES], char out[CLI_DIGEST_TEXT_MAX])
{
    for (unsigned i = 0; i < CLI_DIGEST_BYTES; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
    return out;
}
