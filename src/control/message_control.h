/*
 * message_control.h - control of a connection: effects of its parts, keepalive, timing, aborts, messages of
 * machines.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONTROL_MESSAGE_CONTROL_H
#define LH_CONTROL_MESSAGE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/connection.h>
#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>

#include "store/store.h"
#include "wire/control_messages.h"

/* False when the queue is full: the message is lost then, as the network may lose it. */
bool control_tx_send(struct sdr_qp *qp, const struct transfer_message *message);
/* REFUSE, CANCEL (error: a positive lh_error, or 0) and FORGET. */
bool control_tx_abort(struct sdr_qp *qp, enum transfer_kind kind, uint32_t number, int error);
/* Bytes of a receiver's machine. */
void control_tx_to_sender(struct sdr_qp *qp, uint32_t segment, const uint8_t *data, uint32_t bytes);

/* ---- effects --------------------------------------------------------------------------------------- */

/*
 * What a part (sending, receiving) wants its engine to do. The part appends; the engine carries
 * it out when the part's call has returned, and clears it.
 */

#define MESSAGES_MAX ((uint32_t)LH_REQUESTS_MAX) /* not over yet, in each direction; a power of two */
#define REASON_MAX   256u

/* What came of a message with a deadline, when something is missing. */
struct message_delivery {
    enum lh_end end;
    uint32_t packet_bytes;
    uint64_t *arrived; /* a bit a packet of the message; NULL: nothing came, or nothing is missing */
};

/* What a part knows of a request. */
struct message_request {
    struct lh_result result;
    struct message_delivery delivery; /* its memory is the request's: freed with it */
    struct message_request *next;     /* once it is done; or while it is free */
    bool own;                         /* of the library itself: it is no lh_request */
};

struct effects {
    struct message_request *finished; /* the first request that is done; or NULL */
    struct message_request *last;     /* of those */
    int failure;  /* 0, or the positive lh_error that ends the connection; the part does nothing more */
    char *reason; /* REASON_MAX, from the store, by whose owner it is given back; or NULL */
    struct store *store;
};

void effects_finish(struct effects *effects, struct message_request *request, int error, uint64_t bytes,
                    lh_time now);
/* The text of the failure. */
const char *effects_reason(const struct effects *effects);
/* The first failure stays. */
void effects_fail(struct effects *effects, enum lh_error error, const char *reason);

/* ---- keepalive ------------------------------------------------------------------------------------- */

/*
 * Is the peer there? Its orderly close, its silence, the end of its process.
 *
 * Timers:
 *   silent_at    attr.peer_timeout_ns without a packet of the peer while something is pending
 *   closed_at    half a round trip after the peer closed by packets (and 10 ms where a control connection may
 *                bring a reason): what it acknowledged before may still be in flight
 */

#define KEEPALIVE_REASON_MAX 256u

#define CONTROL_CONNECTION_LOST 1

/* The peer's process seen another way than by its packets (src/launch: the TCP socket of the rendezvous).
 */
struct control_connection_ops {
    /* 0: it lives; -LH_ECLOSED: it closed, and its last message (*bytes of it, 0: none) is in `last`,
     * which holds TRANSFER_BYTES_MAX; -LH_EPATH: it refused, and `last` has *bytes of its reason, printable;
     * -LH_EPEER: it died; CONTROL_CONNECTION_LOST: nothing is known of it any more. Cheap; never
     * blocks. The connection is stepped when it changes. */
    int (*look)(void *control_connection, uint8_t *last, size_t *bytes);
    /* Signals the peer why this side ends the connection; its look() gives -LH_EPATH then. */
    void (*refuse)(void *control_connection, const char *reason);
    /* Closes with a last message, and frees the control connection. */
    void (*close)(void *control_connection, const uint8_t *last, size_t bytes);
};

struct keepalive {
    struct sdr_qp *qp;
    lh_time timeout_ns;
    lh_time
        since_ns; /* silence counts from here at the earliest: nothing was pending, or nobody listened */
    lh_time stepped_ns; /* the last step */
    bool waits;         /* in the last step, as the next: an answer of the peer was waited for */
    bool listens;       /* and no other queue pair asks for this one */
    lh_time silent_at;
    lh_time closed_at;                                           /* 0: the peer did not close */
    const struct control_connection_ops *control_connection_ops; /* or NULL */
    void *control_connection;
    bool lost; /* by the control connection: the peer's packets alone show that it lives */
};

/* What the connection knows. */
struct keepalive_view {
    bool pending;    /* an answer of the peer is waited for */
    bool sends_open; /* messages to send are not over */
    lh_time rtt_ns;
};

/* The peer is gone. */
struct keepalive_end {
    enum lh_error error;
    char reason[KEEPALIVE_REASON_MAX];
    size_t last_bytes; /* of its last message, which counts before the error does; 0: none */
    uint8_t last[TRANSFER_BYTES_MAX];
};

/* timeout_ns: attr.peer_timeout_ns. Sets how often a silent peer is pinged. */
void keepalive_start(struct keepalive *keepalive, struct sdr_qp *qp, lh_time timeout_ns, lh_time now);
/* True when the peer is gone: *end says how. Else lowers *next. Cheap: called in each step. */
bool keepalive_step(struct keepalive *keepalive, const struct keepalive_view *view, lh_time now,
                    lh_time *next, struct keepalive_end *end);

/* ---- machine --------------------------------------------------------------------------------------- */

/* Memory for the state of a scheme's machine, as large as its transfer needs. */

#define MACHINE_BYTES_MIN 256u

/* At least that many bytes, aligned to 64; what is large enough already stays. False: no memory. */
static inline bool machine_hold(void **machine, uint32_t *has, struct store *store, size_t bytes)
{
    if (bytes <= *has)
        return true;
    size_t rounded = MACHINE_BYTES_MIN;
    while (rounded < bytes) /* at most 32 times */
        rounded *= 2;
    void *taken = store_take_aligned(store, rounded);
    if (!taken)
        return false;
    store_give(store, *machine, *has);
    *machine = taken;
    *has = (uint32_t)rounded;
    return true;
}

/* ---- number ---------------------------------------------------------------------------------------- */

/* Message and segment numbers: they count up from 0 and wrap. */

/* Of two numbers that are less than half the range apart. */
static inline bool number_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* ---- timing ---------------------------------------------------------------------------------------- */

/* When an unanswered message is sent again, and the path as scheme machines see it. Pure. */

/* The interval after which an unanswered message is sent again, after that many retransmissions: an overdue
 * round trip, doubling. */
lh_time timing_refresh_interval(const struct lh_sdr_path *path, uint32_t retransmissions);
struct lh_path_view timing_path_view(const struct lh_sdr_path *path);

/* ---- abort ----------------------------------------------------------------------------------------- */

/*
 * The notice that a message ended early: CANCEL by the sender, REFUSE by the receiver.
 *
 * Timers:
 *   refresh_at   the notice is sent again after an overdue round trip, doubling, until the peer answers; one
 *                that found the queue full, after an eighth of that
 */

struct abort_notice {
    int error; /* why: a positive lh_error */
    lh_time refresh_at;
    uint32_t sent; /* times */
};

/* The error as a user may see it: a scheme's own or a peer's code must not be taken for success, and users
 * know what lh_strerror() knows. */
int abort_error(int error);
/* Sends the notice of message `number` now, and sets refresh_at. */
void abort_send(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind, uint32_t number,
                const struct lh_sdr_path *path, lh_time now);
/* Sends it again when refresh_at has passed; lowers *next. */
void abort_on_refresh_expired(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind,
                              uint32_t number, const struct lh_sdr_path *path, lh_time now, lh_time *next);

#endif
