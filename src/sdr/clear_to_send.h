/*
 * clear_to_send.h - which receives are posted: announced by the receiver until heard, consumed in order by
 * the sender. Pure. (SDR-RDMA paper, sections 3.1.3 and 3.2.3.)
 *
 * Timers: repeat_at, one for all announcements. Those that are not heard of are repeated when for the
 * path's overdue time (before the first round-trip sample: 1 ms) nothing new was heard of; each repeat in
 * vain doubles that, from the fourth on. Hearing of any starts it anew (as RFC 6298 section 5.3), and hearing
 * of all stops it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_CLEAR_TO_SEND_H
#define LH_SDR_CLEAR_TO_SEND_H

#include <longhaul/types.h>

#include "wire/control.h"

/* The first repeat when no round trip has been measured: the one time here that is not a multiple of one.
 */
#define CTS_FIRST_REPEAT_NS LH_NS_PER_MS

/* So many waits of an overdue time are not doubled. */
#define CTS_PATIENT_WAITS 4u

/* Receiver: the window of announcements that were not heard yet. */
struct cts_announcer {
    struct control_cts *ring; /* `size` entries, a power of two, owned by the caller */
    uint32_t size;
    uint32_t next;      /* sequence of the next receive */
    uint32_t announced; /* sequences before this were sent at least once */
    uint32_t heard;     /* the peer has heard all before this */
    uint32_t waits;     /* since it was heard from, with a round trip known */
    lh_time waited_ns;  /* for an answer, the last time; 0: it was heard from since. Backs off */
    lh_time repeat_at;  /* LH_TIME_NEVER when everything was heard */
};

void cts_announcer_init(struct cts_announcer *announcer, struct control_cts *ring, uint32_t size);
/* False when the window is full. Sets entry->sequence. */
bool cts_announce(struct cts_announcer *announcer, struct control_cts *entry);
/* True when it moved on. Nonsense (beyond what was announced) is ignored. overdue_ns 0: no sample yet. */
bool cts_on_heard(struct cts_announcer *announcer, uint32_t next, lh_time now, lh_time overdue_ns);
/* What to send now: fresh announcements first, then those that are overdue. 0: nothing. *repeated: how many
 * of them were sent before. Call until it gives 0. overdue_ns 0: no sample yet. */
uint32_t cts_collect(struct cts_announcer *announcer, lh_time now, lh_time overdue_ns,
                     struct control_cts *out, uint32_t room, uint32_t *repeated);
/* What the last cts_collect gave could not be sent: it will give it again. */
void cts_on_refused(struct cts_announcer *announcer, uint32_t count, uint32_t repeated, lh_time now);
/* When cts_collect has something to give. */
lh_time cts_announcer_next(const struct cts_announcer *announcer);

/* Sender: what was heard, in order. */
struct cts_queue {
    struct control_cts *ring; /* `size` entries, a power of two, owned by the caller */
    uint64_t *present;        /* a bit for each place of the ring */
    uint32_t size;
    uint32_t next_use; /* sequence of the next one to be used */
    uint32_t heard;    /* all before this have been heard */
};

void cts_queue_init(struct cts_queue *queue, struct control_cts *ring, uint64_t *present, uint32_t size);
/* A duplicate or one outside the window is ignored. The entry's fields were checked by the caller. */
void cts_queue_add(struct cts_queue *queue, const struct control_cts *entry);
/* The one that the next send uses, or NULL. */
const struct control_cts *cts_queue_peek(const struct cts_queue *queue);
void cts_queue_pop(struct cts_queue *queue);

#endif
