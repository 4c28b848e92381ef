/*
 * qp_path.h - what a QP knows of the path to its peer: plan, liveness, round trips, MTU. Pure.
 *
 * A peer's address comes from its blob, unauthenticated. So the address is challenged: until a
 * stamp that went there, and nowhere else, is echoed, nothing goes there but pings, and a pong for each ping
 * that came from there. Stamps count from a secret origin, so an echo cannot be made up.
 *
 * Timers:
 *   ping   until the address is proven: after 1 ms, then at doubling intervals, up to
 *          PATH_CHALLENGE_SPAN_MAX_NS. From then on after silence (4 overdue times, doubling up to the
 *          keepalive interval).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_PATH_H
#define LH_SDR_QP_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>

#include "congestion/congestion_table.h"
#include "sdr/message_table.h"
#include "wire/control_messages.h"

/* ---- round trip: smoothed, variance, minimum (RFC 6298 and RFC 8985) ---- */

struct lh_rtt {
    lh_time smoothed_ns; /* 0: no sample yet */
    lh_time variance_ns;
    lh_time minimum_ns;
    lh_time latest_ns;
    uint64_t samples;
};

void lh_rtt_init(struct lh_rtt *rtt);
/* A sample of 0 counts as 1 ns. */
void lh_rtt_on_sample(struct lh_rtt *rtt, lh_time sample_ns);
/* smoothed + max(smoothed / 8, 4 * variance): after this long an answer is overdue. 0 without a sample. */
lh_time lh_rtt_overdue_ns(const struct lh_rtt *rtt);
/* How much later than its successors a packet may come and not count as lost: max(minimum / 8, 2 *
 * variance), at most smoothed / 2 (RFC 8985 section 6.2 takes minimum / 4 and adapts; we adapt by the
 * variance). 0 without a sample. */
lh_time lh_rtt_reorder_window_ns(const struct lh_rtt *rtt);

/* Whoever is named by a foreign blob gets 12 pings in the first 2 s, all that a handshake over TCP waits for,
 * then one in this time. Fewer do not connect where losses come in bursts. */
#define PATH_CHALLENGE_SPAN_MAX_NS (1024 * LH_NS_PER_MS)
/* The newest stamps that prove the address when one is echoed: pings and pongs of a round trip of 20 s. */
#define PATH_CHALLENGES       64u
#define PATH_CHALLENGES_BYTES (PATH_CHALLENGES * sizeof(uint64_t))

struct path {
    struct lh_rtt rtt;
    uint64_t newest_ns;         /* newest `sent` received from the peer (its clock); 0: none */
    lh_time newest_received_ns; /* when (our clock) */
    uint64_t origin_ns;         /* of our stamps; secret */
    uint64_t last_echo_ns;      /* newest echo that gave a sample: each gives one */
    uint64_t *challenges;       /* PATH_CHALLENGES, of the owner, until it is proven; 0: none */
    uint32_t challenge_next;
    bool proven;              /* the peer is at the address of its blob */
    lh_time last_received_ns; /* 0: never */
    lh_time keepalive_ns;
    lh_time ping_at;
    lh_time ping_span;
};

/* secret: from a random source that no peer sees. challenges: zeroed. */
void path_init(struct path *path, lh_time now, lh_time keepalive_ns, uint64_t secret, uint64_t *challenges);
/* The next ping is due after that span of silence at the latest. */
void path_keepalive_set(struct path *path, lh_time keepalive_ns);
/* A control message with a valid token arrived. */
void path_on_control(struct path *path, const struct control_header *header, lh_time now);
/* A data packet of the peer arrived. */
void path_on_traffic(struct path *path, lh_time now);
/* Fills the times of a header that is about to be sent to the peer. */
void path_stamp(struct path *path, lh_time now, struct control_header *header);
/* True when a ping is due; the next one is then scheduled. */
bool path_ping_due(struct path *path, lh_time now);

/* ---- qp plan --------------------------------------------------------------------------------------- */

/* What a QP is created with, from the attributes of the SDK and of Longhaul. Pure. */

struct qp_plan {
    struct message_shape shape;
    const char *congestion; /* as asked for; NULL: the default */
    uint64_t rate_bps;      /* told; 0: not */
    uint64_t rate_max_bps;  /* LH_RATE_NONE: no bound */
    uint64_t window_bytes;  /* in flight at most */
    bool send_enable;
    bool recv_enable;
};

/* Fills in the defaults of fields that are zero. -LH_EINVAL, -LH_ERANGE */
int qp_plan_make(const struct sdr_qp_attr *attr, const struct lh_qp_attr *more, struct qp_plan *plan);
/* The controller: what was asked for, else `fixed` where the path is told or pushes back by itself, else bbr.
 * -LH_EINVAL */
int qp_plan_congestion(const struct qp_plan *plan, bool given, struct congestion_choice *choice);

/* ---- path mtu -------------------------------------------------------------------------------------- */

/*
 * Which part of a packet the path to the peer takes at once: path MTU discovery by probes (RFC
 * 8899, Datagram PLPMTUD). Pure.
 *
 * Packets of the agreed MTU may stop to pass in mid-transfer, without a word where a firewall drops ICMP: a
 * PMTU black hole. Probes are control messages as long on the wire as a data packet in 1, 2, 4 or 8 pieces
 * (fabric/fabric.h); the answer is short. *shift* is the logarithm of the number of pieces in use.
 *
 * An idle queue pair probes nothing: each timer starts a probe only where a packet's worth of payload has
 * left since the last answer. Nor does a short transfer: the first of these left 2 overdue times and 20 ms
 * ago.
 *
 * Timers:
 *   confirm  while data leave, one probe of the length in use, a second or 8 overdue times after the last
 *            answer (RFC 8899, CONFIRMATION_TIMER)
 *   wait     1.5 overdue times and 20 ms after a probe: no answer. Of a confirmation: the search begins
 *   round    of the search: one probe of each length in half an overdue time, until the length in use is
 *            answered, or data packets of the whole MTU arrive (nothing has changed), or shorter ones were
 *            answered SEARCH_ANSWERS times: the longest of these is used from now on. Without any answer the
 *            path is down, not too small: a short probe at doubling intervals
 *   raise    while packets are in pieces, three probes of each longer length, 4 s after the change, then at
 *            doubling intervals up to 600 s (RFC 8899, PMTU_RAISE_TIMER): the path may have recovered, and
 *            asking costs a few packets
 */

#define PATH_MTU_LENGTHS     4u /* packets in 1, 2, 4 or 8 pieces */
#define PATH_MTU_CONFIRM_NS  LH_NS_PER_S
#define PATH_MTU_WAIT_MIN_NS (20 * LH_NS_PER_MS)
/* Where a third of all packets is lost, both ways, 1 in 10,000 searches finds none of eight long probes
 * answered that pass; data packets that arrive end it before. */
#define PATH_MTU_SEARCH_ANSWERS 8u
#define PATH_MTU_SEARCH_SPAN_NS LH_NS_PER_S /* longest interval of rounds without an answer */
#define PATH_MTU_SILENT_ROUNDS  16u         /* without an answer: the search ends until more is sent */
#define PATH_MTU_RAISE_MIN_NS   (4 * LH_NS_PER_S)
#define PATH_MTU_RAISE_MAX_NS   (600 * LH_NS_PER_S)
#define PATH_MTU_RAISE_PROBES   3u /* RFC 8899, MAX_PROBES */

enum path_mtu_state {
    PATH_MTU_IDLE,       /* until data has left and a timer expires */
    PATH_MTU_CONFIRMING, /* a probe of the length in use is in flight */
    PATH_MTU_SEARCHING,  /* it was not answered */
    PATH_MTU_RAISING,    /* probes of longer packets are in flight */
};

/* What the machine knows of the queue pair, in each step. */
struct path_mtu_view {
    uint64_t sent_bytes; /* payload of packets that had to have the length in use, ever */
    lh_time overdue_ns;  /* 0: no round trip is known */
    lh_time now;
};

struct path_mtu {
    enum path_mtu_state state;
    uint32_t mtu_bytes; /* agreed */
    uint32_t lengths;   /* 1: nothing can be changed, so nothing is probed */
    uint32_t shift;
    uint64_t sent_noted; /* view.sent_bytes at the last answer */
    bool has_sent;       /* a packet has left since */
    lh_time at;          /* when the timer of the state expires */
    lh_time raise_at;
    lh_time raise_span;
    lh_time raised_ns; /* when packets became larger last; 0: never */
    uint32_t probes;   /* of this search, or of this try to raise */
    uint32_t next_id;
    uint32_t first_id;                 /* of this state's probes: older answers are of no use any more */
    uint32_t newest_id;                /* answered, of this state's */
    bool answered;                     /* one was */
    uint32_t newest[PATH_MTU_LENGTHS]; /* likewise of each length; counts where it has answers */
    uint32_t silent;                   /* probes of the search, since there was no answer for long */
    lh_time answered_ns;               /* last answer of the search, or its beginning */
    uint32_t answers[PATH_MTU_LENGTHS];
    uint32_t due; /* bit s: a probe of 1 / 2^s of the MTU is to be sent; one at a time */
};

/* The machine is off, and never has anything due, until path_mtu_start(). */
void path_mtu_init(struct path_mtu *mtu, uint32_t mtu_bytes);
/* The peer takes pieces of so many lengths, and answers probes. */
void path_mtu_start(struct path_mtu *mtu, uint32_t lengths);
/* Timers; then probes may be due. */
void path_mtu_on_time(struct path_mtu *mtu, const struct path_mtu_view *view);
/* The next probe to be sent: its id, and its length as a shift. False: none. One that cannot be sent counts
 * as lost. */
bool path_mtu_take_probe(struct path_mtu *mtu, uint32_t *id, uint32_t *shift);
/* The peer answered a probe. full: data packets of the whole MTU have arrived there since the probe before.
 * True: the length in use is another from now on. */
bool path_mtu_on_answer(struct path_mtu *mtu, uint32_t id, bool full, const struct path_mtu_view *view);
/* When path_mtu_on_time() is to be called again: LH_TIME_NEVER until more has left. */
lh_time path_mtu_next(const struct path_mtu *mtu);

#endif
