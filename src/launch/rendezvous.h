/*
 * rendezvous.h - the handshake over a connected TCP socket, or over a stream of a control connection that
 * there is already: a step machine for either side, which never waits. The connecting side runs one of it
 * (listener.c), a listener many side by side (listener.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_RENDEZVOUS_H
#define LH_LAUNCH_RENDEZVOUS_H

#include <longhaul/connection.h>

#include "launch/admission.h"
#include "launch/control_connection.h"
#include "launch/handshake.h"
#include "launch/tls_channel.h"

/* How long a side may take for its part of the handshake. Not configurable: it is far more than any path
 * needs, and only bounds what a stuck or hostile client costs. */
#define RENDEZVOUS_TIMEOUT_NS (5 * LH_NS_PER_S)

/* What both sides report when no ping came back; the beginning, whatever the cause. */
#define RENDEZVOUS_UDP_TEXT "UDP packets do not pass"
#define RENDEZVOUS_NO_UDP                                                                                  \
    RENDEZVOUS_UDP_TEXT                                                                                    \
    ", TCP does: a firewall on the path (let UDP ports 4791 and 49152-65535 "                              \
    "through the firewalls of both hosts)"

enum rendezvous_state {
    RENDEZVOUS_PROPOSAL, /* the peer's proposal is to come */
    RENDEZVOUS_BLOB,     /* its blob; accepting side: an endpoint may be open already */
    RENDEZVOUS_QUEUED,   /* accepting side: the client's blob is here; no endpoint is open for it yet */
    RENDEZVOUS_PATH,     /* open; waits for packets, and for the peer's READY */
    RENDEZVOUS_PENDING, /* packets have passed in both directions, as far as is known; waits for the permit to
                          * send READY, and for a ping to come back */
    RENDEZVOUS_DONE,
};

struct rendezvous {
    int fd;                            /* where there is a stream: that of its control connection */
    struct channel channel;            /* over the socket; where there is a stream it has none */
    bool greeted;                      /* connecting side: its first frames have left */
    bool keys_differ;                  /* accepting side, after a failure: of the key of either side, or of
                                        * the encryption that it wants */
    struct control_stream *stream;     /* NULL: the handshake runs over the socket itself */
    struct control_acceptor *acceptor; /* accepting side: takes further streams; or NULL */
    const struct admission_key *key;   /* accepting side: of cookies */
    bool cookie_came;                  /* a COOKIE, right or wrong */
    bool returned;                     /* accepting side: the client has presented a cookie of this key */
    bool has_cookie;                   /* connecting side, after a failure: for the next try */
    uint8_t cookie[ADMISSION_COOKIE_BYTES];
    const uint8_t *earlier_cookie; /* connecting side: of an earlier try, or NULL */
    const char *where; /* connecting side: further connections to there may be streams; or NULL */
    bool accepting;
    enum lh_encryption encryption; /* that this side wants: LH_ENCRYPTION_OFF in clear text */
    enum rendezvous_state state;
    uint8_t version;         /* of this side's frames */
    bool older;              /* connecting side, after a failure: the peer knows older versions only */
    bool full;               /* connecting side, after a failure: the listener is full */
    bool closed;             /* connecting side, with a stream, after a failure: that listener was closed */
    uint32_t busy;           /* BUSY frames that came */
    bool more;               /* MORE came */
    bool ready;              /* the peer's READY came */
    bool late;               /* path_until_ns is over */
    bool arrived;            /* a packet of the peer came */
    bool path;               /* a ping came back */
    bool promised;           /* accepting side: READY has left, so this client is handed over */
    lh_time opened_ns;       /* RENDEZVOUS_PATH began then; before, a stream was opened */
    lh_time path_until_ns;   /* accepting side: without a ping until then UDP does not pass */
    lh_time answer_until_ns; /* connecting side, with a stream: without a proposal until then its TCP
                              * connection passes nothing any more */
    const struct lh_attr *attr;
    struct handshake_proposal mine, agreed;
    struct lh_connection *connection; /* or NULL */
    uint32_t blob_bytes;
    uint8_t blob[LH_BLOB_MAX]; /* the peer's, in RENDEZVOUS_QUEUED; else this side's own */
    uint32_t have;             /* bytes of the frame that is being read */
    uint8_t frame[HANDSHAKE_HEADER_BYTES + HANDSHAKE_BODY_MAX];
};

/* What the accepting side lets a client do in this step. */
struct rendezvous_permit {
    bool open;          /* from RENDEZVOUS_QUEUED on: opens an endpoint, which costs memory */
    bool open_early;    /* the same in RENDEZVOUS_BLOB */
    uint64_t link_room; /* with these, most that its emulated link may hold */
    /* From RENDEZVOUS_PENDING on: READY leaves, where a ping has come back, and before that. */
    bool finish, promise;
};

/* Takes the socket, which goes with rendezvous_done() or rendezvous_drop(); attr and key stay the caller's,
 * and so does acceptor, or NULL: the client opens no streams. */
void rendezvous_accept(struct rendezvous *r, int fd, const struct lh_attr *attr,
                       const struct admission_key *key, struct control_acceptor *acceptor);
/* Behind rendezvous_accept(): all runs under TLS, with that key, which stays the caller's. NULL: no effect.
 * -LH_ENOMEM. */
int rendezvous_accept_secure(struct rendezvous *r, struct tls_context *tls);
/* The same with a stream, whose TLS it uses, and what the key is for. */
void rendezvous_accept_stream(struct rendezvous *r, struct control_stream *stream,
                              const struct lh_attr *attr, enum lh_encryption encryption, lh_time now);
/* Sends the first proposal, of that version, behind the cookie of an earlier try, or NULL; under TLS as soon
 * as that stands. An error as of rendezvous_step(), but the socket is taken. where: as the caller of
 * lh_connect() named the listener. tls: as of rendezvous_accept_secure(). cookie and where stay the
 * caller's, too. */
int rendezvous_connect(struct rendezvous *r, int fd, const struct lh_attr *attr, uint8_t version,
                       const uint8_t *cookie, const char *where, struct tls_context *tls);
/* The same with a stream. In RENDEZVOUS_PROPOSAL a step gives -LH_EPEER when the stream is of no use. */
int rendezvous_connect_stream(struct rendezvous *r, struct control_stream *stream,
                              const struct lh_attr *attr, enum lh_encryption encryption, lh_time now);
/* Accepting side: whether an endpoint is open for this client. */
bool rendezvous_is_open(const struct rendezvous *r);
/* From RENDEZVOUS_BLOB on: what the emulated link of its connection may hold, opened or not. */
uint64_t rendezvous_link_bytes(const struct rendezvous *r);
/* Goes on as far as can be without waiting. 1: the connection stands, and is the caller's
 * (rendezvous_done); 0: more is to come; or why it failed, to be dropped then. */
int rendezvous_step(struct rendezvous *r, struct rendezvous_permit permit, lh_time now);
/* Whether a step reads what comes. Behind the accepting side's READY it is for the connection, and a poll for
 * it would return at once, again and again. */
bool rendezvous_reads(const struct rendezvous *r);
/* When to step again at the latest, though nothing was read; LH_TIME_NEVER: no need. */
lh_time rendezvous_next_ns(const struct rendezvous *r, lh_time now);
/* Accepting side: sends BUSY to a waiting client that has no READY. -LH_EPEER: it does not read. Version 1
 * has no BUSY. */
int rendezvous_send_busy(struct rendezvous *r);
/* Accepting side: sends a client whose proposal came the cookie with which it may return, if it knows of
 * cookies. It is dropped next. */
void rendezvous_send_cookie(struct rendezvous *r);
/* How hard it is to send the client away. */
enum admission_standing rendezvous_standing(const struct rendezvous *r);
/* The connection, after a step gave 1. */
struct lh_connection *rendezvous_done(struct rendezvous *r);
/* Sends the peer the reason (lh_last_error(), which stays), as far as possible without waiting, and closes.
 */
void rendezvous_drop(struct rendezvous *r);

#endif
