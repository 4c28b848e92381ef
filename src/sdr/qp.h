/*
 * qp.h - a queue pair from the inside: what its files share. Each calls only those above it.
 *
 *   qp.c          its state: failure, gates, wake-ups, statistics
 *   qp_recv.c     posting, reading and completing receives
 *   qp_send.c     one-shot and streaming sends
 *   qp_setup.c  QP information, connection to the peer
 *   qp_rate.c     the controller: its start, reports of the peer and to it, its time
 *   qp_control.c  control messages, clear-to-send, ping
 *   qp_round.c    one channel's arrivals and packets to inject
 *   qp_setup.c   creation and end
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_H
#define LH_SDR_QP_H

#include <pthread.h>
#include <stdatomic.h>

#include <longhaul/sdr_ext.h>

#include "fabric/fabric.h"
#include "sdr/message_table.h"
#include "sdr/qp_path.h"
#include "sdr/rate_control.h"
#include "sdr/run_queue.h"
#include "sdr/sdr_driver.h"
#include "sdr/send_queue.h"
#include "sdr/worker_sleep.h"
#include "store/store.h"
#include "wire/control_messages.h"

#define QP_STRIPE_PACKETS   64u         /* one word of the packet bitmap: channels never share a word */
#define QP_MESSAGES_WAITING 256u        /* of the layer above, each way; a power of two */
#define QP_KEEPALIVE_NS     LH_NS_PER_S /* longest silence before a ping; not a timeout */
#define QP_CONTROL_BATCH    16u
#define DEVICE_REASON_MAX   192u
/* When a fabric pushed back and names no time, it is asked again after this. No protocol depends on it. */
#define QP_BLOCKED_RETRY_NS (20 * LH_NS_PER_US)

struct sdr_recv_handle {
    struct sdr_qp *qp;
    uint32_t slot;
    uint32_t sequence;
    uint32_t length_bytes;
    uint32_t lkey;
};

/* A slot that no receive uses. */
struct qp_free_slot {
    uint16_t slot;
    uint8_t generation; /* of its next use, while the message table has no memory for slots */
};

struct sdr_send_handle {
    struct send_message message;
    struct sdr_qp *qp;
    struct sdr_send_handle *next; /* while it is not in use */
};

#define QP_SENDS_A_BLOCK 16u

/* Sends, at places that do not change while they are in use. */
struct qp_send_block {
    struct qp_send_block *next;
    struct sdr_send_handle sends[QP_SENDS_A_BLOCK];
};

struct qp_sends {
    struct qp_send_block *blocks;
    struct sdr_send_handle *unused; /* of all blocks */
    uint32_t count;                 /* in all blocks */
    uint32_t in_use;
    uint32_t maximum;
};

/* Who asks whether a packet of the whole MTU has arrived. */
#define QP_FULL_FOR_UPPER 1u /* sdr_qp_full_arrived() */
#define QP_FULL_FOR_PROBE 2u /* the answer to a probe of the peer */
#define QP_FULL_FOR_ALL   (QP_FULL_FOR_UPPER | QP_FULL_FOR_PROBE)

/* What a channel has received, for the peer's controller. Written under the channel's gate. */
struct qp_arrivals {
    _Atomic uint64_t
        packets;        /* that crossed the path, whatever became of them; read without the gate, too */
    lh_time newest_ns;  /* when it was read; from the first report of it on: */
    lh_time reached_ns; /* when it had reached this host: of the last one that was reported */
    uint64_t late;      /* packets of the queue pair that came too late, before the newest of these */
    uint32_t newest_immediate;
    uint8_t newest_generation;
};

/* A packet of which the fabric has taken some pieces. */
struct qp_cut {
    uint64_t va;
    uint32_t rkey;
    uint32_t pieces; /* that it was cut into; 0: there is no such packet */
    uint32_t taken;
};

/* Its worker's, which has the index of a worker's entry, too: no other works on the same cache lines. */
struct qp_channel {
    _Alignas(64) struct gate gate;
    struct qp_arrivals arrivals;
    struct limits limits;
    _Atomic lh_time drained_ns;     /* what had arrived before this is in the bitmaps */
    _Atomic lh_time paced_until_ns; /* the pace lets nothing worthwhile out before */
    _Atomic uint64_t paced_bps;     /* that pace */
    uint32_t waits;                 /* for the pace, since it last sent; under the pacer's lock */
    uint32_t held_back;             /* of a batch, which the fabric is not offered at first; its worker's */
    struct send_channel sends;
    struct qp_cut begun;
    struct watch_fds watched; /* its worker's */
    struct run_entry run;     /* not of this channel, but of the worker of this index */
};

/* What is known of the peer, from its QP information. */
struct qp_peer {
    struct fabric_peer_traits traits;
    uint8_t family; /* 4 or 6 */
    uint8_t address[16];
    uint16_t control_port;
    uint64_t receive_buffer_bytes;
    uint32_t token;
    uint32_t slots;
    uint64_t slot_bytes;
    uint8_t wants_feedback;
    uint8_t credits;
};

/* One message, or (outbox only) several that share a datagram, or a part of one. */
struct qp_upper_message {
    uint32_t bytes;         /* of the body */
    enum control_type type; /* CONTROL_UPPER, CONTROL_UPPERS, CONTROL_PART */
    uint8_t datagram[];     /* the body stands behind room for the header */
};

static inline uint8_t *qp_upper_body(struct qp_upper_message *message)
{
    return message->datagram + CONTROL_HEADER_BYTES;
}

/* A bounded queue of messages of the layer above. */
struct qp_upper_queue {
    struct ring ring; /* of struct qp_upper_message with CONTROL_MESSAGE_MAX bytes, or (since a longer one
                         came) upper_max; from the tail on: QP_MESSAGES_WAITING at most */
    uint32_t head;
    uint32_t tail;
};

struct sdr_qp {
    struct sdr_context *context;
    uint32_t place;     /* in the list of the context, under its gates */
    bool link_has_rate; /* the emulated link has, and pushes back */
    struct fabric_endpoint *endpoint;
    struct fabric *own_link; /* emulated for this QP alone, over the context's fabric; or NULL */
    struct lh_stats stats;
    struct message_shape shape;
    lh_time created_ns;
    bool send_enable;
    bool recv_enable;
    _Atomic bool connected;
    _Atomic int error; /* 0, or the negative lh_error that ended the QP */

    /* Everything from here to the channels. Programs may spin in calls that take it, so the control worker,
     * who brings what they wait for, goes first. */
    struct gate lock;
    struct qp_peer peer;
    bool encrypted;  /* its packets are; set before it is connected */
    bool translated; /* what qp_info_endpoint has of a peer behind NAT; set before it is connected */
    uint8_t seen_address[16];
    uint32_t token;
    struct message_table table;      /* slots open and close under lock and all gates */
    struct sdr_recv_handle *recvs;   /* one a slot, once there was a receive */
    struct qp_free_slot *free_slots; /* likewise, a ring: the slot that rested longest is used next */
    uint32_t free_head;
    uint32_t free_count;
    uint64_t posted_bytes;         /* of receives that are not completed */
    uint64_t receive_buffer_bytes; /* what may wait in this side's sockets; 0: no limit */
    struct cts_announcer announcer;
    struct cts_queue cts;
    _Atomic bool cts_waiting; /* the next send has its clear-to-send: read without the lock */
    struct qp_sends sends;
    struct path path;
    struct keepalive_member
        keepalive_member; /* of the way to the peer, which other QPs may have in common */
    bool punches; /* NAT before this side may map it to other ports, which only its own packets show */
    struct watch_fds control_watched; /* the control worker's */
    _Atomic bool proven; /* the peer is at the address of its blob (qp_path.h): read without the lock */
    struct qp_upper_queue outbox;
    struct qp_upper_queue inbox;
    struct idle idle;    /* of what takes memory */
    struct store *store; /* that it is taken from */
    bool bundles;        /* the peer reads several messages from one datagram */
    bool takes_parts;    /* and one from several */
    struct path_mtu path_mtu;
    _Atomic uint32_t pieces; /* that a data packet travels in; by path_mtu */
    uint64_t long_bytes; /* of messages of the layer above that a smaller packet would not have carried */
    lh_time
        probed_ns[PATH_MTU_LENGTHS]; /* when a probe of that length of the peer arrived last; 0: none did */
    uint32_t upper_max;              /* bytes of a message of the layer above, with its header */
    uint32_t parts_sent;             /* messages in parts */
    struct control_parts *parts;     /* of one that arrives; NULL: none did lately */
    uint32_t bundles_unannounced;    /* announcements to the peer still to send: this side bundles */
    bool pong_wanted;
    bool cts_ack_wanted;          /* a clear-to-send came: acknowledge */
    bool cts_refused;             /* clear-to-sends are due that the fabric did not take */
    bool report_refused;          /* likewise a report */
    _Atomic uint8_t full_arrived; /* a packet of the MTU did, since it was asked for: QP_FULL_… */
    bool closing;                 /* nothing but CLOSE is sent any more */
    uint32_t close_copies;        /* still to be sent */
    uint32_t close_reason;
    uint64_t packets_noted; /* rx_packets at the last path_on_traffic() */
    struct coalesce coalesce;
    _Atomic lh_time coalesce_ns;  /* of its workers; LH_TIME_NEVER: as long as they like */
    struct arrival_report report; /* to a peer whose controller wants feedback */
    lh_time dropped_ns;           /* when a report had more drops than the one before; 0: none had */
    uint64_t dropped_noted;       /* by the last report */
    lh_time report_newest_ns;     /* when the newest packet of the last one had arrived */
    struct credit_grant grant;    /* to a peer whose controller wants credits */
    void *grant_memory;
    uint64_t notifications_noted; /* rx_congestion_notifications at the peer's last report */

    pthread_mutex_t driver_lock; /* held while a step runs */
    sdr_driver_step *driver;
    void *driver_context;
    _Atomic bool driven; /* there is a driver */

    pthread_mutex_t pacer_lock;
    struct rate_control rate;
    struct rate_turn rate_turn; /* of the context's rate */
    struct congestion_choice congestion;
    bool default_congestion;      /* nobody chose it */
    uint64_t rate_bps;            /* told; 0: not */
    uint64_t rate_max_bps;        /* LH_RATE_NONE: no bound */
    uint64_t window_max_bytes;    /* in flight */
    uint64_t remembered_rate_bps; /* of sdr_qp_remember(); 0: nothing, or not of this path */
    lh_time remembered_rtt_ns;
    lh_time remembered_age_ns;
    lh_time learn_at_ns;         /* when what the controller knows of the path is noted for others next */
    void *rate_memory;           /* of the controller */
    uint64_t announced_pace_bps; /* to the fabric; the control worker's */
    lh_time pace_announced_ns;
    uint32_t waiting_channels; /* bit c: it has something to send, and only a report lets it out */
    _Atomic bool user_window;  /* the layer above has more, but for the user's window */
    _Atomic uint64_t pace_bps; /* told, or of the controller; 0: none: read without the lock */
    char *
        device_reason; /* DEVICE_REASON_MAX: why the fabric failed; set under that lock, once, before `error`
                          * says so; NULL: there was no memory for it */
    struct send_shape send_shape;
    uint64_t payload_posted; /* wraps; under lock */
    _Atomic uint64_t queued_bytes;
    _Atomic lh_time sends_left_ns; /* when some of them last left; set before they are subtracted */
    uint32_t channel_count;        /* at most the context's */
    struct qp_channel *channels;
};

/* For everyone but the control worker. */
static inline void qp_lock(struct sdr_qp *qp)
{
    gate_enter_round(&qp->lock);
}

static inline void qp_unlock(struct sdr_qp *qp)
{
    gate_leave(&qp->lock);
}

/* A packet as its sender and its receiver name it: generation, message and packet. */
static inline uint64_t qp_packet_key(const struct sdr_qp *qp, uint32_t immediate, uint8_t generation)
{
    return (uint64_t)generation << 32 | immediate >> qp->shape.split.fragment_bits;
}

/* The pace holds a channel back, and has not risen since. */
static inline bool qp_is_paced_until(const struct sdr_qp *qp, uint32_t channel, lh_time now)
{
    const struct qp_channel *own = &qp->channels[channel];
    uint64_t then_bps = atomic_load_explicit(&own->paced_bps, memory_order_relaxed);
    uint64_t now_bps = atomic_load_explicit(&qp->pace_bps, memory_order_relaxed);
    return atomic_load_explicit(&own->paced_until_ns, memory_order_relaxed) > now &&
           (now_bps == then_bps || (now_bps != 0 && now_bps <= then_bps + then_bps / 16));
}

/* After the controller decided, or the rate was told, under the pacer's lock. */
static inline void qp_note_pace(struct sdr_qp *qp)
{
    atomic_store_explicit(&qp->pace_bps, qp->rate.pacer.rate_bps, memory_order_relaxed);
}

/* Those that serve it: the first ones of the context. */
uint32_t qp_workers(const struct sdr_qp *qp);
/* The worker of a channel, or of FABRIC_CONTROL, serves this QP in its next round, and wakes: what a fabric
 * calls, with the QP as its context. From any thread, with any lock held. */
void qp_wake_channel(void *qp, uint32_t channel);
/* Likewise all workers; who makes progress himself goes on at once. */
void qp_wake_all(struct sdr_qp *qp);
/* Likewise, after the fabric's descriptors for the QP changed. */
void qp_watch_again(struct sdr_qp *qp);
/* Once it is connected: it is one of those that lead to its peer. */
void qp_join_keepalive_group(struct sdr_qp *qp);
/* It keeps the way to its peer open no longer: the next one does. Under the gate of the control worker. */
void qp_leave_keepalive_group(struct sdr_qp *qp);
struct sdr_qp *qp_of_keepalive_member(struct keepalive_member *member);
/* All gates of the QP, in ascending order. */
void qp_gates_enter(struct sdr_qp *qp);
void qp_gates_leave(struct sdr_qp *qp);
/* Whether the fabric failed, so that nothing may be asked of it any more. */
static inline bool qp_device_gone(struct sdr_qp *qp)
{
    return atomic_load(&qp->error) == -LH_EDEVICE;
}

/* It is closing or failed: nothing is announced any more. Under the lock. */
static inline bool qp_is_over(struct sdr_qp *qp)
{
    return atomic_load(&qp->error) || qp->closing;
}

/* Ends the QP with a negative lh_error; the first reason stays, but for -LH_EDEVICE, which outdoes all. */
void qp_fail(struct sdr_qp *qp, int error);
/* Why it failed: of the `error` that was read from it. */
const char *qp_error_reason(const struct sdr_qp *qp, int error);
/* -LH_ESTATE or the reason it failed when it cannot be used for traffic. */
int qp_usable(struct sdr_qp *qp);

/* Memory that a QP takes from the store of its context when it is used, and gives back when it was not for
 * STORE_IDLE_NS. All under the QP's lock; -LH_ENOMEM with the reason. */

/* Something is not in use any more. True: the driver is to be kicked, without the lock, for nothing else is
 * due that would look. */
bool qp_note_unused(struct sdr_qp *qp);
/* Places of a ring of the QP, as ring_hold(). */
bool qp_hold(struct sdr_qp *qp, struct ring *ring, uint32_t first, uint32_t count);
/* Handles of receives, and slots. */
int qp_hold_slots(struct sdr_qp *qp);
/* Bitmaps of one that is closed. */
int qp_hold_slot(struct sdr_qp *qp, uint32_t slot, uint64_t bytes);
/* A send that is not in use. -LH_EAGAIN: all are. */
int qp_hold_send(struct sdr_qp *qp, struct sdr_send_handle **send);
/* Places in the queues of all channels, and for that many packets among those in flight. -LH_EAGAIN: the
 * queues are full; also those that a lack of memory keeps short. Takes gates of channels. */
int qp_hold_ranges(struct sdr_qp *qp, uint32_t ranges, uint32_t packets);
/* What was not used for long is given back. Returns when it looks again. By the control worker. */
lh_time qp_memory_round(struct sdr_qp *qp, lh_time now);
/* All of it; nothing is in use. */
void qp_memory_free(struct sdr_qp *qp);

/* Whether a packet of the whole MTU has arrived since it was asked for by that one: QP_FULL_… */
bool qp_take_full(struct sdr_qp *qp, uint8_t who);

/* After the queue of clear-to-sends changed, under the lock. */
void qp_note_cts(struct sdr_qp *qp);

/* What of a QP uses memory of one key: receives that are not completed, and ranges of sends whose payload may
 * still be read. */
struct qp_memory_use {
    uint32_t receives;
    uint32_t sends;
};
/* Takes the QP's lock and the gates of its channels. */
struct qp_memory_use qp_memory_use(struct sdr_qp *qp, uint32_t lkey);

#endif
