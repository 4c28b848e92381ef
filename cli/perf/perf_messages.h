/*
 * message.h - messages between the two sides of a measurement, on a connection of its own.
 *
 *   client                                  server
 *   RUN sizes, attributes, scheme     --->
 *                                     <---  READY port; or no, reason
 *   connects to that port, sends the messages that are measured, then
 *                                     <---  RESULT counters of the server's side; or no, reason
 *   RUN of the next size, or the end
 *
 * All kinds have one shape, little-endian:
 *
 *   0 magic "LHPERF" | 6 version u8 | 7 kind u8 | 8 flags u32 | 12 text bytes u16 | 14 numbers u16 |
 *   16 numbers, u64 each | text
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_MESSAGE_H
#define LH_CLI_PERF_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define CLI_PERF_VERSION 1

enum cli_perf_kind { CLI_PERF_RUN = 1, CLI_PERF_READY = 2, CLI_PERF_RESULT = 3 };

#define CLI_PERF_NO 1u /* flag of READY and RESULT: refused, with the reason as text */

/* The numbers of a RUN; 0 means the default, save for the first three. READY has the port as its only
 * number, RESULT the counters of struct lh_stats in their order. */
enum cli_perf_run {
    CLI_PERF_SIZE_BYTES = 0,
    CLI_PERF_MESSAGES = 1, /* warm-up included */
    CLI_PERF_IN_FLIGHT = 2,
    CLI_PERF_CHANNELS = 3,
    CLI_PERF_WORKERS = 4,
    CLI_PERF_MTU_BYTES = 5,
    CLI_PERF_CHUNK_BYTES = 6,
    CLI_PERF_SLOTS = 7,
    CLI_PERF_SLOT_BYTES = 8,
    CLI_PERF_WINDOW_BYTES = 9,
    CLI_PERF_RUN_NUMBERS,
};

#define CLI_PERF_NUMBERS_MAX 128
#define CLI_PERF_TEXT_MAX    511
#define CLI_PERF_HEADER      16
#define CLI_PERF_MESSAGE_MAX (CLI_PERF_HEADER + 8 * CLI_PERF_NUMBERS_MAX + CLI_PERF_TEXT_MAX)

struct cli_perf_message {
    enum cli_perf_kind kind;
    uint32_t flags;
    uint32_t count; /* of numbers */
    uint64_t numbers[CLI_PERF_NUMBERS_MAX];
    char text[CLI_PERF_TEXT_MAX + 1]; /* RUN: the scheme; RESULT: what auto chose; else a reason, or "" */
};

/* Into out[CLI_PERF_MESSAGE_MAX]; returns the bytes used. */
size_t cli_perf_encode(const struct cli_perf_message *message, uint8_t *out);
/* 0; -LH_EVERSION; -LH_EPROTOCOL. RUN and READY have as many numbers as they should. */
int cli_perf_decode(const uint8_t *data, size_t bytes, struct cli_perf_message *message);

#endif
