/*
 * connection.h - reliable messages between two endpoints: connect, send, recv, wait, close.
 *
 * The n-th lh_send of one side fills the n-th lh_recv of its peer; with lh_attr.match_tags receives choose
 * messages by tag. Messages may have any size; many may be in flight. The receiver chooses the reliability
 * scheme. Any thread may call.
 *
 * Small messages are sent at once, even before their receives are posted. The receiver buffers 64 KiB of
 * them; then the sender waits. Longer messages are sent when their receives are posted. A message is small up
 * to 4096 bytes; with lh_attr.mtu_bytes below 1024, up to the MTU less 128 bytes. With a peer whose release
 * lacks them, no message is small.
 *
 * Progress: a connection's workers make it. Without workers (LH_NO_WORKERS) the caller calls lh_progress(),
 * as the simulation does.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_CONNECTION_H
#define LONGHAUL_CONNECTION_H

#include <longhaul/congestion.h>
#include <longhaul/error.h>
#include <longhaul/link.h>
#include <longhaul/scheme.h>
#include <longhaul/stats.h>
#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lh_connection;
struct lh_engine;
struct lh_listener;
struct lh_request;
struct lh_memory;
struct lh_completion_queue;

enum lh_notice {
    /* lh_connect: the peer is busy with another client, so this side waits (or reconnects, if the peer's
     * queue is full). Repeated each second. text: the peer's address. Return true to restart the timeout,
     * false to keep it. */
    LH_NOTICE_BUSY = 1,
    /* Listener: the handshake with a client failed. text: the client's address and the reason. */
    LH_NOTICE_REFUSED = 2,
};

enum lh_encryption {
    LH_ENCRYPTION_FULL = 0, /* all: the rendezvous, and all packets of data and control messages */
    /* the rendezvous alone: where the network encrypts (IPsec, MACsec), or the device cannot (verbs) */
    LH_ENCRYPTION_AUTH = 1,
    LH_ENCRYPTION_OFF = 2, /* nothing, as without a key: neither file nor code is used */
};

/* With a key, lh_listen and lh_connect run the rendezvous and the control connection under TLS 1.3: neither
 * side connects to a peer without the key, and what both exchange there (addresses, keys, tokens, reasons) is
 * encrypted. So are all packets, in the format of PSP with AES-256-GCM, with keys of this connection alone,
 * unless `encryption` is another on both sides. If it differs, they do not connect: nothing falls back. */
struct lh_security {
    size_t struct_bytes; /* set by lh_security_init, so that the struct can grow */
    /* 32 random bytes, as 64 hexadecimal digits or in base64; for this user only (mode 0600) */
    const char *key_file;
    enum lh_encryption encryption;
    /* Without encryption of the rendezvous peers on other hosts are refused, with a reason on both sides, and
     * the connecting side sends nothing. On this host are those with a loopback address, or with the same
     * address as this side */
    bool loopback_only;
    /* In place of the file: a text of lh_key_code(), for one connection. A listener refuses all clients after
     * the first that has it. */
    const char *code;
    /* In place of the file: a text of at least 16 characters, which should be random. */
    const char *secret;
};

/* Zero means the default. Call lh_attr_init() first: it sets the defaults that are not zero. */
struct lh_attr {
    size_t struct_bytes; /* set by lh_attr_init, so that the struct can grow */
    /* "udp:[::1]", "xdp:eth0", "sim:world/0"; NULL: udp on the address that the TCP rendezvous uses
     * (lh_listen, lh_connect only) */
    const char *device;
    /* Scheme of this side's receives: "sr-nack", "sr-rto,alpha=2", …; "auto": the best one for each message's
     * size and the path, see lh_connection_scheme(3). Default: `scheme`, else "auto" */
    const char *reliability;
    const struct lh_scheme *scheme; /* the caller's own scheme, known to both sides; else NULL */
    struct lh_link_spec link;       /* emulated for this side's packets; all zero: none */
    /* RoCE payload of a packet: a multiple of 64, 256 … 8896; with RDMA devices and peers of older releases a
     * power of two up to 4096. Both sides must agree: over TCP they use the smaller value. Default: over TCP
     * the largest that fits the path, the chunk and the slot; with lh_open, which does not know the path,
     * 4096 on loopback, else 1024 */
    uint32_t mtu_bytes;
    /* Bytes per bit of the bitmap, rounded down to a power of two of packets; default one packet */
    uint32_t chunk_bytes;
    /* Longest SDR message, rounded down to whole chunks; longer messages are split; default 4 MiB */
    uint64_t slot_bytes;
    uint32_t slots;                /* SDR messages in flight, power of two up to 1024; default 64 */
    uint32_t channels;             /* default 1 */
    uint32_t generations;          /* default 4 */
    uint32_t workers;              /* threads; default 1, set LH_NO_WORKERS for none */
    const int *worker_cpus;        /* one CPU per worker, -1 for any; NULL: any */
    uint64_t window_bytes;         /* maximum payload in flight; default 64 MiB */
    uint64_t rate_bps;             /* the path's rate, and the pace of injection with "fixed"; 0: unknown */
    uint64_t receive_buffer_bytes; /* of the sockets; default 32 MiB */
    lh_time peer_timeout_ns; /* silence after which the peer counts as dead; default 10 s, at most a day */
    /* Threads for erasure codes, started when first needed; default 1. With LH_NO_CODERS, or without workers,
     * the thread that makes progress encodes and decodes */
    uint32_t coders;
    /* Called with notices for users during lh_listen and lh_connect; may be NULL. A listener calls it from
     * the listener's thread; it must not call that listener. The return value matters for LH_NOTICE_BUSY
     * only. */
    bool (*on_notice)(void *context, enum lh_notice notice, const char *text);
    void *notice_context;
    /* Congestion controller of this side's sends, "bbr": see lh_congestions(3). NULL: "fixed" if rate_bps or
     * the rate of `link` is set, or if the fabric has backpressure (verbs, sim); else "bbr" */
    const char *congestion;
    uint64_t rate_max_bps; /* limit of the controller's rate; 0: none */
    /* A file of measured paths, from which later connections over the same path start; see lh_attr_init(3).
     * Copied. NULL: none. */
    const char *path_file;
    /* Shared with other connections: see longhaul/engine.h. NULL: one of its own. */
    struct lh_engine *engine;
    /* Maximum time that an idle worker spins before it sleeps; it spins only while recent pauses were short.
     * Default 50 us, none on a single processor; at most 1 s; LH_NO_SPIN: none. lh_wait() and
     * lh_queue_wait() spin only if this is set. */
    lh_time spin_ns;
    /* This side's receives choose messages by tag: see lh_message. If the peer's release does not support
     * tags, lh_attach() and lh_connect() fail with -LH_EVERSION. */
    bool match_tags;
    /* With a deadline (reliability "bounded:deadline=…"), missing bytes of a message are set to 0 before its
     * receive is done. If false, the buffer keeps its former contents there. */
    bool zero_missing;
    /* A key that both sides, or all ranks of a group, must have. Read during the call. lh_open has no
     * rendezvous: it takes LH_ENCRYPTION_FULL and _OFF, and no code. NULL: none, all is in clear text, for
     * any host (lh_group_create_env: the launcher's). */
    const struct lh_security *security;
};

#define LH_NO_WORKERS UINT32_MAX
#define LH_NO_CODERS  UINT32_MAX

LH_API void lh_attr_init(struct lh_attr *attr);
LH_API void lh_security_init(struct lh_security *security);
/* Makes a key file: 32 random bytes, for this user only. -LH_EINVAL: there is a file already, which stays;
 * -LH_ESYSTEM. */
LH_API int lh_key_create(const char *file);
/* Names the key in a file: 32 hexadecimal digits, which tell nothing else of it. The same for the same key in
 * any file. -LH_EINVAL: no key, or other users may use the file; -LH_ESYSTEM. */
#define LH_KEY_FINGERPRINT_MAX 33
LH_API int lh_key_fingerprint(const char *file, char fingerprint[LH_KEY_FINGERPRINT_MAX]);
/* Makes a code for lh_security.code, of 96 random bits: six words of five letters, "lusab-babad-…", for
 * people to copy from one side to the other. -LH_ESYSTEM. */
#define LH_KEY_CODE_MAX 36
LH_API int lh_key_code(char code[LH_KEY_CODE_MAX]);
/* Validates a text for attr.reliability. -LH_EINVAL, with the reason. */
LH_API int lh_reliability_check(const char *text);

/* ---- connecting: blobs exchanged by the caller ------------------------------------------------------- */

/* Opens an endpoint that is not connected yet. -LH_EINVAL, -LH_EDEVICE, -LH_EADDR, -LH_ENOMEM,
 * -LH_EUNSUPPORTED: the device does not encrypt. */
LH_API int lh_open(const struct lh_attr *attr, struct lh_connection **connection);
/* Writes this side's blob, for the peer; with attr->security each call writes the same, and it is for one
 * peer. *bytes: in: size of the buffer; out: bytes written. -LH_ERANGE: the buffer is too small (LH_BLOB_MAX
 * always suffices). */
LH_API int lh_blob(struct lh_connection *connection, void *blob, size_t *bytes);
#define LH_BLOB_MAX 1536
/* Connects to the peer of a blob. -LH_EHANDSHAKE (also: it has another key, or none, or is on another host,
 * which attr->security->loopback_only refuses), -LH_EVERSION, -LH_EMTU. */
LH_API int lh_attach(struct lh_connection *connection, const void *blob, size_t bytes);

/* ---- connecting: over TCP ---------------------------------------------------------------------------- */

/* Listens. where: "HOST:PORT", "[::]:PORT", ":PORT"; port 0: any free one (see lh_listener_port).
 * -LH_EUNSUPPORTED, as lh_connect(): attr->security asks for encryption that the device does not have. */
LH_API int lh_listen(const char *where, const struct lh_attr *attr, struct lh_listener **listener);
LH_API uint16_t lh_listener_port(const struct lh_listener *listener);
/* Accepts the next connection. Waits at most timeout_ns (LH_TIME_NEVER: without limit), and up to 5 s longer
 * for a handshake in progress. Invalid handshakes are refused and do not end the wait. Between calls, the
 * listener's thread answers "busy" to waiting clients. -LH_ETIMEDOUT. -LH_ECLOSED: attr->security had a code,
 * which a connection has used. */
LH_API int lh_accept(struct lh_listener *listener, lh_time timeout_ns, struct lh_connection **connection);
LH_API void lh_listener_close(struct lh_listener *listener);
/* Connects. where: "HOST:PORT". With attr->link, the peer emulates the same link in its direction. */
LH_API int lh_connect(const char *where, const struct lh_attr *attr, lh_time timeout_ns,
                      struct lh_connection **connection);
/* Returns the peer's address for display, "[::1]:40000"; valid as long as the connection. */
LH_API const char *lh_peer_name(const struct lh_connection *connection);

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Registers memory: optional, but faster on hardware (otherwise pass memory = NULL to lh_send and lh_recv).
 * All connections of the engine can use the registration. It ends with lh_deregister() or with the engine. */
LH_API int lh_register(struct lh_connection *connection, void *address, size_t bytes,
                       struct lh_memory **memory);
LH_API int lh_deregister(struct lh_memory *memory);

/* ---- messages ---------------------------------------------------------------------------------------- */

/* Start sending or receiving a message; both return at once. The buffer belongs to the library until the
 * request is done. Free the request with lh_request_free(), also after an error. -LH_ECLOSED, -LH_EPEER,
 * -LH_ENOMEM; -LH_EAGAIN: LH_REQUESTS_MAX requests are pending.
 *
 * A message may be shorter than the capacity of its receive. When a receive is done without error, the first
 * result.bytes bytes of the buffer are the message; later bytes are unchanged. Before that, and after an
 * error, the message's bytes (before its length is known: the whole buffer) are unspecified, since packets
 * may be placed before they are validated. These guarantees hold against losses, stray packets and hosts
 * without a key. The peer itself may write anywhere in the buffer until the request is done. */
LH_API int lh_send(struct lh_connection *connection, const void *buffer, size_t bytes,
                   struct lh_memory *memory, struct lh_request **request);
LH_API int lh_recv(struct lh_connection *connection, void *buffer, size_t capacity,
                   struct lh_memory *memory, struct lh_request **request);
#define LH_REQUESTS_MAX 4096

/* A part of a send's or a receive's memory. */
struct lh_part {
    void *address; /* a send only reads it; may be NULL if bytes is 0 */
    size_t bytes;
    struct lh_memory
        *memory; /* a registration that covers the part; NULL: registered for this message only */
};
#define LH_PARTS_MAX 16

/* Zero means none. The library reads the struct and its array of parts only during the call; the memory of
 * the parts belongs to the library until the request is done. */
struct lh_message {
    const struct lh_part *parts; /* concatenated: the bytes of the message, or its buffer */
    uint32_t count; /* of parts: 0 to LH_PARTS_MAX; 0, or only parts of 0 bytes: an empty message */
    uint64_t tag;   /* send: reported to the receiver in lh_result.tag; recv: the tag to match, see below */
    uint64_t ignore;                   /* recv: bits of the tag that need not match; send: 0 */
    struct lh_completion_queue *queue; /* gets an entry when the request is done: longhaul/queue.h */
    uint64_t user;                     /* of that entry */
};

/* With lh_attr.match_tags, a receive matches messages whose tag equals its own in all bits outside `ignore`:
 * with 0 this tag only, with UINT64_MAX any tag. lh_recv() and lh_post_recv() match any tag. A message
 * without a tag has tag 0. Without match_tags receives have tag 0, and ignore 0 or UINT64_MAX.
 *
 * Order: messages are matched in the order of their sends. A message takes the first posted receive that
 * matches, or waits; a receive takes the first waiting message that matches, or waits. So messages and
 * receives of one tag match in order. Requests may complete in any order.
 *
 * Group: to wait for several tags, post a receive for each, in any order, and wait for all; each has its own
 * result.
 *
 * Too long: if a message exceeds its receive, both end with -LH_ETRUNCATED. No other receive gets the
 * message.
 *
 * Cancel: a canceled receive that waits ends alone. If it has a message, the send ends with -LH_ECANCELED,
 * too. A canceled send that has a receive, or gets one before the receiver learns of the cancellation, ends
 * that receive with -LH_ECANCELED; otherwise it ends alone.
 *
 * Waiting messages: a small message without a receive takes a multiple of 128 bytes of the receiver's memory;
 * a longer one stays with the sender and takes 128 bytes. The limit is 64 KiB: then the next message, and all
 * later ones, wait until a buffered message gets a receive. Nothing is dropped. Below the limit, later
 * messages pass waiting ones. Behind an unfinished message, at most LH_REQUESTS_MAX - 1 later ones are sent:
 * further sends fail with -LH_EAGAIN. Waiting receives delay nothing.
 *
 * Cost: a message that is not small is announced first, and sent when its receive is known. This takes
 * a round trip more than without match_tags and with a receive posted ahead. */

/* Start sending or receiving a message with several parts, a tag or a completion queue; otherwise as
 * lh_send() and lh_recv(). Both sides may divide a message differently. The first result.bytes bytes of a
 * receive's parts, in order, are the message; memory outside the parts does not change. Parts of one receive
 * must not overlap. request: may be NULL with a queue. Further errors: -LH_EINVAL: more than LH_PARTS_MAX
 * parts, a part without an address, a total length that is too long, a receive with a tag without match_tags,
 * a queue of another engine; -LH_EVERSION: a tag, but the peer's release does not support tags.
 *
 * Cost: a send copies messages of up to 16 KiB in several parts. Of longer messages it copies chunks that
 * span parts, and chunks of parts below 16 KiB; with an erasure code also segments (of up to
 * lh_attr.slot_bytes) that span parts. A receive copies segments that span parts. */
LH_API int lh_sendmsg(struct lh_connection *connection, const struct lh_message *message,
                      struct lh_request **request);
LH_API int lh_recvmsg(struct lh_connection *connection, const struct lh_message *message,
                      struct lh_request **request);

struct lh_result {
    int error;              /* 0, or a negative lh_error */
    uint64_t bytes;         /* of the message */
    lh_time started_ns;     /* sender: first chunk injected; receiver: receive posted */
    lh_time ended_ns;       /* sender: last acknowledgement; receiver: delivered */
    uint64_t tag;           /* of the message, set by its sender; 0: none, or unknown */
    uint64_t missing_bytes; /* part of `bytes` that did not arrive by the deadline: lh_delivery(); else 0 */
};

/* Tests a request. 1: done, and *result is set; 0: pending. result may be NULL. */
LH_API int lh_test(struct lh_request *request, struct lh_result *result);
/* Waits for a request; needs workers. 0: done (see result->error); -LH_ETIMEDOUT after timeout_ns, the
 * request stays pending. */
LH_API int lh_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result);
/* Why the receive of a message with a deadline ended (reliability "bounded:deadline=…"; lh_delivery(3)). The
 * deadline counts from the time at which the receive is the first pending one: it is posted, and all earlier
 * receives with deadlines are done. Small messages and receives have none. */
enum lh_end {
    LH_END_WHOLE = 0, /* all of it arrived */
    LH_END_LAST = 1,  /* its last packet, or the notice that nothing follows, arrived; the rest is lost */
    LH_END_PREEMPTED = 2, /* the next message has begun to arrive */
    LH_END_DEADLINE = 3,  /* the deadline passed, or the peer closed the connection */
};

#define LH_MISSING_INLINE 4

struct lh_delivery {
    enum lh_end end;
    uint64_t arrived_bytes; /* or recovered by parity */
    uint64_t missing_bytes;
    uint64_t missing_ranges;                    /* number of ranges */
    struct lh_range missing[LH_MISSING_INLINE]; /* the first of them; further ones: lh_missing() */
};

/* Gets which bytes of a message arrived, after its receive is done without error. If neither an announcement
 * nor a short last packet has shown the length, the message counts as long as the buffer. -LH_ESTATE: the
 * request is pending, is a send, or has failed. */
LH_API int lh_delivery(struct lh_request *request, struct lh_delivery *delivery);
/* Gets up to `count` missing ranges, from range number `first` on, sorted by offset, never adjacent. Returns
 * their number; 0: no further range. They are kept until lh_request_free(). -LH_ESTATE: as lh_delivery(). */
LH_API int64_t lh_missing(struct lh_request *request, uint64_t first, struct lh_range *ranges,
                          uint64_t count);
/* Cancels a request: it ends with -LH_ECANCELED, unless it was done. After the call returns, a canceled
 * receive does not change its buffer. The message keeps its place in the sequence; the peer's request ends
 * with -LH_ECANCELED, too. A device may read the buffer of a canceled send for a short time afterwards: see
 * lh_send(3). */
LH_API int lh_cancel(struct lh_request *request);
LH_API void lh_request_free(struct lh_request *request); /* cancels a pending request; NULL is allowed */

/* ---- progress, state, closing ------------------------------------------------------------------------ */

/* Makes progress on a connection without workers, and on all others of its engine. *next_ns: latest time of
 * the next call. */
LH_API int lh_progress(struct lh_connection *connection, lh_time *next_ns);
LH_API lh_time lh_now(struct lh_connection *connection); /* the fabric's clock */
LH_API int lh_connection_stats(struct lh_connection *connection, struct lh_stats *stats);
LH_API int lh_connection_path(struct lh_connection *connection, struct lh_path_view *path);
/* Gets the congestion control of this side's sends, and the time per limit. */
LH_API int lh_connection_congestion(struct lh_connection *connection, struct lh_congestion_report *report);
/* Gets the negotiated attributes: mtu, chunk, slots and so on. */
LH_API int lh_connection_attr(struct lh_connection *connection, struct lh_attr *attr);

/* The scheme of this side's receives, and the reason. Times in s are predicted by the model
 * (longhaul/model.h) for a message of message_bytes; 0: unknown. */
struct lh_scheme_report {
    bool automatic;         /* chosen by "auto"; else all other members are 0, except scheme and rtt_ns */
    char scheme[128];       /* scheme of the newest message, as in lh_attr.reliability */
    char other[96];         /* the best alternative of the other kind, retransmission or parity; "": none */
    uint64_t message_bytes; /* buffer size of the newest message */
    double expected_s;
    double other_expected_s;
    lh_time rtt_ns;
    double rate_bps;           /* of arriving payload */
    double chunk_loss;         /* share of lost chunks, weighted towards recent ones */
    double chunk_loss_planned; /* upper estimate, used for plans */
    double run_chunks;         /* mean burst length, in chunks */
    uint64_t chunks_seen;      /* total: arrived, or lost in their first transmission */
    uint64_t chunks_lost;
    uint64_t plans;   /* comparisons of all schemes, each for one message size */
    uint64_t changes; /* comparisons that changed the scheme */
};
/* Gets the report. */
LH_API int lh_connection_scheme(struct lh_connection *connection, struct lh_scheme_report *report);

/* Buffer size that suffices for lh_scheme_report_words, with the final zero. */
#define LH_SCHEME_WORDS_MAX 512
/* Formats the report as one line, into out[size]; returns out. Truncates at size. */
LH_API char *lh_scheme_report_words(const struct lh_scheme_report *report, char *out, size_t size);

/* X(constant, name, meaning): the bottlenecks of a sender. */
#define LH_BOTTLENECKS(X)                                                                                  \
    X(NONE, "none", "nothing was sent, or nothing is known")                                               \
    X(APPLICATION, "application", "nothing to send: messages are too few or too small for the path")       \
    X(RATE, "rate", "the rate that was given, or that of an emulated link")                                \
    X(PATH, "path", "the path's queue, as the congestion controller sees it")                              \
    X(LOSS, "loss", "more is lost than the reliability scheme takes well")                                 \
    X(COMPETITION, "competition", "a competing load, or a path that became slower")                        \
    X(WINDOW, "window", "lh_attr.window_bytes")                                                            \
    X(SLOTS, "slots", "lh_attr.slots times slot_bytes")                                                    \
    X(RECEIVER, "receiver", "the receiver reads too slowly, or posts its receives late")                   \
    X(HOST, "host", "this host's CPU or network device")

enum lh_bottleneck {
#define LH_BOTTLENECK_CONSTANT(constant, name, meaning) LH_BOTTLENECK_##constant,
    LH_BOTTLENECKS(LH_BOTTLENECK_CONSTANT)
#undef LH_BOTTLENECK_CONSTANT
};

/* The limit of this side's sends since the first one, with the measurements: lh_connection_bottleneck(3). */
struct lh_bottleneck_report {
    enum lh_bottleneck bottleneck;
    double share;              /* share of the time, 0 to 1 */
    uint64_t rate_bps;         /* given, or found by the controller; 0: unknown */
    uint64_t rate_best_bps;    /* highest found, or remembered (lh_attr.path_file); 0: unknown */
    lh_time rtt_ns;            /* the shortest */
    lh_time queueing_ns;       /* smoothed, above rtt_ns */
    uint64_t window_bytes;     /* lh_attr.window_bytes */
    uint32_t slots;            /* lh_attr.slots */
    uint64_t slot_bytes;       /* lh_attr.slot_bytes */
    double retransmitted;      /* share of the bytes, 0 to 1 */
    uint64_t receiver_drops;   /* packets dropped by the receiver's sockets, as reported */
    bool coded;                /* parity was sent */
    bool device;               /* LH_BOTTLENECK_HOST: the network device, not the CPU */
    bool emulated;             /* LH_BOTTLENECK_RATE: of an emulated link */
    uint64_t policed_rate_bps; /* of a policer on the path, which drops what exceeds it; 0: none found */
    bool processor_left;       /* LH_BOTTLENECK_HOST: of this process, beside its workers and caller */
};
LH_API int lh_connection_bottleneck(struct lh_connection *connection, struct lh_bottleneck_report *report);
/* Returns the name in LH_BOTTLENECKS, "path": a literal. */
LH_API const char *lh_bottleneck_name(enum lh_bottleneck bottleneck);
/* Buffer size that suffices for lh_bottleneck_words, with the final zero. */
#define LH_BOTTLENECK_WORDS_MAX 192
/* Formats cause and remedy, into out[size]; returns out: "the path's queue (1.98Gbit/s, …)". Truncates at
 * size. */
LH_API char *lh_bottleneck_words(const struct lh_bottleneck_report *report, char *out, size_t size);

/* Returns 0, or the error that ended the connection: -LH_EPEER, -LH_ECLOSED, -LH_EPROTOCOL. */
LH_API int lh_connection_error(struct lh_connection *connection);
/* Returns a warning for operators, with the remedy, or NULL. Causes: a socket buffer is smaller than
 * requested; after sending, the window is smaller than the given rate times the round trip, or the path MTU
 * is smaller than the packets. Valid until the next call. */
LH_API const char *lh_connection_warning(struct lh_connection *connection);
/* Closes the connection: notifies the peer, ends pending requests with -LH_ECLOSED, frees everything but the
 * requests. */
LH_API void lh_close(struct lh_connection *connection);

#ifdef __cplusplus
}
#endif
#endif
