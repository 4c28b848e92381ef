/*
 * flowcontrol.h - what switches do to each other over a link: priority flow control, Bifrost, credits, a
 * relay.
 *
 * Each is a small machine without memory, clock or wire of its own: events go in (a packet came, a slot has
 * ended), and what is to be done comes out (pause for so long, tell this limit). Whoever runs it counts the
 * bytes. A machine belongs to one thread, and to one priority of one link.
 *
 * "Upstream" sends on the link, "downstream" receives and has the buffer. Rates are bits a second, times
 * nanoseconds, sizes bytes on the wire.
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

/* On the wire without preamble and gap, with its frame check sequence: the least that Ethernet sends. */
#define LH_PFC_FRAME_BYTES 64u
#define LH_PFC_PRIORITIES  8u
/* A pause is given in quanta: each the time that 512 bits take at the link's rate. */
#define LH_PFC_QUANTUM_BYTES 64u
#define LH_PFC_QUANTA_MAX    65535u

struct lh_pfc_frame {
    uint8_t source[6];                  /* address of the port that sends it */
    uint8_t enabled;                    /* bit p: what follows says something of priority p */
    uint16_t quanta[LH_PFC_PRIORITIES]; /* how long p is silent from now on; 0: it may send again */
};

/* Times of priorities that are not enabled are written as 0. */
LH_API void lh_pfc_frame_encode(const struct lh_pfc_frame *frame, uint8_t out[LH_PFC_FRAME_BYTES]);
/* `data` is a whole frame with its frame check sequence. -LH_EPROTOCOL: it is no such frame, or damaged;
 * lh_last_error() says which. Times of priorities that are not enabled are read as 0. */
LH_API int lh_pfc_frame_decode(const uint8_t *data, size_t bytes, struct lh_pfc_frame *frame);

/* Quanta in which a link could carry so many bytes, rounded up: a pause is never too short. At most
 * LH_PFC_QUANTA_MAX. */
LH_API uint32_t lh_pfc_quanta(uint64_t bytes);
/* A longer pause goes in several frames: each takes the place of the one before, and comes while that one
 * holds. Returns what the first says of so many quanta; *after: how many quanta later the next follows, with
 * what is left of the pause then, by the same call. 0: none. */
LH_API uint32_t lh_pfc_part(uint32_t quanta, uint32_t *after);

/* ---- priority flow control --------------------------------------------------------------------------- */

enum lh_flow_signal { LH_FLOW_NONE, LH_FLOW_PAUSE, LH_FLOW_RESUME };

/* Of one ingress port and priority. It is paused when it holds more than its threshold, and resumed when it
 * holds at most that less the hysteresis, xoff - xon. The threshold is xoff, or alpha times what is free of
 * a buffer that ports share when that is more. */
struct lh_pfc_thresholds {
    uint64_t xoff_bytes;
    uint64_t xon_bytes; /* at most xoff_bytes; the same: no hysteresis */
    double alpha;       /* 0: static */
};

/* -LH_EINVAL, -LH_ERANGE. */
LH_API int lh_pfc_check(const struct lh_pfc_thresholds *thresholds);
/* What this port may hold now. */
LH_API uint64_t lh_pfc_threshold(const struct lh_pfc_thresholds *thresholds, uint64_t free_bytes);
/* After an arrival, after a departure, and whenever more or less is free: what to tell the upstream. Bit
 * p of *stopped is set while priority p is paused. A switch may leave out changes of what is free, as
 * most do: then the port hears of them at its own next packet. */
LH_API enum lh_flow_signal lh_pfc_update(const struct lh_pfc_thresholds *thresholds, uint64_t held_bytes,
                                         uint64_t free_bytes, uint8_t priority, uint8_t *stopped);

/* ---- what is said anew ------------------------------------------------------------------------------- */

/* A pause of LH_PFC_QUANTA_MAX ends by itself: whoever wants it to last says it again and again, and what a
 * lost frame spoils is over with the next. So does a receiver that tells its credit. Of one priority of one
 * link. */
struct lh_flow_refresh {
    lh_time period_ns;
    lh_time due_ns; /* when it is to be said again; LH_TIME_NEVER: it is not to be */
};

/* Longest period such that each pause of LH_PFC_QUANTA_MAX is there before the one before it has ended,
 * though it waits behind a packet; shortest such that pauses take a tenth of the link back at most. A rate
 * above 0, packets of at most 65,535 bytes. -LH_ERANGE: the period is not between them, or no link has such
 * a rate or packet, with value and remedy. */
LH_API lh_time lh_pfc_refresh_max(uint64_t rate_bps, uint32_t mtu_bytes);
LH_API lh_time lh_pfc_refresh_min(uint64_t rate_bps);
LH_API int lh_pfc_refresh_check(lh_time period_ns, uint64_t rate_bps, uint32_t mtu_bytes);

/* Nothing is to be said. period_ns: at least 1. */
LH_API void lh_flow_refresh_init(struct lh_flow_refresh *refresh, lh_time period_ns);
/* It was said: a period from now it is due. */
LH_API void lh_flow_refresh_on_said(struct lh_flow_refresh *refresh, lh_time now);
/* It does not hold any more. */
LH_API void lh_flow_refresh_end(struct lh_flow_refresh *refresh);
/* True: say it now; the next is a period after this one was due. False: it is not due. */
LH_API bool lh_flow_refresh_on_expired(struct lh_flow_refresh *refresh, lh_time now);

/* ---- Bifrost (Yu et al., ICNP 2023) ------------------------------------------------------------------ */

/* The downstream grants, at the end of each time slot, what the upstream may send in the slot that
 * arrives a round trip later. It tells so by a pause of the rest of a slot. */
struct lh_bifrost_config {
    uint64_t rate_bps;
    lh_time delay_ns;        /* one way; 0: not known, and nothing is checked against it */
    lh_time slot_ns;         /* T */
    uint64_t delta_bytes;    /* what the link carries in a round trip */
    uint64_t buffer_bytes;   /* H: what is shared out */
    uint64_t headroom_bytes; /* of the buffer, beyond H: for pauses that come late */
    uint32_t leak_slots;     /* k: so many pauses in a row may let a packet more through */
    uint32_t mtu_bytes;      /* longest packet on the wire */
    uint32_t guard_slots;    /* 0: no guard; see lh_bifrost_guard_ns() */
    bool even_grants;        /* what has arrived leaves F before a grant, not after; lh_bifrost_init() */
};

/* -LH_EINVAL, -LH_ERANGE with the value and the remedy: the slot against the delay, delta against
 * the link, H against delta + 2 slots + 1 quantum, the headroom against k packets and the guard, which needs
 * a slot that one frame can pause. */
LH_API int lh_bifrost_check(const struct lh_bifrost_config *config);

struct lh_bifrost {
    uint64_t buffer_bytes;   /* H */
    uint64_t slot_bytes;     /* what the link carries in a slot, rounded up */
    uint64_t most_bytes;     /* delta and a slot: F is never more */
    uint64_t incoming_bytes; /* F: what may arrive within a round trip and a slot */
    uint32_t *grants;        /* NULL: F goes down by what arrives; else by what was granted */
    uint32_t grants_count;
    uint32_t next;       /* in the ring of grants: the oldest */
    uint64_t rest_bytes; /* delta modulo the slot */
    uint64_t late_bytes; /* what a pause may wait behind, and itself */
    bool stopped;        /* nothing was granted for the last slot */
    bool tells;          /* a frame is to be sent now, though it pauses for nothing */
    bool even;           /* as configured */
};

/* Slots whose grants may still be on their way: the room that lh_bifrost_init() needs for them. */
LH_API uint32_t lh_bifrost_grants(const struct lh_bifrost_config *config);
/* As if the link were full. The configuration should have passed lh_bifrost_check().
 *
 * grants: NULL, as in the paper's algorithm: F is reduced by the bytes that arrived. A packet that slips
 * past a pause is then taken off F as well, though it was never in it: what was granted is more than F
 * says, and that stays so. Or lh_bifrost_grants() numbers, which must stay where they are: F is what the
 * proof of the paper's theorem has, the sum of the grants on their way. Such a packet then shows as L + F
 * > H, and is deducted.
 *
 * config->even_grants: as it grants, line 10 of the algorithm counts what has arrived in the slot twice, in L
 * and in F. So a slot in which much arrived grants little, and at a drain of less than the link grants swing
 * between nothing and a whole slot, from slot to slot. Counted once, a slot grants what the slot drained.
 * Theorem 1 holds either way. */
LH_API void lh_bifrost_init(struct lh_bifrost *bifrost, const struct lh_bifrost_config *config,
                            uint32_t *grants);
/* The guard, which the paper has not. A pause that is lost lets a whole slot through, and nobody knows of
 * it before it arrives: so whatever is lost within a round trip is too much for H. With a guard the
 * downstream sends a frame in each slot, of 0 quanta when nothing is to be paused, and the upstream stops
 * by itself when none has come for guard_slots slots, until the next one comes.
 *
 * For so long after a frame the upstream may send: guard_slots slots, and the time for which a frame may
 * wait behind a packet. 0: no guard. */
LH_API lh_time lh_bifrost_guard_ns(const struct lh_bifrost_config *config);
/* What a guard needs of headroom_bytes beyond the k packets, so that lost frames never make a port overflow.
 * With guard_slots of 1 whichever are lost; with n as long as there is one burst of losses in a round trip:
 * n - 1 slots of it pass. Needs grants at lh_bifrost_init(): what the upstream did not dare to send never
 * arrives, and would stay in F. */
LH_API uint64_t lh_bifrost_guard_headroom(const struct lh_bifrost_config *config);
/* A slot has ended. queue_bytes (L): came by the link and is here; received_bytes: came in that slot.
 * Returns the quanta of the pause to send now, for lh_pfc_part() where a slot is longer than a frame can
 * say. 0: none is needed, but for a frame of 0 quanta when bifrost->tells: it ends a pause that was longer
 * than its slot. Such is one that grants nothing: it lasts for two slots, so that the next is there in
 * time, whatever it waits behind; or each slot would let a packet through for as long as nothing drains. */
LH_API uint32_t lh_bifrost_on_slot(struct lh_bifrost *bifrost, uint64_t queue_bytes,
                                   uint64_t received_bytes);

/* ---- credits, as InfiniBand has them (volume 1, section 7.9) ---------------------------------------- */

#define LH_CBFC_BLOCK_BYTES 64u
/* With the 12 bits of the message no more blocks may be on their way. */
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
    uint64_t told_blocks; /* the last limit */
    uint64_t tell_blocks; /* a new limit is told when it has grown by so much */
    bool wide;
};

/* Blocks that a packet takes. */
LH_API uint64_t lh_cbfc_blocks(uint64_t bytes);
/* `limit` is what the receiver told first. */
LH_API void lh_cbfc_sender_init(struct lh_cbfc_sender *sender, bool wide, uint64_t limit);
LH_API bool lh_cbfc_may_send(const struct lh_cbfc_sender *sender, uint64_t bytes);
LH_API void lh_cbfc_on_sent(struct lh_cbfc_sender *sender, uint64_t bytes);
/* A limit came. One that is older than the last changes nothing. */
LH_API void lh_cbfc_on_limit(struct lh_cbfc_sender *sender, uint64_t limit);

LH_API void lh_cbfc_receiver_init(struct lh_cbfc_receiver *receiver, bool wide, uint64_t buffer_bytes,
                                  uint64_t tell_bytes);
/* False: there is no room, though there was credit for what fits: drop it. */
LH_API bool lh_cbfc_on_packet(struct lh_cbfc_receiver *receiver, uint64_t bytes);
/* A packet has left. True: it is time to tell lh_cbfc_limit(). */
LH_API bool lh_cbfc_on_freed(struct lh_cbfc_receiver *receiver, uint64_t bytes);
/* The same, to be asked after an arrival: there 12 bits can tell of more than before. */
LH_API bool lh_cbfc_is_due(const struct lh_cbfc_receiver *receiver);
/* The limit to tell the upstream now (FCCL). */
LH_API uint64_t lh_cbfc_limit(struct lh_cbfc_receiver *receiver);
/* The upstream tells its FCTBS: what was lost on the way is not waited for any longer. */
LH_API void lh_cbfc_on_total(struct lh_cbfc_receiver *receiver, uint64_t sent_blocks);

/* ---- SWING: a relay at each end of the long link ---------------------------------------------------- */

/* Our model of it, from what its abstract and others say (Chen et al., TPDS 2023): the relay at the
 * downstream end has the deep buffer, and obeys the PFC of its switch at once. With `forward` it passes
 * pause and resume on over the link as they come; without, it pauses the link by a threshold of its own,
 * as a switch would. */
struct lh_swing {
    struct lh_pfc_thresholds thresholds; /* without forward */
    bool forward;
    uint8_t stopped; /* bit p: priority p of the link is paused */
};

/* The switch behind the relay has paused or resumed it. What to tell over the link. */
LH_API enum lh_flow_signal lh_swing_on_signal(struct lh_swing *swing, uint8_t priority, bool pause);
/* The relay holds so much now. What to tell over the link. */
LH_API enum lh_flow_signal lh_swing_on_queue(struct lh_swing *swing, uint8_t priority, uint64_t held_bytes);

/* ---- what each needs --------------------------------------------------------------------------------- */

struct lh_flow_link {
    uint64_t rate_bps;
    lh_time delay_ns;    /* one way */
    lh_time slot_ns;     /* Bifrost's T */
    uint32_t leak_slots; /* Bifrost's k */
    uint32_t mtu_bytes;
};

struct lh_flow_needs {
    uint64_t bdp_bytes;          /* of a round trip */
    uint64_t pfc_headroom_bytes; /* what still comes after a pause: a BDP, two packets, a pause frame */
    uint64_t pfc_xoff_bytes; /* so that the queue lasts until what is resumed arrives: a BDP, two packets */
    uint64_t pfc_buffer_bytes;       /* both */
    uint64_t bifrost_h_bytes;        /* delta + 2 slots + a quantum */
    uint64_t bifrost_headroom_bytes; /* k packets, one of each slot on its way, and that a pause is late */
    uint64_t bifrost_buffer_bytes;   /* both */
    double bifrost_pause_share;      /* of the bandwidth back: a frame in each slot */
    uint64_t cbfc_buffer_bytes;      /* a BDP, three packets, a credit message, in blocks */
    bool cbfc_fits_12_bits;
    lh_time cbfc_reach_ns;      /* delay up to which 12 bits carry the full rate */
    uint64_t swing_relay_bytes; /* a BDP, two packets, a pause frame */
};

/* Buffers for one priority of one link such that nothing is lost and the link is never idle for want of a
 * signal. -LH_ERANGE: a value that no link has. */
LH_API int lh_flow_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs);

#ifdef __cplusplus
}
#endif
#endif
