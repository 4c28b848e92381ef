/*
 * message.h - messages between the two sides of a probe, over TCP. Pure but for its error texts.
 *
 * Frame, all integers big-endian: magic 4 | version 1 | type 1 | numbers 2 | text bytes 2 | zero 2, then
 * that many numbers of 8 bytes, then the text. Each type has a fixed count of numbers, each number a range:
 * a message that decodes is one that may be acted upon.
 *
 *   client HELLO                          server WELCOME (or REFUSE)
 *   client BEGIN    server READY          UDP packets of a flow     client END    server REPORT
 *   …                                     the client closes
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_MESSAGE_H
#define LH_PROBE_MESSAGE_H

#include <longhaul/probe.h>

#include "model/loss_runs.h"

#define PROBE_MESSAGE_MAGIC        0x4C485054u /* "LHPT" */
#define PROBE_MESSAGE_VERSION      1u
#define PROBE_MESSAGE_HEADER_BYTES 12u
#define PROBE_NUMBERS_MAX          40u
#define PROBE_TEXT_MAX             383u /* a link's text without its final zero */
#define PROBE_MESSAGE_BYTES_MAX    (PROBE_MESSAGE_HEADER_BYTES + 8 * PROBE_NUMBERS_MAX + PROBE_TEXT_MAX)

enum probe_message_type {
    PROBE_HELLO = 1,   /* text: the link to emulate */
    PROBE_WELCOME = 2, /* numbers: PROBE_WELCOME_… */
    PROBE_BEGIN = 3,   /* PROBE_BEGIN_… */
    PROBE_READY = 4,   /* PROBE_READY_ROUND */
    PROBE_END = 5,     /* PROBE_END_… */
    PROBE_REPORT = 6,  /* PROBE_REPORT_… */
    PROBE_REFUSE = 7,  /* text: why */
};

enum { PROBE_HELLO_TIME_NS = 0, PROBE_HELLO_NUMBERS };
enum { PROBE_WELCOME_UDP_PORT = 0, PROBE_WELCOME_TOKEN = 1, PROBE_WELCOME_NUMBERS };
enum { PROBE_BEGIN_ROUND = 0, PROBE_BEGIN_PACKETS = 1, PROBE_BEGIN_FLOWS = 2, PROBE_BEGIN_NUMBERS };
enum { PROBE_READY_ROUND = 0, PROBE_READY_NUMBERS };
/* How many of the round's packets were sent, and how long the last of them may take. */
enum { PROBE_END_ROUND = 0, PROBE_END_SENT = 1, PROBE_END_DRAIN_NS = 2, PROBE_END_NUMBERS };
enum {
    PROBE_REPORT_ROUND = 0,
    PROBE_REPORT_RECEIVED = 1,
    PROBE_REPORT_DUPLICATES = 2,
    PROBE_REPORT_REORDERED = 3,
    PROBE_REPORT_EXTENT_SUM = 4,
    PROBE_REPORT_EXTENT_MAX = 5,
    PROBE_REPORT_LATE_MAX_NS = 6,
    PROBE_REPORT_SPAN_NS = 7, /* from the first arrival to the last */
    PROBE_REPORT_SOCKET_DROPS = 8,
    PROBE_REPORT_HOST_DROPS = 9,
    PROBE_REPORT_RUNS = 10,                         /* probe_message_runs() */
    PROBE_REPORT_FLOW_LOST = PROBE_REPORT_RUNS + 6, /* of each flow */
    PROBE_REPORT_NUMBERS = PROBE_REPORT_FLOW_LOST + LH_PROBE_FLOWS_MAX,
};
_Static_assert(PROBE_REPORT_NUMBERS <= PROBE_NUMBERS_MAX, "a report fits a message");

/* A flow may take as long as a probe, and its last packet this long to arrive. */
#define PROBE_DRAIN_MAX_NS (10 * LH_NS_PER_S)

struct probe_message {
    enum probe_message_type type;
    uint64_t numbers[PROBE_NUMBERS_MAX];
    char text[PROBE_TEXT_MAX + 1];
};

/* Returns the bytes written; out holds PROBE_MESSAGE_BYTES_MAX. */
size_t probe_message_encode(const struct probe_message *message, uint8_t *out);
/* The size of the whole message, of its header. -LH_EHANDSHAKE (foreign), -LH_EVERSION, -LH_EPROTOCOL. */
int probe_message_header(const uint8_t *header, size_t *bytes);
/* Length of the whole message, from its header. -LH_EPROTOCOL names what is wrong. */
int probe_message_decode(const uint8_t *data, size_t bytes, struct probe_message *message);

/* The loss runs of a REPORT. */
struct model_loss_runs probe_message_runs(const struct probe_message *report);
void probe_message_set_runs(struct probe_message *report, const struct model_loss_runs *runs);

#endif
