/*
 * groups.h - what a sender knows of its submessages, and what each still needs.
 *
 * A submessage of n data chunks can be decoded once any n of its data and parity rows have arrived.
 * `needed` is n less what has arrived; in flight are its chunks and rows that were injected and not
 * reported lost. As soon as nothing else is to be injected, each submessage gets as many chunks more as
 * make
 *     P(fewer than `needed` of those in flight arrive) <= failure                        (strength.h)
 * true. At the end of a message that is parity. Later, when reports have made a failure more likely than
 * HYBRID_PATIENCE times that, it is further parity; rows that are not there yet are replaced by lost chunks.
 * A batch of rows that a report interrupts is finished by the first bound, not by that one.
 * So parity is chosen for the tail as it is: what has arrived needs none, and a retransmission in flight
 * counts as one chunk that may be lost.
 *
 * A submessage's rows are injected in order. Those of a batch share a stamp, the number of the MARK that
 * covers them (sr/marker.h): when it has settled at the receiver, rows that have not arrived are lost.
 *
 * The only chunk of a message has no parity: its rows are copies of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_HYBRID_GROUPS_H
#define LH_SCHEMES_HYBRID_GROUPS_H

#include "schemes/ec/layout.h"
#include "schemes/hybrid/strength.h"
#include "schemes/sr/ledger.h"
#include "wire/hybrid.h"

#define HYBRID_COPIES_MAX 8u    /* of an only chunk, beside itself */
#define HYBRID_PATIENCE   100.0 /* one submessage in 100 gets further parity before it is known to fail */

struct hybrid_group {
    uint8_t sent;        /* rows injected */
    uint8_t sent_before; /* of those, before the newest batch */
    uint8_t want;        /* rows to be injected in all */
    uint8_t asked;       /* rows that were given to the encoder */
    uint8_t ready;       /* rows that it has computed */
    uint8_t arrived;     /* rows at the receiver, as reported */
    uint8_t settled;     /* rows whose fate is known: those that have not arrived are lost */
    uint8_t repeats;     /* lost chunks to be retransmitted */
    bool met;            /* the receiver can decode it */
    bool covered;        /* for statistics: what was planned is in flight, */
    bool failed;         /* and did not suffice */
    uint32_t stamp;      /* of the newest batch, and of the one before it */
    uint32_t stamp_before;
};

struct hybrid_groups {
    const struct ec_layout *layout;
    struct hybrid_group *all;
    uint32_t rows_in_flight;
    uint32_t rows_arrived;
    uint32_t work_from; /* no submessage before has something to be injected */
    uint32_t newly_failed;
};

/* What an evaluation goes by. */
struct hybrid_rule {
    struct hybrid_loss loss; /* burst: of the wire */
    double failure;          /* of one full submessage */
    uint32_t from_stamp;     /* chunks injected before that count as if they had arrived (reach.h) */
    bool waits;              /* other data is to be injected: only what is certain to fail is repaired */
};

/* Bytes of the array behind it, for a transfer of at most that many chunks. */
size_t hybrid_groups_bytes(uint32_t chunks_max);
/* layout stays the caller's, as the memory of hybrid_groups_bytes(). */
void hybrid_groups_init(struct hybrid_groups *groups, const struct ec_layout *layout, void *memory);
/* Rows that a submessage can have in all. */
uint32_t hybrid_groups_rows_max(const struct hybrid_groups *groups);
/* Loss as it hits one submessage of a block of that many: after a lost chunk the next one of the same
 * submessage is lost, too, when the burst goes on for so many chunks. */
struct hybrid_loss hybrid_groups_loss(const struct hybrid_loss *loss, uint32_t block_groups);

/* A report. False, and nothing is changed, for what no receiver of ours can have written. */
bool hybrid_groups_on_rows(struct hybrid_groups *groups, const struct hybrid_rows *rows);
/* Of an only chunk: a MARK that covers its copies has settled. */
void hybrid_groups_settle_copies(struct hybrid_groups *groups, uint32_t mark);
/* Evaluates submessages first … end - 1. */
void hybrid_groups_evaluate(struct hybrid_groups *groups, const struct sr_ledger *ledger, uint32_t first,
                            uint32_t end, const struct hybrid_rule *rule);
/* The first from work_from on that has something to inject now, a lost chunk or (rows_may_leave) a row;
 * layout->groups: none. */
uint32_t hybrid_groups_work(struct hybrid_groups *groups, bool rows_may_leave);
/* Rows of this submessage that can be injected now. */
uint32_t hybrid_group_rows_due(const struct hybrid_group *group);
/* One row of this submessage is injected, with this stamp. Returns its number. */
uint32_t hybrid_groups_take_row(struct hybrid_groups *groups, uint32_t group, uint32_t stamp);
/* The lost chunk of this submessage that is retransmitted first; UINT32_MAX: none is lost any more. */
uint32_t hybrid_groups_lost_chunk(const struct hybrid_groups *groups, const struct sr_ledger *ledger,
                                  uint32_t group);

#endif
