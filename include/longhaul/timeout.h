/*
 * timeout.h - the timeout of a collective operation that may end with a part of its data: learned from the
 * members of the group, the same for all of them.
 *
 * Each member measures how long it took to receive how many bytes, and sends this to the others as a
 * *proposal*, after the operation and without waiting. Before the next operation each takes the median of the
 * proposals that it has, and smooths it (OptiNIC paper, section 3.1.2; Celeris paper, section III.B). A cost
 * per byte is exchanged, not a time: it holds for operations of another size.
 *
 *   LH_TIMEOUT_PAPER   T' = 0.2 * median + 0.8 * T, as printed. It settles at the median: where members
 *                      differ by a tenth, one byte in 25 is late.
 *   LH_TIMEOUT_MARGIN  T = median + k * deviation, both smoothed. k is where a normal distribution of this
 *                      deviation loses `loss_target` of the bytes (Celeris: 1), corrected by what was lost.
 *                      Grows faster (0.5) when the median member was cut off: a path that slowed down.
 *
 * The first timeout is 1.25 * the duration of a warm-up + 50 us. A member that was cut off proposes what
 * the whole would have taken at its rate, so a group that is always cut off waits longer each time; one
 * that got nothing proposes twice the timeout. Proposals that are missing for 16 operations do not vote. A
 * false proposal is one vote: it moves a median of many by no more than to the next honest one; with
 * LH_TIMEOUT_MARGIN none counts as less than an eighth or more than eight times the current cost, which
 * bounds two or three members, too.
 *
 * One object per collective and group. Calls of one object are not made at the same time by several threads.
 * No call reads a clock; durations come from a monotonic one.
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
    uint32_t members;   /* of the group, this one included: 1 to LH_TIMEOUT_MEMBERS_MAX */
    uint32_t member;    /* this one: 0 to members - 1 */
    double loss_target; /* share of the bytes that may be late, above 0 to 0.25; LH_TIMEOUT_MARGIN only */
    lh_time minimum_ns; /* bounds of every timeout */
    lh_time maximum_ns;
};

/* What a member measured. Encode it for the way to the others: over a reliable connection. */
struct lh_timeout_proposal {
    uint32_t round;     /* number of the operation: the first is 1 */
    uint64_t cost;      /* femtoseconds per byte */
    uint32_t delivered; /* share of the bytes that came, in millionths */
};

/* For reading: how the timeout came about. */
struct lh_timeout_state {
    uint32_t round;  /* operations begun */
    uint32_t voters; /* members whose proposals were in the last median */
    double cost;     /* of the timeout, ns per byte */
    double median;   /* of the last proposals, ns per byte */
    double center;   /* smoothed median */
    /* Smoothed: 1.48 * the median distance from `center` (of a normal distribution: sigma). */
    double deviation;
    double margin;    /* in deviations */
    double lost;      /* smoothed share of the bytes that were late, mean of the members */
    uint64_t refused; /* proposals that were */
};

struct lh_timeout;

/* Margin, loss target 0.5 %, 10 us to 30 s; members and member are the caller's to set. */
LH_API void lh_timeout_attr_init(struct lh_timeout_attr *attr);
/* -LH_EINVAL: an attribute; -LH_ENOMEM. */
LH_API int lh_timeout_create(const struct lh_timeout_attr *attr, struct lh_timeout **timeout);
/* NULL is allowed. */
LH_API void lh_timeout_destroy(struct lh_timeout *timeout);

/* The duration of a warm-up operation that received `bytes`. -LH_EINVAL: 0 ns or bytes; -LH_ESTATE: a second
 * one, or an operation has begun. */
LH_API int lh_timeout_warm_up(struct lh_timeout *timeout, lh_time elapsed_ns, uint64_t bytes);

/* Begins the next operation, in which this member expects to receive `bytes`: its timeout. -LH_ESTATE: no
 * warm-up yet; -LH_EINVAL: 0 bytes. */
LH_API int lh_timeout_begin(struct lh_timeout *timeout, uint64_t bytes, lh_time *timeout_ns);

/* Ends the operation: `received` of the bytes came within elapsed_ns. Votes, and returns the proposal for the
 * others. -LH_EINVAL, nothing changed: more than expected, or no time at all (a clock that was set back);
 * -LH_ESTATE: none has begun. */
LH_API int lh_timeout_end(struct lh_timeout *timeout, lh_time elapsed_ns, uint64_t received,
                          struct lh_timeout_proposal *proposal);

/* A proposal from another member, who was identified by the connection that it came from. At most
 * LH_TIMEOUT_AHEAD operations ahead, and newer than the last of this member; else -LH_EINVAL, counted. */
#define LH_TIMEOUT_AHEAD 64
LH_API int lh_timeout_propose(struct lh_timeout *timeout, uint32_t member,
                              const struct lh_timeout_proposal *proposal);

LH_API void lh_timeout_proposal_encode(const struct lh_timeout_proposal *proposal,
                                       uint8_t out[LH_TIMEOUT_PROPOSAL_BYTES]);
/* Anything may be in `in`. -LH_EINVAL: it is no proposal. */
LH_API int lh_timeout_proposal_decode(const uint8_t *in, size_t bytes,
                                      struct lh_timeout_proposal *proposal);

LH_API void lh_timeout_state(const struct lh_timeout *timeout, struct lh_timeout_state *state);

/* The end of a phase, counted from the beginning of the operation: phases that follow one another get
 * shares of the timeout in proportion to their bytes; parallel transfers of a phase share its end. bytes:
 * of `phases` phases, 1 to 65536; where all are 0, the shares are equal. Never more than the timeout. */
LH_API lh_time lh_timeout_phase_end(lh_time timeout_ns, const uint64_t *bytes, uint32_t phases,
                                    uint32_t phase);

#ifdef __cplusplus
}
#endif
#endif
