/*
 * matching.h - what arrived in carriers: into the buffer of a message that has its receive, or held until it
 * has one; and which one that is, where the receives of a connection choose (lh_attr.match_tags). Everything
 * under the connection's lock.
 *
 * Messages are considered in the order of their sends, each when its tag is known: from a carrier, where long
 * ones are announced. It gets the first receive that fits, or waits for one in `early`; a receive gets the
 * first message that waits and fits, or waits in `waiting`. rx->next is the next message to be considered;
 * one before it that is RX_EMPTY has no receive.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_MATCHING_H
#define LH_MESSAGE_MATCHING_H

#include "eager/eager_rx.h"
#include "message/rx_state.h"

struct matching {
    bool on;
    struct waiting waiting;
    uint32_t unmatched; /* messages that were considered, and have no receive */
    struct rx *rx;      /* whose receives and messages they are */
    struct inbound inbound;
    struct early early;
};

/* ---- receives that choose ---------------------------------------------------------------------------- */

/* Once, when the peer's blob is known. -LH_EVERSION: receives choose, and it does not understand that. */
int matching_start(struct matching *m, bool peer_understands);
/* Memory for one more receive. -LH_ENOMEM. */
int matching_hold(struct matching *m);
/* Gives memory back that nothing uses now. */
void matching_give_back(struct matching *m);
/* A receive was posted. */
void matching_recv(struct matching *m, const struct rx_receive *receive, lh_time now);
/* Something of a message that is not received yet. */
void matching_on_entry(struct matching *m, const struct eager_entry *entry, lh_time now);
/* Considers what was held while there was no memory. */
void matching_consider(struct matching *m, lh_time now);
/* The sender aborted this message; before refuse_on_cancel(). */
void matching_on_cancel(struct matching *m, uint32_t number);
/* False: the request has a message. */
bool matching_cancel(struct matching *m, struct message_request *request, lh_time now);
/* All that wait end with this error (negative). */
void matching_end_all(struct matching *m, int error, lh_time now);

/* ---- what arrived ------------------------------------------------------------------------------------ */

/* A unit of a message that is open. */
void arrived_unit(struct matching *m, struct rx_message *message, const struct eager_entry *entry,
                  lh_time now);
/* An open message is a long one. */
void arrived_long(struct matching *m, struct rx_message *message, lh_time now);
/* What is held of a small message whose receive was posted. */
void arrived_take_small(struct matching *m, struct rx_message *message, const struct early_message *held,
                        lh_time now);

/* Of a message that has just got its receive by its tag: the first that comes, or what is held.
 */
void arrived_take_entry(struct matching *m, struct rx_message *message, const struct eager_entry *entry,
                        lh_time now);
void arrived_take_held(struct matching *m, struct rx_message *message, const struct early_message *held,
                       lh_time now);

/* An entry is held until its message has a receive; as if it had been lost when there is no place. */
void arrived_hold(struct matching *m, const struct eager_entry *entry);
/* What is held of this message, if anything, is given back. */
void arrived_drop(struct matching *m, uint32_t number);
/* There is something to report. */
void arrived_want_ack(struct matching *m, lh_time now);

#endif
