/*
 * probe_messages.h - a probe's messages over TCP and its packets.
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
#ifndef LH_PROBE_PROBE_MESSAGES_H
#define LH_PROBE_PROBE_MESSAGES_H

#include <longhaul/probe.h>

#include "model/loss_model.h"

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

/* Of either side; no longer than PROBE_TEXT_MAX. */
#define PROBE_LOOPBACK_ONLY                                                                                \
    "not encrypted: peers on other hosts are refused (probes have no key: use --insecure on both sides)"

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

/* ---- message io ------------------------------------------------------------------------------------ */

/* Messages of a probe over TCP, whole ones, with deadlines. */

/* -LH_EPEER, -LH_ETIMEDOUT. */
int probe_message_write(int fd, const struct probe_message *message, lh_time deadline);
/* Also what probe_message_decode() returns. */
int probe_message_read(int fd, struct probe_message *message, lh_time deadline);
/* One of that type, or the reason of a REFUSE as -LH_EPEER. */
int probe_message_read_type(int fd, enum probe_message_type type, struct probe_message *message,
                            lh_time deadline);

/* ---- packet ---------------------------------------------------------------------------------------- */

/*
 * The UDP packets of a probe: encode and decode, nothing else. All integers big-endian.
 *
 *   0 magic 4 | 4 version 1 | 5 kind 1 | 6 flow 2 | 8 token 8 | 16 round 4 | 20 number 4 | 24 sent_ns 8 |
 *   32 bytes 4 | 36 held_ns 4 | fill up to `bytes`, which no receiver reads
 *
 * The server picks a random token for each run and sends it over TCP: who has no TCP connection to it gets no
 * answer. No answer is longer than what it answers.
 */

#define PROBE_HEADER_BYTES 40u

/* The longest UDP payload of IP: 65535 less IPv4 and UDP header (IPv6: a little more, not used). */
#define PROBE_UDP_PAYLOAD_MAX 65507u

enum probe_packet_kind {
    PROBE_PING = 1,  /* answered with PONG */
    PROBE_PONG = 2,  /* round, number and sent_ns of the PING; held_ns: from its arrival to this */
    PROBE_WHOLE = 3, /* of a size that is tried; answered with CAME */
    PROBE_CAME = 4,  /* round, number and sent_ns of the WHOLE */
    PROBE_DATA = 5,  /* of a flow; counted */
};

struct probe_packet {
    enum probe_packet_kind kind;
    uint16_t flow;
    uint64_t token;
    uint32_t round;  /* which measurement it belongs to */
    uint32_t number; /* within the round, over all flows */
    lh_time sent_ns; /* the client's clock */
    uint32_t bytes;  /* UDP payload, with this header */
    uint32_t held_ns;
};

/* Writes PROBE_HEADER_BYTES. */
void probe_packet_encode(const struct probe_packet *packet, uint8_t *out);
/* Of a datagram of `bytes` of which at least the header, or all, was read. False: not such a packet. */
bool probe_packet_decode(const uint8_t *data, size_t bytes, struct probe_packet *packet);

#endif
