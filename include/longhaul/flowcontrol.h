/*
 * flowcontrol.h - flow control between switches over a link: priority flow control, Bifrost, credits, a
 * relay.
 *
 * Each is a small state machine that does no allocation, reads no clock and sends nothing: events go in (a
 * packet arrived, a slot ended), and signals come out (a pause, a credit limit). The caller counts the bytes.
 * A machine belongs to one thread, and to one priority of one link.
 *
 * The upstream sends on the link; the downstream receives and has the buffer. Rates are bits per second,
 * times nanoseconds, sizes bytes on the wire.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_FLOWCONTROL_H
#define LONGHAUL_FLOWCONTROL_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the frame of IEEE 802.1Qbb ---------------------------------------------------------------------- */

/* Ethernet's minimum, with the frame check sequence, without preamble and gap. */
#define LH_PFC_FRAME_BYTES 64u
#define LH_PFC_PRIORITIES  8u
/* A quantum, the unit of a pause: the time of 512 bits at the link's rate. */
#define LH_PFC_QUANTUM_BYTES 64u
#define LH_PFC_QUANTA_MAX    65535u

struct lh_pfc_frame {
    uint8_t source[6];                  /* address of the port that sends it */
    uint8_t enabled;                    /* bit p: priority p is addressed */
    uint16_t quanta[LH_PFC_PRIORITIES]; /* duration of the pause from now on; 0: resume */
};

/* Encodes a frame. Writes quanta of disabled priorities as 0. */
LH_API void lh_pfc_frame_encode(const struct lh_pfc_frame *frame, uint8_t out[LH_PFC_FRAME_BYTES]);
/* Decodes a whole frame with its frame check sequence. Reads quanta of disabled priorities as 0.
 * -LH_EPROTOCOL: not a PFC frame, or corrupted; lh_last_error() has the cause. */
LH_API int lh_pfc_frame_decode(const uint8_t *data, size_t bytes, struct lh_pfc_frame *frame);

/* Returns the transmission time of `bytes` in quanta, rounded up so that a pause is never too short; at most
 * LH_PFC_QUANTA_MAX. */
LH_API uint32_t lh_pfc_quanta(uint64_t bytes);
/* Splits a long pause into frames, each of which replaces the previous one before it expires. Returns the
 * quanta of the first frame. *after: quanta until the next frame, for which the caller calls again with the
 * rest of the pause; 0: none. */
LH_API uint32_t lh_pfc_part(uint32_t quanta, uint32_t *after);

/* ---- priority flow control --------------------------------------------------------------------------- */

enum lh_flow_signal { LH_FLOW_NONE, LH_FLOW_PAUSE, LH_FLOW_RESUME };

/* Thresholds of one ingress port and priority. The priority is paused when it holds more bytes than its
 * threshold, and resumed when it holds at most the threshold less the hysteresis, xoff - xon. The threshold
 * is the larger of xoff and alpha times the free part of a shared buffer. */
struct lh_pfc_thresholds {
    uint64_t xoff_bytes;
    uint64_t xon_bytes; /* at most xoff_bytes; equal: no hysteresis */
    double alpha;       /* 0: static */
};

/* Validates thresholds. -LH_EINVAL, -LH_ERANGE. */
LH_API int lh_pfc_check(const struct lh_pfc_thresholds *thresholds);
/* Returns the current threshold in bytes. */
LH_API uint64_t lh_pfc_threshold(const struct lh_pfc_thresholds *thresholds, uint64_t free_bytes);
/* Returns the signal for the upstream after an arrival, a departure, or a change of the free bytes. Bit p of
 * *stopped is set while priority p is paused. A switch may omit calls for changes of the free bytes, as most
 * do; a change then takes effect at the port's next packet. */
LH_API enum lh_flow_signal lh_pfc_update(const struct lh_pfc_thresholds *thresholds, uint64_t held_bytes,
                                         uint64_t free_bytes, uint8_t priority, uint8_t *stopped);

/* ---- refresh ----------------------------------------------------------------------------------------- */

/* Timer for refreshes of one priority of one link. A pause of LH_PFC_QUANTA_MAX expires: a longer pause needs
 * a refresh, which also repairs a lost frame. So does a receiver's credit. */
struct lh_flow_refresh {
    lh_time period_ns;
    lh_time due_ns; /* time of the next refresh; LH_TIME_NEVER: none */
};

/* Return the bounds of the refresh period. Maximum: each pause of LH_PFC_QUANTA_MAX arrives before the
 * previous one ends, even behind a packet. Minimum: pauses take at most a tenth of the reverse link.
 * rate_bps: above 0. mtu_bytes: longest packet, at most 65,535. lh_pfc_refresh_check() validates a period.
 * -LH_ERANGE: the period is out of bounds, or the rate or packet is invalid; the message has value and
 * remedy. */
LH_API lh_time lh_pfc_refresh_max(uint64_t rate_bps, uint32_t mtu_bytes);
LH_API lh_time lh_pfc_refresh_min(uint64_t rate_bps);
LH_API int lh_pfc_refresh_check(lh_time period_ns, uint64_t rate_bps, uint32_t mtu_bytes);

/* Starts without a pending refresh. period_ns: at least 1. */
LH_API void lh_flow_refresh_init(struct lh_flow_refresh *refresh, lh_time period_ns);
/* Restarts the period: the signal was sent now. */
LH_API void lh_flow_refresh_on_said(struct lh_flow_refresh *refresh, lh_time now);
/* Cancels the refresh: the signal no longer holds. */
LH_API void lh_flow_refresh_end(struct lh_flow_refresh *refresh);
/* Checks the timer. True: send the refresh now; the next expires one period after this one was due. False:
 * not yet. */
LH_API bool lh_flow_refresh_on_expired(struct lh_flow_refresh *refresh, lh_time now);

/* ---- Bifrost (Yu et al., ICNP 2023) ------------------------------------------------------------------ */

/* At the end of each time slot the downstream grants bytes for the slot that arrives a round trip later. It
 * signals the grant by pausing the rest of that slot. */
struct lh_bifrost_config {
    uint64_t rate_bps;
    lh_time delay_ns;        /* one way; 0: unknown, nothing is validated against it */
    lh_time slot_ns;         /* T */
    uint64_t delta_bytes;    /* bytes on the link in a round trip */
    uint64_t buffer_bytes;   /* H: bytes to grant */
    uint64_t headroom_bytes; /* of the buffer, beyond H: for late pauses */
    uint32_t leak_slots;     /* k: number of consecutive pauses that may leak one packet each */
    uint32_t mtu_bytes;      /* longest packet on the wire */
    uint32_t guard_slots;    /* 0: no guard; see lh_bifrost_guard_ns() */
    bool even_grants;        /* F excludes arrived bytes before a grant, not after; lh_bifrost_init() */
};

/* Validates a configuration: the slot against the delay, delta against the link, H against delta + 2 slots +
 * 1 quantum, the headroom against k packets and the guard, which needs a slot that one frame can pause.
 * -LH_EINVAL, -LH_ERANGE with the value and the remedy. */
LH_API int lh_bifrost_check(const struct lh_bifrost_config *config);

struct lh_bifrost {
    uint64_t buffer_bytes;   /* H */
    uint64_t slot_bytes;     /* bytes on the link in a slot, rounded up */
    uint64_t most_bytes;     /* delta and a slot: maximum of F */
    uint64_t incoming_bytes; /* F: bytes that may arrive within a round trip and a slot */
    uint32_t *grants;        /* NULL: F decreases by arrivals; else by grants */
    uint32_t grants_count;
    uint32_t next;       /* in the ring of grants: the oldest */
    uint64_t rest_bytes; /* delta modulo the slot */
    uint64_t late_bytes; /* a packet ahead of a pause, and the pause itself */
    bool stopped;        /* nothing was granted for the last slot */
    bool tells;          /* send a frame of 0 quanta now */
    bool even;           /* as configured */
};

/* Returns the maximum number of grants in flight: the size of the array for lh_bifrost_init(). */
LH_API uint32_t lh_bifrost_grants(const struct lh_bifrost_config *config);
/* Starts as if the link were full. The configuration must have passed lh_bifrost_check().
 *
 * grants: NULL selects the paper's algorithm: arriving bytes decrease F. This also deducts a packet that
 * leaked past a pause, though F never included it: grants then exceed F, and the error persists. An array of
 * lh_bifrost_grants() numbers, owned by the caller, selects the definition in the proof of the paper's
 * theorem: F is the sum of the grants in flight. A leaked packet then shows as L + F > H, and is deducted.
 *
 * config->even_grants: line 10 of the algorithm counts the slot's arrivals twice in a grant, in L and in F.
 * So a slot with many arrivals grants little, and below the link's drain rate grants alternate between
 * nothing and a whole slot. With even_grants they count once, and a slot grants the bytes that it drained.
 * Theorem 1 holds either way. */
LH_API void lh_bifrost_init(struct lh_bifrost *bifrost, const struct lh_bifrost_config *config,
                            uint32_t *grants);
/* Returns the time for which the upstream may send after a frame: guard_slots slots, and the time that a
 * frame may wait behind a packet. 0: no guard.
 *
 * The guard is an addition to the paper. A lost pause lets a whole slot through, which the downstream learns
 * only at its arrival: so each pause lost within a round trip makes arrivals exceed H by a slot. With a guard
 * the downstream sends a frame in each slot (0 quanta if there is no pause). The upstream stops when no frame
 * has arrived for guard_slots slots, until the next one arrives. */
LH_API lh_time lh_bifrost_guard_ns(const struct lh_bifrost_config *config);
/* Returns the headroom bytes that a guard needs beyond the k packets, so that lost frames never overflow a
 * port. With guard_slots 1 this holds under any losses; with n, for one loss burst per round trip, of which n
 * - 1 slots pass. A guard needs `grants` at lh_bifrost_init(): bytes that a stopped upstream did not send
 * never arrive, and would stay in F. */
LH_API uint64_t lh_bifrost_guard_headroom(const struct lh_bifrost_config *config);
/* Ends a slot. queue_bytes (L): bytes from the link now in the buffer; received_bytes: arrivals in the slot.
 * Returns the quanta of the pause to send now; split them with lh_pfc_part() if a slot exceeds a frame's
 * maximum. 0: no pause; but if bifrost->tells, send a frame of 0 quanta, which ends a pause longer than its
 * slot. A pause that grants nothing lasts for two slots, so that the next one arrives in time behind any
 * packet; otherwise each slot would leak a packet while nothing drains. */
LH_API uint32_t lh_bifrost_on_slot(struct lh_bifrost *bifrost, uint64_t queue_bytes,
                                   uint64_t received_bytes);

/* ---- credits, as InfiniBand has them (volume 1, section 7.9) ---------------------------------------- */

#define LH_CBFC_BLOCK_BYTES 64u
/* Maximum number of blocks in flight with the message's 12 bits. */
#define LH_CBFC_BLOCKS_12BIT 2048u

/* Upstream. `wide` lifts the limit of 12 bits; both ends must agree. */
struct lh_cbfc_sender {
    uint64_t sent_blocks;  /* FCTBS */
    uint64_t limit_blocks; /* FCCL */
    bool wide;
};

struct lh_cbfc_receiver {
    uint64_t received_blocks; /* ABR */
    uint64_t buffer_blocks;
    uint64_t held_blocks;
    uint64_t told_blocks; /* the last limit sent */
    uint64_t tell_blocks; /* growth of the limit that sends a new one */
    bool wide;
};

/* Returns the number of blocks of a packet. */
LH_API uint64_t lh_cbfc_blocks(uint64_t bytes);
/* Starts a sender. limit: the receiver's first limit, in blocks. */
LH_API void lh_cbfc_sender_init(struct lh_cbfc_sender *sender, bool wide, uint64_t limit);
LH_API bool lh_cbfc_may_send(const struct lh_cbfc_sender *sender, uint64_t bytes);
LH_API void lh_cbfc_on_sent(struct lh_cbfc_sender *sender, uint64_t bytes);
/* Takes a limit that arrived. A limit older than the last has no effect. */
LH_API void lh_cbfc_on_limit(struct lh_cbfc_sender *sender, uint64_t limit);

LH_API void lh_cbfc_receiver_init(struct lh_cbfc_receiver *receiver, bool wide, uint64_t buffer_bytes,
                                  uint64_t tell_bytes);
/* Takes a packet that arrived. False: the buffer is full, since the sender exceeded its credit; drop the
 * packet. */
LH_API bool lh_cbfc_on_packet(struct lh_cbfc_receiver *receiver, uint64_t bytes);
/* Frees a packet's blocks. True: send lh_cbfc_limit() now. */
LH_API bool lh_cbfc_on_freed(struct lh_cbfc_receiver *receiver, uint64_t bytes);
/* Returns whether to send lh_cbfc_limit() after an arrival, which lets 12 bits express a higher limit. */
LH_API bool lh_cbfc_is_due(const struct lh_cbfc_receiver *receiver);
/* Returns the limit to send to the upstream now (FCCL), in blocks. */
LH_API uint64_t lh_cbfc_limit(struct lh_cbfc_receiver *receiver);
/* Takes the upstream's FCTBS, and so accounts for lost packets. */
LH_API void lh_cbfc_on_total(struct lh_cbfc_receiver *receiver, uint64_t sent_blocks);

/* ---- SWING: a relay at each end of the long link ---------------------------------------------------- */

/* Our model, from SWING's abstract and other papers (Chen et al., TPDS 2023): the relay at the downstream end
 * has the deep buffer, and obeys the PFC of its switch at once. With `forward` it forwards pause and resume
 * over the link. Without, it pauses the link by its own threshold, as a switch does. */
struct lh_swing {
    struct lh_pfc_thresholds thresholds; /* without forward */
    bool forward;
    uint8_t stopped; /* bit p: priority p of the link is paused */
};

/* Takes a pause or resume from the switch behind the relay. Returns the signal for the link. */
LH_API enum lh_flow_signal lh_swing_on_signal(struct lh_swing *swing, uint8_t priority, bool pause);
/* Takes the relay's current queue, held_bytes. Returns the signal for the link. */
LH_API enum lh_flow_signal lh_swing_on_queue(struct lh_swing *swing, uint8_t priority, uint64_t held_bytes);

/* ---- buffer requirements ----------------------------------------------------------------------------- */

struct lh_flow_link {
    uint64_t rate_bps;
    lh_time delay_ns;    /* one way */
    lh_time slot_ns;     /* Bifrost's T */
    uint32_t leak_slots; /* Bifrost's k */
    uint32_t mtu_bytes;
};

struct lh_flow_needs {
    uint64_t bdp_bytes;              /* of a round trip */
    uint64_t pfc_headroom_bytes;     /* arrivals after a pause: a BDP, two packets, a pause frame */
    uint64_t pfc_xoff_bytes;         /* queue that lasts until resumed packets arrive: a BDP, two packets */
    uint64_t pfc_buffer_bytes;       /* both */
    uint64_t bifrost_h_bytes;        /* delta + 2 slots + a quantum */
    uint64_t bifrost_headroom_bytes; /* k packets, one per slot in flight, and the delay of a pause */
    uint64_t bifrost_buffer_bytes;   /* both */
    double bifrost_pause_share;      /* of the reverse bandwidth: a frame in each slot */
    uint64_t cbfc_buffer_bytes;      /* a BDP, three packets, a credit message, in blocks */
    bool cbfc_fits_12_bits;
    lh_time cbfc_reach_ns;      /* delay up to which 12 bits carry the full rate */
    uint64_t swing_relay_bytes; /* a BDP, two packets, a pause frame */
};

/* Computes the buffers that one priority of one link needs, so that no packet is lost and no signal leaves
 * the link idle. -LH_ERANGE: a value is out of range. */
LH_API int lh_flow_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs);

#ifdef __cplusplus
}
#endif
#endif
