/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/message.h"

#include "cli/file/little_endian.h"

#include <longhaul/error.h>

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const char magic[6] = {'L', 'H', 'P', 'E', 'R', 'F'};

size_t cli_perf_encode(const struct cli_perf_message *message, uint8_t *out)
{
    uint32_t text = (uint32_t)strlen(message->text);
    uint8_t *next = out + CLI_PERF_HEADER;
    assert(text <= CLI_PERF_TEXT_MAX && message->count <= CLI_PERF_NUMBERS_MAX);
    memcpy(out, magic, sizeof magic);
    out[6] = CLI_PERF_VERSION;
    out[7] = (uint8_t)message->kind;
    cli_put_u32(out + 8, message->flags);
    cli_put_u32(out + 12, text | message->count << 16);
    for (uint32_t i = 0; i < message->count; i++, next += 8)
        cli_put_u64(next, message->numbers[i]);
    memcpy(next, message->text, text);
    return (size_t)(next - out) + text;
}

static bool right_count(uint8_t kind, uint32_t flags, uint32_t count)
{
    if (kind == CLI_PERF_RUN)
        return !flags && count == CLI_PERF_RUN_NUMBERS;
    if (flags & CLI_PERF_NO)
        return count == 0;
    return kind == CLI_PERF_READY ? count == 1 : count <= CLI_PERF_NUMBERS_MAX;
}

int cli_perf_decode(const uint8_t *data, size_t bytes, struct cli_perf_message *message)
{
    if (bytes < CLI_PERF_HEADER || memcmp(data, magic, sizeof magic))
        return -LH_EPROTOCOL;
    if (data[6] != CLI_PERF_VERSION)
        return -LH_EVERSION;
    uint32_t flags = cli_get_u32(data + 8), lengths = cli_get_u32(data + 12);
    uint32_t text = lengths & 0xFFFF, count = lengths >> 16;
    const uint8_t *words = data + CLI_PERF_HEADER + (size_t)8 * count;
    if (data[7] < CLI_PERF_RUN || data[7] > CLI_PERF_RESULT || flags & ~CLI_PERF_NO ||
        !right_count(data[7], flags, count))
        return -LH_EPROTOCOL;
    if (text > CLI_PERF_TEXT_MAX || bytes != CLI_PERF_HEADER + (size_t)8 * count + text ||
        memchr(words, 0, text))
        return -LH_EPROTOCOL;
    *message =
        (struct cli_perf_message){.kind = (enum cli_perf_kind)data[7], .flags = flags, .count = count};
    for (uint32_t i = 0; i < count; i++)
        message->numbers[i] = cli_get_u64(data + CLI_PERF_HEADER + (size_t)8 * i);
    memcpy(message->text, words, text);
    return 0;
}
