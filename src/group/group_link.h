/*
 * group_link.h - what connects two ranks: a connection for small messages, so for all that controls, one for
 * bulk, and, where reliability is `bounded`, one for what may be incomplete, with the buffers into which
 * all receive.
 *
 * Receives are posted ahead, always: whatever a peer sends has a place when it arrives, and needs no round
 * trip first. As many are posted as a round trip needs, those that were used last first: on a short path
 * few buffers are in turn, and stay in the cache. Messages say by their tags what they are
 * (group_messages.h), so operations share a link in any order. Early messages are kept until their operation
 * begins.
 *
 * All under the lock of the mesh.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_GROUP_GROUP_LINK_H
#define LH_GROUP_GROUP_LINK_H

#include <longhaul/collective.h>
#include <longhaul/connection.h>
#include <longhaul/queue.h>

#include "group/group_messages.h"
#include "keys/pair_keys.h"
#include "message/completion_queue.h"

#define LINK_SMALL_BYTES  4096u /* of a message that needs no clear-to-send */
#define LINK_SMALL_PLACES 64u
#define LINK_BULK_PLACES  64u /* at most: slots of a connection */

struct link;

enum lane {
    LANE_SMALL,
    LANE_BULK,
    LANE_BOUNDED, /* not every link has one */
    LANES
};

/* A buffer that a receive is posted into, or that has a message. */
struct bounce {
    struct link *link;
    struct bounce *next; /* spare */
    uint8_t *memory;
    enum lane lane;
    struct lh_request *request; /* of LANE_BOUNDED: it knows what is missing */
};

/* A control message for which there is no room yet. */
struct control {
    struct control *next;
    struct tag tag;
    size_t bytes;
    uint8_t data[];
};

struct link_attr {
    const struct lh_attr *connection; /* complete but for what the link sets */
    const struct lh_attr *bounded;    /* of that lane; NULL: there is none */
    bool near;                        /* on this machine: round trips are those of its scheduler */
    lh_time deadline_ns;              /* of operations over it; LH_DEADLINE_AUTO: learned */
    struct lh_completion_queue *queue;
    size_t block_bytes; /* maximum of a message */
    size_t buffer_bytes;
};

/* A connection, and its buffers. */
struct link_lane {
    struct lh_connection *connection; /* NULL: there is none */
    struct bounce *bounces;
    uint32_t places;         /* buffers */
    uint32_t posted_places;  /* of these, with a posted receive */
    uint32_t spare_places;   /* with neither that nor a message */
    struct bounce *spare;    /* the one that was used last */
    uint32_t unacknowledged; /* sends */
};

/* The pieces of an operation that came over LANE_BULK, one after the other: the last that had some. */
struct link_train {
    uint32_t group;
    uint32_t operation;
    uint64_t bytes; /* behind the first piece */
    lh_time first_ns;
    lh_time last_ns;
};

struct link {
    uint32_t rank;   /* of the peer, in the mesh: where it is there */
    uint32_t number; /* of the peer: no other member of the mesh ever had it; so in notices */
    bool near;
    struct link_lane lanes[LANES];
    struct lh_completion_queue *queue;
    struct lh_memory *registered;
    uint8_t *memory;
    size_t memory_bytes;
    struct bounce *bounces; /* of all lanes */
    uint32_t small_bytes;   /* longest message of LANE_SMALL */
    size_t block_bytes;
    lh_time deadline_ns; /* of operations over LANE_BOUNDED */
    size_t copied_bytes;
    struct sent_store copies;
    struct sent_list losable; /* messages over LANE_BOUNDED that have not left, */
    lh_time withdraws_at;     /* of which, if there are any, some are withdrawn then */
    struct link_train train;
    uint32_t early[LANES];   /* messages sent of operations that the peer has not begun */
    size_t kept_bytes;       /* of messages from the peer that are early here */
    struct control *backlog; /* waits for room, which sends that are acknowledged make */
    struct control *backlog_last;
    size_t backlog_bytes;
    bool overflowed; /* it is at its bound: the peer lives, and takes nothing */
    bool announced;  /* its failure, to the others */
    int error;       /* 0; -LH_ECLOSED: the peer has left in order; else it has failed */
    bool leaving;    /* a lane is closed; what has arrived over the others is still to be taken */
    bool hello;      /* one has arrived */
    bool begun;      /* it is attached, and its receives are posted */
    bool joins;      /* of a newcomer, until its group is made */
    bool closed;     /* no group needs it; what it had in the queue is still to be taken */
    bool vacant;     /* it is free for another peer */
};

/* Capacity that a link's requests need of the completion queue; bounded: it may have that lane. */
uint32_t link_queue_places(bool bounded);
/* Opens the connections. -LH_EINVAL, -LH_ENOMEM, and others of lh_open(). On failure link_close(). */
int link_open(struct link *link, uint32_t rank, const struct link_attr *attr);
/* All blobs, for the peer's link_attach(): LINK_BLOB_MAX at most. */
#define LINK_BLOB_MAX (LANES * (LH_BLOB_MAX + 4))
int link_blob(struct link *link, uint8_t *blob, size_t *bytes);
/* Before link_attach(): all lanes are encrypted, each with its secret. connecting: of the two ranks one. */
int link_encrypt(struct link *link, uint8_t (*secrets)[PAIR_SECRET_BYTES], bool connecting);
int link_attach(struct link *link, const uint8_t *blob, size_t bytes);
/* Posts all receives. */
int link_begin(struct link *link);
/* Closes the connections: what is pending ends, and its entries are in the queue. */
void link_close(struct link *link);
/* When those have been polled. */
void link_free(struct link *link);

/* Whether the peer has received all that was sent. */
bool link_is_flushed(const struct link *link);
/* Shortest round trip so far; 0: unknown. */
lh_time link_rtt_ns(struct link *link);

/* ---- sending ----------------------------------------------------------------------------------------- */

/* The lane of a message; bounded: it may be incomplete. */
enum lane link_lane_of(const struct link *link, size_t bytes, bool bounded);
/* Whether another message may be sent now: there is a bound for those in flight. */
bool link_may_send(const struct link *link, enum lane lane);
/* Whether the memory of a message would better be copied: its acknowledgement is too far away to wait for
 * it, or it may never leave. */
bool link_copies(struct link *link, enum lane lane, size_t bytes);
struct link_message {
    struct tag tag;
    const struct lh_part *parts;
    uint32_t count;
    struct sent_list *owner; /* waits until they are acknowledged; NULL: they are copied */
    lh_time until;           /* over LANE_BOUNDED, copied: what has not left by then never does */
};
/* -LH_EAGAIN: not now. */
int link_send(struct link *link, enum lane lane, const struct link_message *message);
/* When some of what was sent over LANE_BOUNDED is late; LH_TIME_NEVER: none is. */
lh_time link_withdraws_at(const struct link *link);
/* What was sent over LANE_BOUNDED, and has not left in time, never does. */
void link_withdraw_late(struct link *link, lh_time now);
/* Nor does what was sent so for an operation that is over at the peer. */
void link_withdraw_of(struct link *link, uint32_t group, uint32_t operation);
/* A short message that is copied. With as many in flight as there may be it waits; so none is lost.
 * -LH_EPEER: so many wait that the link has overflowed, and counts as failed. */
int link_send_control(struct link *link, const struct tag *tag, const void *body, size_t bytes);
/* What waits to be sent is not: of a link that has failed. */
void link_drop_backlog(struct link *link);
/* A send is over, and is freed. */
void link_on_sent(struct sent *sent);

/* ---- receiving --------------------------------------------------------------------------------------- */

/* The message in a buffer has been used: posts it again, or when it is needed. */
int link_repost(struct bounce *bounce);
/* A message has arrived in it, or none ever will: posts others in its place. What is missing of it is the
 * caller's, for loss_free(); NULL: nothing. */
struct loss *link_on_received(struct bounce *bounce, const struct lh_result *result);
/* Messages over LANE_BOUNDED, whose tags `ends` chooses, arrive as they are. */
void link_end_receives(struct link *link, deadline_ends *ends, const void *context);
/* What waits to be decoded, in any lane, is: its entries are in the queue on return. */
void link_finish_decoding(struct link *link);
/* A piece of an operation has arrived over LANE_BULK. */
void link_on_piece(struct link *link, const struct tag *tag, size_t bytes, lh_time now);
/* Whether buffers of a lane are so few that a message should be copied elsewhere, and its buffer posted
 * again. */
bool link_is_short(const struct link *link, enum lane lane);

/* ---- members --------------------------------------------------------------------------------------- */

/* The ranks of a group, as its parts know them. */
struct members {
    uint32_t id; /* of the group, in tags */
    uint32_t rank;
    uint32_t size;
    uint32_t *of_mesh;  /* by rank: the rank of the mesh */
    struct link *links; /* of the mesh, by its ranks; that of this rank is not used */
};

static inline struct link *member_link(const struct members *members, uint32_t rank)
{
    return &members->links[members->of_mesh[rank]];
}

/* The member of a rank of the mesh; LH_NO_RANK: none. */
static inline uint32_t member_of_mesh(const struct members *members, uint32_t mesh_rank)
{
    for (uint32_t r = 0; r < members->size; r++)
        if (members->of_mesh[r] == mesh_rank)
            return r;
    return LH_NO_RANK;
}

/* ---- early messages -------------------------------------------------------------------------------- */

/*
 * Messages that wait: for an operation that has not begun here, or, pieces, for their sender's signature. By
 * group, operation and sender, in the order in which they came; so each is found in the time of a table's
 * look-up, however many operations peers are ahead.
 */

struct ahead {
    struct ahead *next;
    struct tag tag;
    size_t bytes;
    struct bounce *bounce; /* that has it; NULL: `data` has */
    struct loss *loss;     /* what is missing of it; NULL: nothing */
    uint8_t data[];
};

/* Those of a rank of the mesh for an operation. */
struct ahead_queue {
    struct ahead_queue *next; /* of the bucket */
    struct link *link;
    uint32_t group;
    uint32_t operation;
    bool failed; /* at the peer, since: nothing else comes of it */
    bool lossy;  /* there was no room for all that may be lost */
    struct ahead *first;
    struct ahead **last;
};

#define AHEAD_BUCKETS 4096u

struct ahead_store {
    uint32_t queues;
    struct ahead_queue *buckets[AHEAD_BUCKETS];
};

/* NULL: none wait. */
struct ahead_queue *ahead_find(const struct ahead_store *store, const struct link *link, uint32_t group,
                               uint32_t operation);
/* Keeps a message in its buffer, or, without one, copied; and its loss. -LH_ENOMEM. */
int ahead_keep(struct ahead_store *store, struct link *link, const struct tag *tag, const uint8_t *data,
               size_t bytes, struct bounce *bounce, struct loss *loss);
/* What it costs, of link->kept_bytes. */
size_t ahead_cost(size_t bytes);

/* Takes a queue out: it is the caller's, who puts it back or discards it. NULL: there is none. */
struct ahead_queue *ahead_detach(struct ahead_store *store, const struct link *link, uint32_t group,
                                 uint32_t operation);
void ahead_attach(struct ahead_store *store, struct ahead_queue *queue);
/* Frees a message, *at, of a queue that was taken out; its buffer and loss are another's, or none. */
void ahead_remove(struct ahead_queue *queue, struct ahead **at);
/* Drops what is left of a queue that was taken out, and posts its buffers again. NULL is allowed. */
void ahead_discard(struct ahead_queue *queue);
/* The same of all of a link. */
void ahead_discard_link(struct ahead_store *store, const struct link *link);
/* Likewise all of a group. */
void ahead_discard_group(struct ahead_store *store, uint32_t group);
/* Frees all; the links are closed. */
void ahead_end(struct ahead_store *store);

#endif
