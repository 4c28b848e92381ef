/*
 * inside.h - the few things that checkers read inside the product: how full its queues are, which ports it
 * has.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_INSIDE_H
#define LH_TESTS_WORLD_INSIDE_H

#include "world/world.h"

/* What a connection is made of. */
void inside_connection(struct lh_connection *connection, struct sdr_context **context, struct sdr_qp **qp);
/* The same of the inner connection of its one-sided operations; NULL: there is none. */
struct lh_connection *inside_inner(const struct lh_connection *connection, struct sdr_qp **qp);
/* Its first port, of consecutive ones. */
uint16_t inside_qp_ports(struct sdr_qp *qp, uint16_t *count);

/* One bound: what it is called, how much there is, how much there may be. */
struct inside_bound {
    const char *name;
    uint64_t used;
    uint64_t maximum;
};
#define INSIDE_BOUNDS_MAX 48u
uint32_t inside_qp_bounds(struct sdr_qp *qp, struct inside_bound bounds[INSIDE_BOUNDS_MAX]);
uint32_t inside_connection_bounds(const struct lh_connection *connection,
                                  struct inside_bound bounds[INSIDE_BOUNDS_MAX]);
/* Entries that wait to be polled. */
struct lh_completion_queue;
uint32_t inside_queue_entries(struct lh_completion_queue *queue);
/* Both ends are open, and nothing was sent: what one sends the other is numbered from here on. */
void inside_qp_number(struct sdr_qp *sender, struct sdr_qp *receiver, uint32_t first);
void inside_connection_number(struct lh_connection *sender, struct lh_connection *receiver,
                              uint32_t message, uint32_t segment);
/* Its receiving half. */
struct message_table;
const struct message_table *inside_qp_table(const struct sdr_qp *qp);
/* Of the layer above's messages: the number of the one that leaves now, and of the next that will wait. */
uint32_t inside_qp_message_leaving(const struct sdr_qp *qp);
uint32_t inside_qp_message_next(const struct sdr_qp *qp);

/* What a receiver's machine can see of a segment: a byte a chunk, of the parity too. */
struct inside_segment {
    uint8_t scheme; /* its id */
    const uint8_t *chunks;
    uint32_t count;
    const uint8_t *extra;
    uint32_t extra_count;
    bool cut; /* the message is shorter than the buffer */
};
/* False: that segment is not open. */
bool inside_connection_segment(const struct lh_connection *connection, uint32_t sequence,
                               struct inside_segment *segment);
/* Payload that its controller may have in flight, whatever it hears; 0: it has none. */
uint64_t inside_qp_window(const struct sdr_qp *qp);
/* When its controller takes what is not heard of for lost; 0: it has none. */
lh_time inside_qp_silence(const struct sdr_qp *qp);
/* How often the slot was used that was used most. */
uint32_t inside_qp_slot_uses(struct sdr_qp *qp);

#endif
