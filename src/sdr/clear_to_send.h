/*
 * clear_to_send.h - posted receives: announced by the receiver until acknowledged, consumed in order by the
 * sender. Pure. (SDR-RDMA paper, sections 3.1.3 and 3.2.3.)
 *
 * Timers: repeat_at, one for all announcements. Unacknowledged ones are retransmitted after the path's
 * overdue time (before the first round-trip sample: 1 ms) without a new acknowledgement; each
 * retransmission in vain doubles that, from the fourth on. An acknowledgement of some sets it to an overdue
 * time from when the oldest of the others was sent: in a stream of receives a lost one is missed as soon as
 * a single one. An acknowledgement of all stops it. On a long path that lost some not long ago they are
 * retransmitted 1/16 of that time apart for the first four: a burst of losses then costs no round trip, and
 * the receive no part of its deadline.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_CLEAR_TO_SEND_H
#define LH_SDR_CLEAR_TO_SEND_H

#include <longhaul/types.h>

#include "store/ring.h"
#include "wire/control.h"

/* The first retransmission when no round trip has been measured: the one time here that is not a multiple
 * of one. */
#define CTS_FIRST_REPEAT_NS LH_NS_PER_MS

/* The first waits of an overdue time, which are not doubled. */
#define CTS_PATIENT_WAITS 4u

/* Where announcements were lost, each of these is cut into so many; below a millisecond it is not missed. */
#define CTS_HASTE        16u
#define CTS_HASTE_MIN_NS LH_NS_PER_MS
/* So many acknowledgements after the last loss. */
#define CTS_HASTE_MEMORY 256u

struct cts_announcement {
    struct control_cts entry;
    lh_time sent_ns; /* the last time */
};

/* Receiver: the window of unacknowledged announcements. */
struct cts_announcer {
    struct ring
        ring; /* of struct cts_announcement, from `acked` on: the owner holds the places, and frees it */
    uint32_t size;      /* of the window, a power of two */
    uint32_t next;      /* sequence of the next receive */
    uint32_t announced; /* sequences before this were sent at least once */
    uint32_t acked;     /* the peer has acknowledged all before this */
    uint32_t waits;     /* since the last acknowledgement, with a round trip known */
    lh_time waited_ns;  /* for an acknowledgement, the last time; 0: one came since. Backs off */
    lh_time silent_ns;  /* all waits since then */
    uint32_t haste;     /* not 0: announcements were lost, not long ago; acknowledgements until it ends */
    lh_time repeat_at;  /* LH_TIME_NEVER when everything is acknowledged */
};

void cts_announcer_init(struct cts_announcer *announcer, uint32_t size);
/* False when the window is full. Sets entry->sequence. The ring holds its place. */
bool cts_announce(struct cts_announcer *announcer, struct control_cts *entry);
/* True when the window moved. An acknowledgement beyond the announced is ignored. overdue_ns 0: no sample
 * yet. */
bool cts_on_ack(struct cts_announcer *announcer, uint32_t next, lh_time now, lh_time overdue_ns);
/* What to send now: fresh announcements first, then those that are overdue. 0: nothing. *repeated: the
 * number of those sent before. Call until it gives 0. overdue_ns 0: no sample yet. */
uint32_t cts_collect(struct cts_announcer *announcer, lh_time now, lh_time overdue_ns,
                     struct control_cts *out, uint32_t room, uint32_t *repeated);
/* What the last cts_collect gave could not be sent: it will give it again. */
void cts_on_refused(struct cts_announcer *announcer, uint32_t count, uint32_t repeated, lh_time now);
/* When cts_collect has something to give. */
lh_time cts_announcer_next(const struct cts_announcer *announcer);

/* Sender: what was received, in order. */
struct cts_queue {
    struct ring ring;  /* likewise, from `next_use` on */
    uint64_t *present; /* a bit for each place of the window, owned by the caller */
    uint32_t size;     /* of the window, a power of two */
    uint32_t next_use; /* sequence of the next one to be used */
    uint32_t received; /* all before this have been received */
};

void cts_queue_init(struct cts_queue *queue, uint64_t *present, uint32_t size);
/* Places that the ring must hold for this entry: 0, it would be ignored. */
uint32_t cts_queue_places(const struct cts_queue *queue, uint32_t sequence);
/* A duplicate or one outside the window is ignored. The entry's fields were checked by the caller, and the
 * ring holds its place. */
void cts_queue_add(struct cts_queue *queue, const struct control_cts *entry);
/* The one that the next send uses, or NULL. */
const struct control_cts *cts_queue_peek(const struct cts_queue *queue);
void cts_queue_pop(struct cts_queue *queue);
/* No entry is present, in order or not. */
bool cts_queue_is_empty(const struct cts_queue *queue);

#endif
