/*
 * timeout.h - adaptive timeout of collective operations that may end with missing data, agreed between the
 * members of the group.
 *
 * After an operation each member sends the others a *proposal*, without waiting: its measured time per
 * received byte. Before the next operation each member smooths the median of its proposals (OptiNIC paper,
 * section 3.1.2; Celeris paper, section III.B). Proposals are costs per byte, not times, so they apply to
 * operations of any size.
 *
 *   LH_TIMEOUT_PAPER   T' = 0.2 * median + 0.8 * T, as printed. It converges to the median: if members differ
 *                      by 10 %, one byte in 25 is late.
 *   LH_TIMEOUT_MARGIN  T = median + k * deviation, both smoothed. k is the point at which a normal
 *                      distribution of this deviation loses `loss_target` of the bytes (Celeris: 1),
 *                      corrected by the observed loss. T grows faster (0.5) after the median member was cut
 *                      off, since the path slowed down.
 *
 * The first timeout is 1.25 * the duration of a warm-up + 50 us. A member that was cut off proposes the time
 * of the whole operation at its rate, so a group that is always cut off increases its timeout each time; a
 * member that received nothing proposes twice the timeout. Members without a proposal for 16 operations do
 * not vote. A false proposal is one vote, which moves a median of many at most to the next honest proposal.
 * LH_TIMEOUT_MARGIN also clamps each proposal to an eighth to eight times the current cost, which bounds it
 * in groups of two or three members.
 *
 * Use one object per collective and group, from one thread at a time. No call reads a clock; the caller
 * measures durations with a monotonic one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_TIMEOUT_H
#define LONGHAUL_TIMEOUT_H

#include <longhaul/error.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LH_TIMEOUT_MEMBERS_MAX    65536
#define LH_TIMEOUT_PROPOSAL_BYTES 20 /* of an encoded proposal */

enum lh_timeout_rule {
    LH_TIMEOUT_MARGIN,
    LH_TIMEOUT_PAPER,
};

struct lh_timeout_attr {
    size_t struct_bytes;
    enum lh_timeout_rule rule;
    uint32_t members; /* of the group, including this one: 1 to LH_TIMEOUT_MEMBERS_MAX */
    uint32_t member;  /* this one: 0 to members - 1 */
    double
        loss_target; /* share of the bytes that may be late, above 0, at most 0.25; LH_TIMEOUT_MARGIN only
                           */
    lh_time minimum_ns; /* bounds of every timeout */
    lh_time maximum_ns;
};

/* A member's measurement. Send it, encoded, to the others over reliable connections. */
struct lh_timeout_proposal {
    uint32_t round;     /* number of the operation: the first is 1 */
    uint64_t cost;      /* femtoseconds per byte */
    uint32_t delivered; /* share of the bytes that arrived, in millionths */
};

/* State of the timeout, for display. */
struct lh_timeout_state {
    uint32_t round;  /* operations begun */
    uint32_t voters; /* members whose proposals were in the last median */
    double cost;     /* of the timeout, ns per byte */
    double median;   /* of the last proposals, ns per byte */
    double center;   /* smoothed median */
    /* Smoothed: 1.48 * the median distance from `center` (of a normal distribution: sigma). */
    double deviation;
    double margin;    /* in deviations */
    double lost;      /* smoothed share of late bytes, mean of the members */
    uint64_t refused; /* number of refused proposals */
};

struct lh_timeout;

/* Sets the defaults: LH_TIMEOUT_MARGIN, loss target 0.5 %, 10 us to 30 s. The caller sets members and
 * member. */
LH_API void lh_timeout_attr_init(struct lh_timeout_attr *attr);
/* Creates a timeout. -LH_EINVAL: an attribute is invalid; -LH_ENOMEM. */
LH_API int lh_timeout_create(const struct lh_timeout_attr *attr, struct lh_timeout **timeout);
/* Frees a timeout. NULL is allowed. */
LH_API void lh_timeout_destroy(struct lh_timeout *timeout);

/* Reports the duration of a warm-up operation that received `bytes`. -LH_EINVAL: 0 ns or 0 bytes; -LH_ESTATE:
 * there was a warm-up, or an operation has begun. */
LH_API int lh_timeout_warm_up(struct lh_timeout *timeout, lh_time elapsed_ns, uint64_t bytes);

/* Begins the next operation, and gets its timeout. bytes: expected by this member. -LH_ESTATE: no warm-up
 * yet; -LH_EINVAL: 0 bytes. */
LH_API int lh_timeout_begin(struct lh_timeout *timeout, uint64_t bytes, lh_time *timeout_ns);

/* Ends the operation, in which `received` bytes arrived within elapsed_ns. Votes, and gets the proposal for
 * the others. -LH_EINVAL, without effect: more bytes than expected, or 0 ns (the clock was set back);
 * -LH_ESTATE: no operation has begun. */
LH_API int lh_timeout_end(struct lh_timeout *timeout, lh_time elapsed_ns, uint64_t received,
                          struct lh_timeout_proposal *proposal);

/* Takes a proposal from another member, whom the caller identifies by its connection. -LH_EINVAL, counted in
 * `refused`: the proposal is more than LH_TIMEOUT_AHEAD operations ahead, or not newer than the member's last
 * one. */
#define LH_TIMEOUT_AHEAD 64
LH_API int lh_timeout_propose(struct lh_timeout *timeout, uint32_t member,
                              const struct lh_timeout_proposal *proposal);

LH_API void lh_timeout_proposal_encode(const struct lh_timeout_proposal *proposal,
                                       uint8_t out[LH_TIMEOUT_PROPOSAL_BYTES]);
/* Decodes a proposal from untrusted bytes. -LH_EINVAL: not a proposal. */
LH_API int lh_timeout_proposal_decode(const uint8_t *in, size_t bytes,
                                      struct lh_timeout_proposal *proposal);

LH_API void lh_timeout_state(const struct lh_timeout *timeout, struct lh_timeout_state *state);

/* Returns the end of a phase, from the beginning of the operation. Consecutive phases get shares of the
 * timeout in proportion to their bytes; parallel transfers of a phase share its end. bytes: one number for
 * each of `phases` phases, 1 to 65536; if all are 0, the shares are equal. Never more than the timeout. */
LH_API lh_time lh_timeout_phase_end(lh_time timeout_ns, const uint64_t *bytes, uint32_t phases,
                                    uint32_t phase);

#ifdef __cplusplus
}
#endif
#endif
