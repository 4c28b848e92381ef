/*
 * perf_messages.h - the measurement of perf: messages between its two sides, samples, tallies and load of the
 * machine.
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
#ifndef LH_CLI_PERF_PERF_MESSAGES_H
#define LH_CLI_PERF_PERF_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include <longhaul/congestion.h>
#include <longhaul/connection.h>

#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"

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

/* ---- control --------------------------------------------------------------------------------------- */

/*
 * One message of perf_messages.h to or from the peer; and waiting that notices a
 * standstill.
 */

/* For a peer that lives and does nothing. */
#define CLI_PERF_TIMEOUT_NS (60 * LH_NS_PER_S)

/* Until the peer has it. 0 or a negative lh_error; -LH_ECANCELED: stopped by a signal. */
int cli_perf_send(struct lh_connection *control, const struct cli_perf_message *message);
/* The next message, of that kind. The same errors. */
int cli_perf_receive(struct lh_connection *control, enum cli_perf_kind kind, lh_time timeout_ns,
                     struct cli_perf_message *message);

/* Waits for a request for as long as packets still move on its connection. 0: done, and the result may hold
 * an error; -LH_ETIMEDOUT after CLI_PERF_TIMEOUT_NS without any; -LH_ECANCELED: stopped by a signal. */
int cli_perf_wait(struct lh_connection *connection, struct lh_request *request, struct lh_result *result);

/* ---- samples --------------------------------------------------------------------------------------- */

/* Mean and percentiles of a set of measurements. */

/* Sorts ascending, in place. */
void cli_samples_sort(double *values, size_t count);
double cli_samples_mean(const double *values, size_t count);
/* The smallest of the sorted values that at least that share (above 0, up to 1) of them do not exceed:
 * nearest rank, so it is always one that was measured. count at least 1. */
double cli_samples_percentile(const double *sorted, size_t count, double share);

/* ---- tally ----------------------------------------------------------------------------------------- */

/*
 * What came of messages with a deadline, at the side that receives them.
 *
 * A sender's request is done when all has left. So the server answers each message that is done with an empty
 * one, and the client takes that for its acknowledgement; it begins with one that has the number of warm-up
 * messages, after which the server posts its receives.
 */

/* As a RESULT carries it, behind the counters; shares in units of 1e-9. */
enum cli_perf_tally_number {
    CLI_PERF_SHARE_MEAN,
    CLI_PERF_SHARE_MIN,
    CLI_PERF_MISSING_RANGES,
    CLI_PERF_DEADLINE_HITS,
    CLI_PERF_PREEMPTED,
    CLI_PERF_TALLY_NUMBERS,
};

struct cli_perf_tally {
    uint64_t warmup, count, ranges, deadline_hits, preempted;
    double share_sum, share_min;
};

/* The first of the messages are warm-up. */
void cli_perf_tally_init(struct cli_perf_tally *tally, uint64_t warmup);
/* The receive of the index-th message is done. 0, or the error of lh_delivery(). */
int cli_perf_tally_add(struct cli_perf_tally *tally, uint64_t index, struct lh_request *request);
void cli_perf_tally_write(const struct cli_perf_tally *tally, uint64_t numbers[CLI_PERF_TALLY_NUMBERS]);

/* ---- cpu others ------------------------------------------------------------------------------------ */

/* CPU time of other processes during a measurement. */

struct cli_cpu_mark {
    double busy_s;  /* of all CPUs, since they are up; below 0: cannot be known */
    double total_s; /* of all CPUs, idle or not */
    double own_s;   /* this process and its children that ended */
};

void cli_cpu_mark(struct cli_cpu_mark *mark);

/* Share (0 to 1) of all CPU time between the marks that others took; 0 when it cannot be known. */
double cli_cpu_others(const struct cli_cpu_mark *from, const struct cli_cpu_mark *to);

/* ---- perf ------------------------------------------------------------------------------------------ */

/* What the parts of longhaul perf share: the order, the result, the two sides. */

/* A side takes at most that much memory for messages. */
#define CLI_PERF_MEMORY_MAX    ((uint64_t)4 << 30)
#define CLI_PERF_IN_FLIGHT_MAX 1024
#define CLI_PERF_MESSAGES_MAX  100000000

/* The command, with its own argc and argv; returns the exit status. */
int cli_perf(int argc, char **argv);

struct cli_perf_order {
    struct cli_address address;
    struct lh_attr attr;
    lh_time wait_ns;
    struct cli_size_list sizes;
    uint32_t iterations, warmup, in_flight;
    const char *json; /* file, "-": stdout; NULL: none */
};

/* One size, measured. */
struct cli_perf_result {
    uint64_t size_bytes;
    uint32_t iterations;
    double goodput_bps;
    double mean_s, p50_s, p99_s, p999_s, max_s; /* completion times */
    double first_s;                             /* of the very first message of the connection */
    double ideal_s;                             /* NAN: no link to compute it from */
    double rtt_s;                               /* the shortest seen; 0: not known */
    struct lh_attr agreed;
    char fabric[16];
    char chosen[LH_SCHEME_WORDS_MAX];       /* by auto, and why; "": a scheme was named */
    struct lh_congestion_report congestion; /* of this side */
    struct lh_stats local, peer;
    struct lh_bottleneck_report bottleneck;
    bool deadline;                          /* messages have one: */
    uint64_t tally[CLI_PERF_TALLY_NUMBERS]; /* what came of them */
};

/* ---- server ---- */

/* Serves one client after the other until stopped, or one only. */
int cli_perf_server(const struct cli_address *address, const struct lh_attr *attr, bool once);

#endif
