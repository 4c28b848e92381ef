/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/tls_channel.h"

/* First: OpenSSL has macros with names of this library, lh_error among them. */
#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/min_max.h"
#include "keys/key_file.h"
#include "launch/tcp.h"

#define RECORD_HEADER_BYTES 5u
#define RECORD_BYTES_MAX    16384u /* of what one carries */
#define RECORD_ALERT        21
#define RECORD_HANDSHAKE    22
#define HANDSHAKE_BYTES_MAX 4096u /* that a peer sends in it: 350 and 130 are needed */
#define UNSENT_MAX          ((size_t)64 << 10)
#define SEEN_MAX            4096u /* first messages of clients with the key that a repetition is known by */
#define DRAINS_MAX          64u

/* RFC 8446, appendix B.4: TLS_AES_256_GCM_SHA384. */
static const unsigned char suite[] = {0x13, 0x02};

struct tls_context {
    SSL_CTX *settings;
    enum lh_encryption encryption;
    struct key_secret secret;
    const char *remedy;
    uint64_t seen[SEEN_MAX]; /* accepting side: randoms of clients, in the slots of their remainders */
};

struct tls {
    int fd;
    bool accepting;
    struct tls_context *context; /* until the handshake is over */
    char identity[KEY_IDENTITY_MAX];
    SSL *session; /* accepting side: from the peer's first record on */
    bool whole;   /* the first record of the peer is */
    bool proven;  /* accepting side: the first message of the client was right */
    bool done;    /* the handshake is over */
    bool failed;
    bool clear_text;     /* the first byte is not of TLS */
    bool unknown;        /* accepting side: the client named another key */
    bool named;          /* accepting side: it named a key at all */
    bool ended;          /* the peer has closed the TCP connection */
    bool greeting_taken; /* connecting side: the peer knows it */
    size_t greeting_bytes;
    uint8_t *greeting;    /* connecting side: until the handshake is over; accepting side: the peer's */
    int error;            /* errno of a read */
    int send_error;       /* of a write: nothing is sent any more */
    uint32_t came;        /* bytes, in the handshake */
    uint32_t have, taken; /* of the first record */
    uint8_t first[CHANNEL_FIRST_MAX];
    uint8_t *unsent;
    size_t unsent_bytes;
};

/* ---- socket ------------------------------------------------------------------------------------------ */

static bool is_for_later(int error)
{
    return error == EAGAIN || error == EINTR;
}

static ssize_t send_now(int fd, const void *data, size_t count)
{
    return send(fd, data, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* False: it never will. */
static bool keep(struct tls *tls, const uint8_t *data, size_t count)
{
    uint8_t *unsent =
        tls->unsent_bytes + count <= UNSENT_MAX ? realloc(tls->unsent, tls->unsent_bytes + count) : NULL;
    if (!unsent)
        return false;
    memcpy(unsent + tls->unsent_bytes, data, count);
    tls->unsent = unsent;
    tls->unsent_bytes += count;
    return true;
}

/* OpenSSL never learns that the socket is full: what is left waits here, and a call that has begun a record
 * has ended it. Neither does it learn of errors, behind which the peer's last frames may wait to be read. */
static int bio_write(BIO *bio, const char *data, int count)
{
    struct tls *tls = BIO_get_data(bio);
    size_t rest = (size_t)count;
    if (tls->send_error)
        return count;
    if (tls->unsent_bytes == 0) {
        ssize_t sent = send_now(tls->fd, data, rest);
        if (sent < 0 && !is_for_later(errno)) {
            tls->send_error = errno;
            return count;
        }
        rest -= sent > 0 ? (size_t)sent : 0;
    }
    if (rest > 0 && !keep(tls, (const uint8_t *)data + ((size_t)count - rest), rest))
        tls->send_error = ENOBUFS;
    return count;
}

/* The first record has been read already. */
static ssize_t read_raw(struct tls *tls, void *data, size_t count)
{
    size_t left = tls->have - tls->taken;
    if (left == 0)
        return recv(tls->fd, data, count, MSG_DONTWAIT);
    count = lh_min(count, left);
    memcpy(data, tls->first + tls->taken, count);
    tls->taken += (uint32_t)count;
    return (ssize_t)count;
}

static int bio_read(BIO *bio, char *data, int count)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!tls->done && tls->came >= HANDSHAKE_BYTES_MAX) {
        tls->error = EPROTO;
        return -1;
    }
    errno = EAGAIN;
    ssize_t got = tls->whole ? read_raw(tls, data, (size_t)count) : -1;
    if (got > 0 && !tls->done)
        tls->came += (uint32_t)got;
    if (got < 0 && is_for_later(errno))
        BIO_set_retry_read(bio);
    else if (got < 0)
        tls->error = errno;
    tls->ended |= got == 0;
    return (int)got;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    const struct tls *tls = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF)
        return tls->ended;
    return command == BIO_CTRL_FLUSH;
}

static CRYPTO_ONCE method_once = CRYPTO_ONCE_STATIC_INIT;
static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "longhaul");
    if (!method)
        return;
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_ctrl);
}

/* ---- key --------------------------------------------------------------------------------------------- */

static SSL_SESSION *make_session(SSL *session, const struct key_secret *secret)
{
    SSL_SESSION *made = SSL_SESSION_new();
    const SSL_CIPHER *cipher = SSL_CIPHER_find(session, suite);
    if (made && cipher && SSL_SESSION_set1_master_key(made, secret->psk, sizeof secret->psk) &&
        SSL_SESSION_set_cipher(made, cipher) && SSL_SESSION_set_protocol_version(made, TLS1_3_VERSION))
        return made;
    SSL_SESSION_free(made);
    return NULL;
}

/* Connecting side: what it offers. */
static int use_key(SSL *session, const EVP_MD *digest, const unsigned char **id, size_t *id_bytes,
                   SSL_SESSION **offered)
{
    const struct tls *tls = SSL_get_app_data(session);
    (void)digest; /* the suite's, the only one */
    *id = (const unsigned char *)tls->identity;
    *id_bytes = strlen(tls->identity);
    *offered = make_session(session, &tls->context->secret);
    return *offered != NULL;
}

/* Accepting side. Without a session there is no handshake, as there are no certificates. */
static int find_key(SSL *session, const unsigned char *id, size_t id_bytes, SSL_SESSION **found)
{
    struct tls *tls = SSL_get_app_data(session);
    *found = NULL;
    tls->named = true;
    tls->unknown = id_bytes != strlen(tls->identity) || memcmp(id, tls->identity, id_bytes) != 0;
    if (tls->unknown)
        return 1;
    *found = make_session(session, &tls->context->secret);
    return *found != NULL;
}

/* False: no memory. */
static bool keep_greeting(struct tls *tls, const void *greeting, size_t bytes)
{
    free(tls->greeting);
    tls->greeting = malloc(bytes);
    tls->greeting_bytes = tls->greeting ? bytes : 0;
    if (tls->greeting)
        memcpy(tls->greeting, greeting, bytes);
    return tls->greeting;
}

/* 1: the extension is sent: the greeting; or that this side has it, which OpenSSL asks for only then. */
static int add_greeting(SSL *session, unsigned type, unsigned context, const unsigned char **out,
                        size_t *bytes, X509 *certificate, size_t index, int *alert, void *argument)
{
    const struct tls *tls = SSL_get_app_data(session);
    (void)type, (void)context, (void)certificate, (void)index, (void)alert, (void)argument;
    *out = tls->accepting ? NULL : tls->greeting;
    *bytes = tls->accepting ? 0 : tls->greeting_bytes;
    return tls->accepting || tls->greeting;
}

static int parse_greeting(SSL *session, unsigned type, unsigned context, const unsigned char *in,
                          size_t bytes, X509 *certificate, size_t index, int *alert, void *argument)
{
    struct tls *tls = SSL_get_app_data(session);
    (void)type, (void)context, (void)certificate, (void)index, (void)argument;
    *alert = SSL_AD_ILLEGAL_PARAMETER;
    if (tls->accepting)
        return bytes > 0 && bytes <= CHANNEL_GREETING_MAX && keep_greeting(tls, in, bytes);
    tls->greeting_taken = true;
    return bytes == 0;
}

static bool set_up(SSL_CTX *settings)
{
    SSL_CTX_set_options(settings, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_clear_options(settings, SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_mode(settings, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_clear_mode(settings, SSL_MODE_AUTO_RETRY); /* a call reads one record, and no flood of them */
    SSL_CTX_set_session_cache_mode(settings, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_psk_use_session_callback(settings, use_key);
    SSL_CTX_set_psk_find_session_callback(settings, find_key);
    return SSL_CTX_set_min_proto_version(settings, TLS1_3_VERSION) &&
           SSL_CTX_set_max_proto_version(settings, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(settings, "TLS_AES_256_GCM_SHA384") &&
           SSL_CTX_add_custom_ext(settings, CHANNEL_GREETING_EXTENSION,
                                  SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS, add_greeting,
                                  NULL, NULL, parse_greeting, NULL) &&
           SSL_CTX_set1_groups_list(settings, "X25519") && SSL_CTX_set_num_tickets(settings, 0) &&
           SSL_CTX_set_max_early_data(settings, 0) && SSL_CTX_set_recv_max_early_data(settings, 0);
}

int tls_context_of(const struct key_secret *secret, enum lh_encryption encryption, const char *remedy,
                   struct tls_context **out)
{
    struct tls_context *context = calloc(1, sizeof *context);
    if (!context || !CRYPTO_THREAD_run_once(&method_once, make_method) || !method) {
        free(context);
        return lh_fail(LH_ENOMEM, "no memory for TLS");
    }
    ERR_clear_error();
    /* Workers may still read and write while exit() runs. No effect behind an earlier use of OpenSSL. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    context->settings = SSL_CTX_new(TLS_method());
    context->secret = *secret;
    context->encryption = encryption;
    context->remedy = remedy;
    if (!context->settings || !set_up(context->settings)) {
        ERR_clear_error();
        tls_context_free(context);
        return lh_fail(LH_ESYSTEM,
                       "TLS 1.3 with X25519 and AES-256-GCM: not available in this system's OpenSSL");
    }
    *out = context;
    return 0;
}

int tls_context_create(const struct lh_security *security, struct tls_context **context)
{
    struct key_secret secret;
    *context = NULL;
    if (!security || security->encryption == LH_ENCRYPTION_OFF)
        return 0;
    int error = security->code     ? key_code_read(security->code, &secret)
                : security->secret ? key_text_read(security->secret, &secret)
                                   : key_file_read(security->key_file, &secret);
    if (!error)
        error = tls_context_of(&secret, security->encryption, CHANNEL_REMEDY, context);
    key_wipe(&secret);
    return error;
}

void tls_context_free(struct tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->settings);
    key_wipe(&context->secret);
    free(context);
}

enum lh_encryption tls_context_encryption(const struct tls_context *context)
{
    return context ? context->encryption : LH_ENCRYPTION_OFF;
}

const char *tls_context_identity(const struct tls_context *context)
{
    return context ? context->secret.identity : "";
}

/* ---- first record ------------------------------------------------------------------------------------ */

/* Reads up to that many bytes. 1: they are there. */
static int fill(struct tls *tls, uint32_t want)
{
    while (tls->have < want) { /* each round reads something, or is the last */
        ssize_t got = recv(tls->fd, tls->first + tls->have, want - tls->have, MSG_DONTWAIT);
        if (got < 0 && is_for_later(errno))
            return 0;
        if (got < 0)
            return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
        if (got == 0)
            return lh_fail(LH_EPEER, "the remote side closed the connection during the handshake");
        tls->have += (uint32_t)got;
    }
    return 1;
}

static int no_tls(struct tls *tls)
{
    tls->clear_text = true;
    if (!tls->accepting)
        return lh_fail(LH_EHANDSHAKE, "%s (%s)", CHANNEL_CLEAR_TEXT, tls->context->remedy);
    if (tls->first[0] == 'L') /* HANDSHAKE_MAGIC */
        return lh_fail(LH_EHANDSHAKE, "the client has no key, the listener has one (%s)",
                       tls->context->remedy);
    return lh_fail(LH_EHANDSHAKE, "the remote side is not Longhaul (first byte 0x%02x)", tls->first[0]);
}

/* 1: it is whole; 0: more is to come; or an error. */
static int read_first(struct tls *tls)
{
    int got = fill(tls, 1);
    if (got <= 0)
        return got;
    bool is_alert = !tls->accepting && tls->first[0] == RECORD_ALERT;
    if (tls->first[0] != RECORD_HANDSHAKE && !is_alert)
        return no_tls(tls);
    got = fill(tls, RECORD_HEADER_BYTES);
    if (got <= 0)
        return got;
    uint32_t bytes = (uint32_t)tls->first[3] << 8 | tls->first[4];
    if (bytes > sizeof tls->first - RECORD_HEADER_BYTES)
        return lh_fail(LH_EHANDSHAKE, "TLS of the remote side is not Longhaul's (record of %u bytes)",
                       bytes);
    got = fill(tls, RECORD_HEADER_BYTES + bytes);
    tls->whole = got == 1;
    return got;
}

/* ---- handshake --------------------------------------------------------------------------------------- */

static int begin_session(struct tls *tls)
{
    ERR_clear_error();
    BIO *bio = BIO_new(method);
    tls->session = SSL_new(tls->context->settings);
    if (!bio || !tls->session) {
        BIO_free(bio);
        ERR_clear_error();
        return lh_fail(LH_ENOMEM, "no memory for TLS");
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->session, bio, bio);
    SSL_set_app_data(tls->session, tls);
    if (tls->accepting) {
        SSL_set_accept_state(tls->session);
    } else {
        SSL_set_connect_state(tls->session);
        SSL_set_verify(tls->session, SSL_VERIFY_PEER, NULL); /* no certificate is trusted */
    }
    return 0;
}

/* Alerts of a peer that does not take the key: handshake_failure, illegal_parameter, decrypt_error. */
static bool is_alert_of_key(int reason)
{
    return reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE || reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER ||
           reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR;
}

/* Why a call of OpenSSL failed, in the handshake. */
static int explain(struct tls *tls)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    const char *words = ERR_reason_error_string(code);
    ERR_clear_error();
    tls->failed = true;
    if (tls->ended)
        return lh_fail(LH_EPEER, "the remote side closed the connection during the handshake");
    if (tls->error == EPROTO)
        return lh_fail(LH_EHANDSHAKE, "TLS of the remote side is not Longhaul's (more than %u bytes)",
                       HANDSHAKE_BYTES_MAX);
    if (tls->error)
        return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(tls->error));
    if (tls->unknown || reason == SSL_R_BINDER_DOES_NOT_VERIFY || (!tls->proven && is_alert_of_key(reason)))
        return lh_fail(LH_EHANDSHAKE, "the remote side has another key (%s)", tls->context->remedy);
    if (tls->accepting && !tls->named)
        return lh_fail(LH_EHANDSHAKE, "TLS of the remote side is not Longhaul's (it names no key)");
    return lh_fail(LH_EHANDSHAKE, "TLS with the remote side failed: %s", words ? words : "unknown cause");
}

/* Of a call of OpenSSL that did not succeed. 0: more is to come. */
static int wait_or_explain(struct tls *tls, int result)
{
    if (SSL_get_error(tls->session, result) == SSL_ERROR_WANT_READ) {
        ERR_clear_error();
        return 0;
    }
    return explain(tls);
}

/* Whether a client has sent this first message before: a host that has recorded it repeats it. Only those of
 * the key get here, so that no stranger pushes another one out. */
static bool is_repeated(const struct tls *tls)
{
    uint64_t random = 0;
    SSL_get_client_random(tls->session, (unsigned char *)&random, sizeof random);
    uint64_t *slot = &tls->context->seen[random % SEEN_MAX];
    bool repeated = *slot == random;
    *slot = random;
    return repeated;
}

/* Its key is not proven yet, and nothing is kept for a client without one. */
static int is_in_pieces(struct tls *tls)
{
    ERR_clear_error();
    tls->failed = true;
    return lh_fail(
        LH_EHANDSHAKE,
        "TLS of the remote side is not Longhaul's (its first message is in more than one record)");
}

/* Up to where the accepting side may send, though the peer's answer is still to come. 1: there. */
static int prove(struct tls *tls)
{
    uint8_t none;
    size_t bytes = 0;
    if (tls->proven)
        return 1;
    int result = SSL_read_early_data(tls->session, &none, sizeof none, &bytes);
    if (result == SSL_READ_EARLY_DATA_ERROR && SSL_get_error(tls->session, 0) == SSL_ERROR_WANT_READ)
        return is_in_pieces(tls);
    if (result != SSL_READ_EARLY_DATA_FINISH || !SSL_session_reused(tls->session))
        return explain(tls);
    if (is_repeated(tls)) {
        tls->failed = true;
        return lh_fail(LH_EHANDSHAKE, "the remote side repeats the first message of an earlier client");
    }
    tls->proven = true;
    return 1;
}

/* What OpenSSL was set up for. */
static int check_done(struct tls *tls)
{
    const SSL_CIPHER *cipher = SSL_get_current_cipher(tls->session);
    if (!SSL_session_reused(tls->session) || SSL_version(tls->session) != TLS1_3_VERSION || !cipher ||
        SSL_CIPHER_get_protocol_id(cipher) != (suite[0] << 8 | suite[1]))
        return explain(tls);
    tls->done = true;
    tls->context = NULL;
    return 1;
}

static int begin_tls(struct channel *channel, struct tls_context *context, bool accepting,
                     const void *greeting, size_t bytes)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return lh_fail(LH_ENOMEM, "no memory for TLS");
    tls->fd = channel->fd;
    tls->accepting = accepting;
    tls->context = context;
    memcpy(tls->identity, context->secret.identity, sizeof tls->identity);
    channel->tls = tls;
    if (accepting)
        return 0;
    if (bytes > 0 && !keep_greeting(tls, greeting, bytes))
        return lh_fail(LH_ENOMEM, "no memory for TLS");
    int error = begin_session(tls);
    return error ? error : wait_or_explain(tls, SSL_do_handshake(tls->session));
}

int channel_secure(struct channel *channel, struct tls_context *context, bool accepting)
{
    return context ? begin_tls(channel, context, accepting, NULL, 0) : 0;
}

int channel_secure_greeting(struct channel *channel, struct tls_context *context, const void *greeting,
                            size_t bytes)
{
    assert(bytes <= CHANNEL_GREETING_MAX);
    return context ? begin_tls(channel, context, false, greeting, bytes) : 0;
}

bool channel_greeting_taken(const struct channel *channel)
{
    return channel->tls && channel->tls->done && channel->tls->greeting_taken;
}

const uint8_t *channel_greeting(const struct channel *channel, size_t *bytes)
{
    if (!channel_is_proven(channel) || !channel->tls->accepting)
        return NULL;
    *bytes = channel->tls->greeting_bytes;
    return channel->tls->greeting;
}

int channel_handshake(struct channel *channel)
{
    struct tls *tls = channel->tls;
    if (!tls || tls->done)
        return 1;
    if (tls->failed || tls->clear_text)
        return lh_fail(LH_EHANDSHAKE, "TLS with the remote side has failed before");
    int got = tls->whole ? 1 : read_first(tls);
    if (got == 1 && !tls->session)
        got = begin_session(tls) ? -LH_ENOMEM : 1;
    if (got <= 0)
        return got;
    ERR_clear_error();
    got = tls->accepting ? prove(tls) : 1;
    if (got <= 0)
        return got;
    int result = SSL_do_handshake(tls->session);
    return result == 1 ? check_done(tls) : wait_or_explain(tls, result);
}

bool channel_is_proven(const struct channel *channel)
{
    return channel->tls && channel->tls->proven && !channel->tls->failed;
}

bool channel_is_clear_text(const struct channel *channel)
{
    return channel->tls && !channel->tls->accepting && channel->tls->clear_text;
}

const char *channel_identity(const struct channel *channel)
{
    return channel->tls ? channel->tls->identity : "";
}

/* ---- sending ----------------------------------------------------------------------------------------- */

bool channel_has_unsent(const struct channel *channel)
{
    return channel->tls && channel->tls->unsent_bytes > 0;
}

/* Sends what waits. 1: nothing waits any more; 0: some does; -1. */
static int flush(struct tls *tls)
{
    if (tls->unsent_bytes == 0)
        return 1;
    ssize_t sent = send_now(tls->fd, tls->unsent, tls->unsent_bytes);
    if (sent < 0 && is_for_later(errno))
        return 0;
    if (sent < 0) {
        tls->send_error = errno;
        return -1;
    }
    tls->unsent_bytes -= (size_t)sent;
    memmove(tls->unsent, tls->unsent + sent, tls->unsent_bytes);
    if (tls->unsent_bytes > 0)
        return 0;
    free(tls->unsent);
    tls->unsent = NULL;
    return 1;
}

/* One record. */
static ssize_t send_record(struct tls *tls, const void *data, size_t count)
{
    size_t taken = 0;
    count = lh_min(count, RECORD_BYTES_MAX);
    ERR_clear_error();
    int sent = tls->done ? SSL_write_ex(tls->session, data, count, &taken)
                         : SSL_write_early_data(tls->session, data, count, &taken);
    ERR_clear_error();
    if (sent == 1 && !tls->send_error)
        return (ssize_t)taken;
    tls->failed |= sent != 1;
    errno = tls->send_error ? tls->send_error : EPROTO;
    return -1;
}

ssize_t channel_send(struct channel *channel, const void *data, size_t count)
{
    struct tls *tls = channel->tls;
    bool is_clear = !tls || (tls->accepting && !tls->session && !tls->failed);
    if (is_clear) {
        ssize_t sent = count > 0 ? send_now(channel->fd, data, count) : 0;
        return sent < 0 && is_for_later(errno) ? 0 : sent;
    }
    if (tls->failed || tls->send_error || !(tls->done || tls->proven)) {
        errno = EPIPE;
        return -1;
    }
    int flushed = flush(tls);
    if (flushed <= 0 || count == 0)
        return flushed < 0 ? -1 : 0;
    return send_record(tls, data, count);
}

int channel_send_all(struct channel *channel, const void *data, size_t count, lh_time deadline)
{
    const uint8_t *at = data;
    for (;;) { /* until all has left, or the deadline */
        ssize_t sent = channel_send(channel, at, count);
        if (sent < 0)
            return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
        at += sent;
        count -= (size_t)sent;
        if (count == 0 && !channel_has_unsent(channel))
            return 0;
        int error = sent > 0 ? 0 : tcp_wait(channel->fd, true, deadline);
        if (error)
            return error;
    }
}

/* ---- receiving --------------------------------------------------------------------------------------- */

ssize_t channel_receive(struct channel *channel, void *data, size_t count)
{
    struct tls *tls = channel->tls;
    size_t got = 0;
    if (!tls)
        return recv(channel->fd, data, count, MSG_DONTWAIT);
    if (channel_is_clear_text(channel))
        return read_raw(tls, data, count);
    if (!tls->done || tls->failed) {
        errno = tls->failed ? EPROTO : EAGAIN;
        return -1;
    }
    ERR_clear_error();
    int result = SSL_read_ex(tls->session, data, count, &got);
    int why = result == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->session, result);
    ERR_clear_error();
    if (why == SSL_ERROR_NONE)
        return (ssize_t)got;
    if (why == SSL_ERROR_ZERO_RETURN || tls->ended)
        return 0;
    errno = why == SSL_ERROR_WANT_READ ? EAGAIN : tls->error ? tls->error : EPROTO;
    tls->failed |= why != SSL_ERROR_WANT_READ;
    return -1;
}

int channel_receive_all(struct channel *channel, void *data, size_t count, lh_time deadline)
{
    uint8_t *at = data;
    while (count > 0) { /* until all is read or the deadline passes */
        ssize_t got = channel_receive(channel, at, count);
        bool waits = got < 0 && is_for_later(errno);
        if (got == 0)
            return lh_fail(LH_EPEER, "the remote side closed the connection");
        if (got < 0 && !waits)
            return lh_fail(LH_EPEER, "connection to the remote side failed: %s", strerror(errno));
        if (got > 0) {
            at += got;
            count -= (size_t)got;
        }
        int error = waits ? tcp_wait(channel->fd, false, deadline) : 0;
        if (error)
            return error;
    }
    return 0;
}

bool channel_has_unread(const struct channel *channel)
{
    return channel->tls && channel->tls->done && !channel->tls->failed &&
           SSL_pending(channel->tls->session) > 0;
}

int channel_export(const struct channel *channel, const char *label, const void *context,
                   size_t context_bytes, uint8_t *out, size_t bytes)
{
    const struct tls *tls = channel->tls;
    if (!tls || !tls->done || tls->failed)
        return lh_fail(LH_ESTATE, "no secret: the connection has no key, or its handshake is not over");
    ERR_clear_error();
    if (SSL_export_keying_material(tls->session, out, bytes, label, strlen(label), context, context_bytes,
                                   1) == 1)
        return 0;
    ERR_clear_error();
    return lh_fail(LH_ESYSTEM, "TLS exporter: not available in this system's OpenSSL");
}

int channel_packet_secret(const struct channel *channel, uint16_t stream, const struct channel_blobs *blobs,
                          uint8_t out[CHANNEL_SECRET_BYTES])
{
    static const char label[] = "EXPORTER-longhaul data v1";
    uint8_t context[2 + EVP_MAX_MD_SIZE];
    unsigned length = 0;
    lh_put_be16(context, stream);
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    bool made = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(digest, blobs->connecting, blobs->connecting_bytes) &&
                EVP_DigestUpdate(digest, blobs->accepting, blobs->accepting_bytes) &&
                EVP_DigestFinal_ex(digest, context + 2, &length);
    EVP_MD_CTX_free(digest);
    if (!made)
        return lh_fail(LH_ESYSTEM, "SHA-256: not available in this system's OpenSSL");
    return channel_export(channel, label, context, 2 + length, out, CHANNEL_SECRET_BYTES);
}

/* ---- end --------------------------------------------------------------------------------------------- */

/* The ends of frames tell where a connection ends, not those of TLS; RFC 8446 wants them nevertheless. */
static void free_tls(struct tls *tls)
{
    if (tls->session && tls->done && !tls->failed && !tls->send_error && flush(tls) == 1) {
        ERR_clear_error();
        SSL_shutdown(tls->session);
        ERR_clear_error();
    }
    SSL_free(tls->session);
    free(tls->unsent);
    free(tls->greeting);
    OPENSSL_cleanse(tls, sizeof *tls);
    free(tls);
}

void channel_close(struct channel *channel)
{
    uint8_t drain[1024];
    if (channel->tls)
        free_tls(channel->tls);
    shutdown(channel->fd, SHUT_WR);
    for (uint32_t i = 0; i < DRAINS_MAX && recv(channel->fd, drain, sizeof drain, MSG_DONTWAIT) > 0; i++)
        continue;
    close(channel->fd);
    *channel = (struct channel){.fd = -1};
}
