/*
 * small_messages.h - small messages (wire/eager_packets.h), which need no clear-to-send: between the
 * machines of eager/ and the two parts. Everything under the connection's lock.
 *
 * A receive of no more than a small message is not posted below: only carriers serve it. A longer one is,
 * and where a small message comes for it, its slots are closed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_SMALL_MESSAGES_H
#define LH_MESSAGE_SMALL_MESSAGES_H

#include "message/matching.h"
#include "message/tx_state.h"

struct small_messages {
    bool on;             /* the peer knows of them */
    uint32_t packet_max; /* bytes of a carrier that has several units of a message */
    struct tx *tx;       /* the sending part */
    struct matching matching;
    bool reported_in_part; /* the last acknowledgement did not reach the newest message, */
    uint32_t reported;     /* but this one: the next begins there */
    lh_time alarm_ns;      /* a timer of `outgoing` that was set, needed or not */
    bool waits;            /* a long message waits for its first clear-to-send, */
    uint32_t waiting;      /* this one, */
    lh_time waiting_since_ns;
};

/* Between the two parts of a connection, which are initialized. */
void small_messages_init(struct small_messages *s, struct tx *tx, struct rx *rx);
/* Once, when it is known whether the peer understands them. */
void small_messages_start(struct small_messages *s, bool peer_understands);
/* A message, or a receive, of up to that many bytes is served by carriers alone; 0 where there are none. */
uint64_t small_messages_max(const struct small_messages *s);
/* Memory for that many more messages to be sent. -LH_ENOMEM. */
int small_messages_prepare(struct small_messages *s, uint32_t count);
/* That many messages to be sent were added. When nothing else is in flight they leave at once, in the
 * caller's thread: no step need run for them. While something is, messages gather until the next step, and
 * share carriers. */
void small_messages_on_send(struct small_messages *s, uint32_t count, lh_time now);
/* The receive of this message was posted. */
void small_messages_on_receive(struct small_messages *s, uint32_t number, lh_time now);
/* What is held of the next message, which has no receive yet; NULL: nothing, or not all of it. */
const struct early_message *small_messages_next(const struct small_messages *s);
/* Takes that message without a receive: copies it to `out`, which holds its bytes. Memory for it is held. */
void small_messages_take(struct small_messages *s, uint8_t *out, lh_time now);
/* A packet of EAGER_KIND. */
void small_messages_on_packet(struct small_messages *s, const uint8_t *data, size_t bytes, lh_time now);
/* After the call for a message of that many bytes, or a receive: whether a step must run for it now. Else it
 * has all it needs until something arrives, or a timer ends that is set. */
bool small_messages_need_step(const struct small_messages *s, uint64_t bytes, bool sending,
                              uint32_t pending, lh_time due_ns);
/* Sends what is due; lowers *next. */
void small_messages_step(struct small_messages *s, lh_time now, lh_time *next);
/* The acknowledgement of all that arrived, at out, which holds TRANSFER_BYTES_MAX. 0: nothing did. */
size_t small_messages_last(struct small_messages *s, uint8_t *out);
/* Gives memory back that nothing uses now. */
void small_messages_give_back(struct small_messages *s);
/* Gives all of it back: the connection has ended, or closes. */
void small_messages_free(struct small_messages *s);

#endif
