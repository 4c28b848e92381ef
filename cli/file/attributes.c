/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/attributes.h"

#include "cli/file/little_endian.h"

#include <longhaul/error.h>

#include <assert.h>
#include <string.h>

#define KNOWN       0x80000000u
#define MODES       0777u
#define NS_PER_S    1000000000
#define SECONDS_MIN (-((int64_t)1 << 31))   /* 1901, the oldest that file systems keep */
#define SECONDS_MAX ((int64_t)253402300799) /* 9999-12-31, the last with four digits */

struct cli_file_attributes cli_file_attributes_of(mode_t mode, struct timespec written)
{
    struct cli_file_attributes attributes = {.known = true, .mode = mode & MODES, .written = written};
    if (written.tv_sec < SECONDS_MIN)
        attributes.written = (struct timespec){.tv_sec = SECONDS_MIN};
    if (written.tv_sec > SECONDS_MAX)
        attributes.written = (struct timespec){.tv_sec = SECONDS_MAX};
    return attributes;
}

void cli_file_attributes_encode(const struct cli_file_attributes *attributes, uint8_t out[CLI_DIGEST_BYTES])
{
    assert((attributes->mode & ~MODES) == 0 && attributes->written.tv_nsec < NS_PER_S);
    cli_put_u64(out, (uint64_t)attributes->written.tv_sec);
    cli_put_u32(out + 8, (uint32_t)attributes->written.tv_nsec);
    cli_put_u32(out + 12, (attributes->known ? KNOWN : 0) | attributes->mode);
}

int cli_file_attributes_decode(const uint8_t in[CLI_DIGEST_BYTES], struct cli_file_attributes *attributes)
{
    static const uint8_t none[CLI_DIGEST_BYTES];
    int64_t seconds = (int64_t)cli_get_u64(in);
    uint32_t nanoseconds = cli_get_u32(in + 8), mode = cli_get_u32(in + 12);
    *attributes = (struct cli_file_attributes){.known = false};
    if (!memcmp(in, none, sizeof none))
        return 0;
    if ((mode & ~MODES) != KNOWN || nanoseconds >= NS_PER_S || seconds < SECONDS_MIN ||
        seconds > SECONDS_MAX)
        return -LH_EPROTOCOL;
    *attributes = (struct cli_file_attributes){
        .known = true, .mode = mode & MODES, .written = {.tv_sec = seconds, .tv_nsec = nanoseconds}};
    return 0;
}
