/*
 * tls_channel.h - what passes over the TCP connection of a rendezvous: in clear text, or under TLS 1.3
 * (RFC 8446) with a pre-shared key. The two differ in channel_secure() alone. Nothing here waits, but for
 * channel_send_all(), and no call raises SIGPIPE.
 *
 * TLS has one of each: X25519 with the key (psk_dhe_ke), TLS_AES_256_GCM_SHA384; no certificates, no tickets,
 * no early data, which whoever records it could repeat. Its key is made of the key file's (key_file.h). Both
 * sides have the same: who has it may be either (RFC 9257, section 4.2).
 *
 * A client that has not proved the key costs a buffer of CHANNEL_FIRST_MAX bytes, until its first record is
 * whole; then, for the time of one call, OpenSSL's memory (60 KiB), which stays if the key was right.
 *
 * A listener that has no place for a client refuses it before TLS begins, in clear text. Nothing else of that
 * kind is believed: channel_is_clear_text().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_TLS_CHANNEL_H
#define LH_LAUNCH_TLS_CHANNEL_H

#include <sys/types.h>

#include <longhaul/connection.h>

#define CHANNEL_FIRST_MAX 1024u
/* What the connecting side may put in its first message (CHANNEL_GREETING_EXTENSION, for private use as of
 * RFC 8446, section 11): parameters, as ALPN has them, in clear text, which only who has the key can make or
 * change; but they can be repeated. The accepting side confirms by an empty extension that it knows them. */
#define CHANNEL_GREETING_MAX       512u
#define CHANNEL_GREETING_EXTENSION 0xFF4Cu
/* What to do about keys that differ, of a connection. */
#define CHANNEL_REMEDY "use the same key file or code on both sides"
/* Of the connecting side, for a peer that answers in clear text. */
#define CHANNEL_CLEAR_TEXT                                                                                 \
    "the remote side answers in clear text: it has no key or is of an older release, or a host on the "    \
    "path removes TLS"

struct key_secret;
struct tls;

/* A key, with OpenSSL's settings: of a listener, or of a call that connects. */
struct tls_context;

/* NULL as security: *context is NULL, for clear text. -LH_EINVAL, of a key file or a code; -LH_ESYSTEM,
 * -LH_ENOMEM. */
int tls_context_create(const struct lh_security *security, struct tls_context **context);
/* Of a secret that there is already. remedy: for messages about keys that differ; a constant. */
int tls_context_of(const struct key_secret *secret, enum lh_encryption encryption, const char *remedy,
                   struct tls_context **context);
/* NULL is fine. Channels in their handshake must not use it any more; others stay. */
void tls_context_free(struct tls_context *context);
/* What it is for: also of packets, or TLS alone. NULL: LH_ENCRYPTION_OFF. */
enum lh_encryption tls_context_encryption(const struct tls_context *context);
/* Which key it is; "": clear text (NULL). */
const char *tls_context_identity(const struct tls_context *context);

struct channel {
    int fd;
    struct tls *tls; /* NULL: clear text */
};

/* From now on with TLS; context NULL: no effect. The connecting side sends its first record. -LH_ENOMEM,
 * -LH_EPEER. */
int channel_secure(struct channel *channel, struct tls_context *context, bool accepting);
/* The same, of the connecting side, with a greeting: at most CHANNEL_GREETING_MAX bytes. */
int channel_secure_greeting(struct channel *channel, struct tls_context *context, const void *greeting,
                            size_t bytes);
/* Connecting side, after the handshake: whether the peer knows greetings, and so has it. */
bool channel_greeting_taken(const struct channel *channel);
/* Accepting side: the greeting of a client that channel_is_proven(); NULL: none. */
const uint8_t *channel_greeting(const struct channel *channel, size_t *bytes);
/* 1: the handshake of TLS is over (at once in clear text); 0: more is to come; -LH_EPEER: the peer has gone;
 * -LH_EHANDSHAKE: it has no key, or another. In lh_last_error(): why, and the remedy. */
int channel_handshake(struct channel *channel);
/* Accepting side: whether the client has the key, or repeats what a client with the key has sent elsewhere,
 * or many clients ago. */
bool channel_is_proven(const struct channel *channel);
/* Connecting side, after a failed handshake: the peer has answered in clear text, which channel_receive()
 * gives. */
bool channel_is_clear_text(const struct channel *channel);
/* "": clear text. */
const char *channel_identity(const struct channel *channel);

/* What it takes now, of which some may wait in the channel; count 0 is fine. -1: none any more, errno.
 * With TLS, the accepting side may send before the handshake is over: behind its first records under TLS,
 * ahead of them in clear text. */
ssize_t channel_send(struct channel *channel, const void *data, size_t count);
/* Whether some of it waits: for channel_send(). */
bool channel_has_unsent(const struct channel *channel);
/* All of it. 0, -LH_ETIMEDOUT, -LH_EPEER. */
int channel_send_all(struct channel *channel, const void *data, size_t count, lh_time deadline);
/* As recv() of a non-blocking socket; EPROTO: not of the peer. */
ssize_t channel_receive(struct channel *channel, void *data, size_t count);
/* All of it. 0, -LH_ETIMEDOUT, -LH_EPEER: also what is not of the peer. */
int channel_receive_all(struct channel *channel, void *data, size_t count, lh_time deadline);
/* Whether channel_receive() would give something, though the socket is not readable. */
bool channel_has_unread(const struct channel *channel);
/* Bytes of a secret that both sides have, of this handshake alone: RFC 8446, section 7.5. -LH_ESTATE: clear
 * text, or too early. */
int channel_export(const struct channel *channel, const char *label, const void *context,
                   size_t context_bytes, uint8_t *out, size_t bytes);
#define CHANNEL_SECRET_BYTES 32u

/* The blobs of both sides of a connection, exactly as they were exchanged. */
struct channel_blobs {
    const uint8_t *connecting, *accepting;
    size_t connecting_bytes, accepting_bytes;
};

/* The secret of packets of one connection whose handshake this is, or a stream of it: both blobs, with their
 * random numbers, and the stream's number are in it, so no two connections have the same. Errors as of
 * channel_export(). */
int channel_packet_secret(const struct channel *channel, uint16_t stream, const struct channel_blobs *blobs,
                          uint8_t out[CHANNEL_SECRET_BYTES]);
/* Nothing is sent any more. Takes what has come, up to a bound: unread bytes would turn the close into a
 * reset, which may discard what was sent last. Closes. */
void channel_close(struct channel *channel);

#endif
