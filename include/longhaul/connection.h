/*
 * connection.h - reliable messages between two endpoints: connect, send, recv, wait, close.
 *
 * The n-th lh_send of one side lands in the n-th lh_recv of the other. Messages may be of any size; many
 * may be in flight. The receiver chooses the reliability scheme. Calls on one connection may come from any
 * thread.
 *
 * Progress: a connection whose context has workers moves by itself. With workers = 0 the caller calls
 * lh_progress() (simulation does).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_CONNECTION_H
#define LONGHAUL_CONNECTION_H

#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/scheme.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_connection;
struct lh_listener;
struct lh_request;
struct lh_memory;

enum lh_notice {
    /* lh_connect: the peer serves another, and lets this side wait (or come again, where as many wait as it
     * hears); each second anew. text: its address.
     * True: wait on, the timeout counts from now; false: the timeout stays as it is. */
    LH_NOTICE_BUSY = 1,
    /* A listener: the handshake with a client failed. text: the client's address, and why. */
    LH_NOTICE_REFUSED = 2,
};

/* Zero means the default. lh_attr_init() sets what is not zero by default, so call it first. */
struct lh_attr {
    size_t struct_bytes; /* set by lh_attr_init: lets the struct grow */
    /* "udp:[::1]", "udp:127.0.0.1", "sim:world/0"; NULL: udp on the address that the TCP rendezvous uses
     * (lh_listen, lh_connect only) */
    const char *device;
    /* of what this side receives: "sr-nack" (default), "sr-rto,alpha=2", …; "auto": each message by what
     * suits its size and the path best, see lh_connection_scheme(3) */
    const char *reliability;
    const struct lh_scheme *scheme; /* a scheme of the caller's own, known to both sides; else NULL */
    struct lh_link_spec link;       /* emulated at this side's sending end; all zero: none */
    /* RoCE payload of a packet: 256 … 4096, power of two. Both sides must agree: over TCP the smaller one
     * wins. Default: over TCP the largest that fits the path; lh_open does not know the path, and takes
     * 4096 on loopback, else 1024 */
    uint32_t mtu_bytes;
    uint32_t chunk_bytes;          /* one bit of the bitmap; default one packet */
    uint64_t slot_bytes;           /* longest SDR message; longer messages are split; default 4 MiB */
    uint32_t slots;                /* SDR messages in flight, power of two up to 1024; default 64 */
    uint32_t channels;             /* default 1 */
    uint32_t generations;          /* default 4 */
    uint32_t workers;              /* threads; default 1, set LH_NO_WORKERS for none */
    const int *worker_cpus;        /* one CPU a worker, -1 for any; NULL: any */
    uint64_t window_bytes;         /* most payload in flight; default 64 MiB */
    uint64_t rate_bps;             /* pace of injection; 0: as fast as the fabric takes it */
    uint64_t receive_buffer_bytes; /* of the sockets; default 32 MiB */
    lh_time peer_timeout_ns; /* silence after which a peer counts as gone; default 10 s, at most a day */
    /* Threads that encode and decode, for schemes that do; they start when first needed. Default 1. With
     * LH_NO_CODERS, or without workers, who makes progress does it */
    uint32_t coders;
    /* What people may want to learn while connections are made (lh_listen, lh_connect); NULL: nobody asks.
     * A listener calls it from a thread of its own; it must not call that listener. What it returns counts
     * with LH_NOTICE_BUSY. */
    bool (*on_notice)(void *context, enum lh_notice notice, const char *text);
    void *notice_context;
};

#define LH_NO_WORKERS UINT32_MAX
#define LH_NO_CODERS  UINT32_MAX

LH_API void lh_attr_init(struct lh_attr *attr);
/* Whether attr.reliability may be this text: 0, or -LH_EINVAL and why not. */
LH_API int lh_reliability_check(const char *text);

/* ---- connecting: blobs by the caller's own means ----------------------------------------------------- */

/* An endpoint that is not connected yet. Errors: -LH_EINVAL, -LH_EDEVICE, -LH_EADDR, -LH_ENOMEM. */
LH_API int lh_open(const struct lh_attr *attr, struct lh_connection **connection);
/* The blob to bring to the other side. *bytes: in the room, out what was written. -LH_ERANGE when it is too
 * small (LH_BLOB_MAX always is enough). */
LH_API int lh_blob(struct lh_connection *connection, void *blob, size_t *bytes);
#define LH_BLOB_MAX 1536
/* -LH_EHANDSHAKE, -LH_EVERSION, -LH_EMTU. */
LH_API int lh_attach(struct lh_connection *connection, const void *blob, size_t bytes);

/* ---- connecting: over TCP ---------------------------------------------------------------------------- */

/* where: "HOST:PORT", "[::]:PORT", ":PORT"; port 0 takes any free one (lh_listener_port tells). */
LH_API int lh_listen(const char *where, const struct lh_attr *attr, struct lh_listener **listener);
LH_API uint16_t lh_listener_port(const struct lh_listener *listener);
/* The next connection, waiting at most timeout_ns (LH_TIME_NEVER: for ever); and up to 5 s more for a
 * handshake that is under way then. Foreign and hostile handshakes are refused and do not end the wait.
 * While nobody calls this, a thread of the listener tells those who wait that it is busy. -LH_ETIMEDOUT. */
LH_API int lh_accept(struct lh_listener *listener, lh_time timeout_ns, struct lh_connection **connection);
LH_API void lh_listener_close(struct lh_listener *listener);
/* where: "HOST:PORT". When attr->link is set, the other side emulates the same link in its direction. */
LH_API int lh_connect(const char *where, const struct lh_attr *attr, lh_time timeout_ns,
                      struct lh_connection **connection);
/* "[::1]:40000" of the other side, for people; valid as long as the connection. */
LH_API const char *lh_peer_name(const struct lh_connection *connection);

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Registered memory is faster on hardware; the buffers of a message may also be unregistered (NULL). */
LH_API int lh_register(struct lh_connection *connection, void *address, size_t bytes,
                       struct lh_memory **memory);
LH_API int lh_deregister(struct lh_memory *memory);

/* ---- messages ---------------------------------------------------------------------------------------- */

/* Both return at once. The buffer belongs to the library until the request is done. A request is freed with
 * lh_request_free(), also after an error. -LH_ECLOSED, -LH_EPEER, -LH_ENOMEM, -LH_EAGAIN (too many in
 * flight: LH_REQUESTS_MAX).
 *
 * A message may be shorter than the room of its receive. When a receive is done without error, the first
 * result.bytes bytes of the buffer are the message, and those behind it are as they were. Until then, and
 * after an error, the bytes that the message was to have (of a length that is not known yet: the whole room)
 * are unspecified: packets may be placed before they are validated. This holds against losses, strays and
 * hosts without a key; the peer itself may write anywhere in the room until the request is done. */
LH_API int lh_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                   struct lh_memory *memory, struct lh_request **request);
LH_API int lh_recv(struct lh_connection *connection, void *buffer, size_t room, struct lh_memory *memory,
                   struct lh_request **request);
#define LH_REQUESTS_MAX 4096

struct lh_result {
    int error;          /* 0, or a negative lh_error */
    uint64_t bytes;     /* of the message */
    lh_time started_ns; /* sender: first chunk injected; receiver: receive posted */
    lh_time ended_ns;   /* sender: last acknowledgement; receiver: handed over */
};

/* 1: done, and *result is set; 0: not yet. result may be NULL. */
LH_API int lh_test(struct lh_request *request, struct lh_result *result);
/* 0: done (look at result->error); -LH_ETIMEDOUT after timeout_ns, the request goes on. Needs workers. */
LH_API int lh_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result);
/* Ends a request early; it is then done with -LH_ECANCELED (or was done already). A canceled receive never
 * changes its buffer after this returns. Order is kept: the message takes its place in the sequence all the
 * same; the other side's request of it ends with -LH_ECANCELED too. A device may read the buffer of a
 * canceled send for a moment longer: see lh_send(3). */
LH_API int lh_cancel(struct lh_request *request);
LH_API void lh_request_free(struct lh_request *request); /* cancels when it is not done; NULL is allowed */

/* ---- the rest ---------------------------------------------------------------------------------------- */

/* Does what is due now, for a connection without workers; *next_ns: when to call again at the latest. */
LH_API int lh_progress(struct lh_connection *connection, lh_time *next_ns);
LH_API lh_time lh_now(struct lh_connection *connection); /* the clock of its fabric */
LH_API int lh_connection_stats(struct lh_connection *connection, struct lh_stats *stats);
LH_API int lh_connection_path(struct lh_connection *connection, struct lh_path_view *path);
/* What was agreed: mtu, chunk, slots and so on, as set or chosen. */
LH_API int lh_connection_attr(struct lh_connection *connection, struct lh_attr *attr);

/* By which scheme this side receives, and why. Times in s are what the model (longhaul/model.h) expects of a
 * message of message_bytes; 0: not known. */
struct lh_scheme_report {
    bool automatic;   /* "auto" chose; all that follows is 0 else, but for scheme and rtt_ns */
    char scheme[128]; /* of the newest message, as lh_attr.reliability takes it */
    char other[96]; /* the best that repairs the other way, by repeats or by parity; "": none is possible */
    uint64_t message_bytes; /* room of the newest message */
    double expected_s;
    double other_expected_s;
    lh_time rtt_ns;
    double rate_bps;           /* payload, as it arrives */
    double chunk_loss;         /* share of the chunks that was lost, newer ones counting more */
    double chunk_loss_planned; /* what it well may be: plans are made for that */
    double run_chunks;         /* mean length of a row of lost chunks */
    uint64_t chunks_seen;      /* ever: that arrived or were lost when they were first sent */
    uint64_t chunks_lost;
    uint64_t plans;   /* times that all schemes were weighed for messages of a size */
    uint64_t changes; /* of those, times that they got another scheme than before */
};
LH_API int lh_connection_scheme(struct lh_connection *connection, struct lh_scheme_report *report);

/* Bytes that lh_scheme_report_words needs at most, with the final zero. */
#define LH_SCHEME_WORDS_MAX 512
/* The report in a line, into out; returns out. Cuts at size. */
LH_API char *lh_scheme_report_words(const struct lh_scheme_report *report, char *out, size_t size);

/* 0, or why the connection ended: -LH_EPEER, -LH_ECLOSED, -LH_EPROTOCOL. */
LH_API int lh_connection_error(struct lh_connection *connection);
/* A warning that operators should read (say, a socket buffer smaller than asked), or NULL. */
LH_API const char *lh_connection_warning(struct lh_connection *connection);
/* Tells the peer, ends what is in flight with -LH_ECLOSED, frees everything but the requests. */
LH_API void lh_close(struct lh_connection *connection);

#ifdef __cplusplus
}
#endif
#endif
