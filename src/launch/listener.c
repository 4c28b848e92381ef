/*
 * listener.c - a listener runs the handshakes of its clients side by side, in a thread of its own: none
 * waits for another. How far each may go is bounded:
 *
 *   CLIENTS_MAX  clients are served. A full listener refuses one that admission.h names, else the newcomer;
 *                each costs a descriptor and 4 KiB
 *   OPEN_MAX     of them have an endpoint, with the memory and the threads of a connection. It is opened for
 *                those that made a proposal and sent a blob, and only during a call of lh_accept();
 *                OPEN_EARLY_MAX of them may have one before their blob is here, which saves a round trip.
 *                their emulated links hold HANDSHAKE_LINK_HELD_MAX together, which each alone is bounded by
 *   one          gets READY, and is handed over, for each lh_accept(): others that are as far wait, and get
 *                BUSY. It gets READY before a ping has come back if no other has answered one; if none comes
 *                back within PROMISE_NS, another one that has is handed over.
 *
 * A client is a TCP connection or, where the listener has an engine, a stream of one that a client before
 * it has left open (control_connection.h): all of that holds for either.
 *
 * Timers: deadline, RENDEZVOUS_TIMEOUT_NS from a client's arrival to its blob, and again from its opening
 * to its READY; busy, BUSY_FIRST_NS after a client began to wait, then every BUSY_SPAN_NS.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>

#include "base/error.h"
#include "base/min_max.h"
#include "device/device_registry.h"
#include "history/path_file.h"
#include "launch/rendezvous.h"
#include "launch/tcp.h"
#include "launch/tls_channel.h"
#include "message/attributes.h"
#include "message/engine.h"

/* ---- security ---------------------------------------------------------------------------------------- */

/* Before a peer is met: it would be refused. */
static int check_device(const struct lh_attr *attr)
{
    const struct lh_security *security = attr->security;
    bool encrypts = security && security->encryption == LH_ENCRYPTION_FULL;
    return encrypts ? fabric_device_check_encrypts(attr->device) : 0;
}

static bool has_loopback_only(const struct lh_attr *attr)
{
    return attr->security && attr->security->loopback_only;
}

/* ---- listen ---------------------------------------------------------------------------------------- */

#define CLIENTS_MAX            32u
#define OPEN_MAX               16u
#define OPEN_EARLY_MAX         (OPEN_MAX / 2)
#define PROMISE_NS             (LH_NS_PER_S / 2) /* ten pings */
#define LISTEN_TEXT_MAX        256u
#define LISTEN_CPUS_MAX        64u
#define NO_DESCRIPTOR_PAUSE_NS 10000000L            /* 10 ms */
#define BUSY_FIRST_NS          (LH_NS_PER_S / 2)    /* less would reach clients of an idle listener */
#define BUSY_SPAN_NS           LH_NS_PER_S          /* far below any timeout of a client */
#define PROGRESS_SPAN_NS       LH_NS_PER_MS         /* of the engine, where nobody else makes it */
#define THREAD_SPAN_MAX_NS     (3600 * LH_NS_PER_S) /* of a sleep */
#define KEY_NOTICE_SPAN_NS     (60 * LH_NS_PER_S)   /* strangers could fill a log */
#define OTHER_KEYS_MANY        3u                   /* fewer may be mistakes */

struct client {
    struct admission_address address;
    lh_time deadline; /* of what is to come from it; LH_TIME_NEVER: it waits for this side */
    lh_time busy_at;
    struct rendezvous handshake;
    char name[TCP_NAME_MAX]; /* a socket that was reset has none */
};

struct lh_listener {
    int fd;
    uint16_t port;
    struct lh_attr attr; /* its texts and lists are the listener's own */
    char device[LISTEN_TEXT_MAX];
    char reliability[LISTEN_TEXT_MAX];
    char congestion[LISTEN_TEXT_MAX];
    char path_file[PATH_FILE_NAME_MAX];
    int cpus[LISTEN_CPUS_MAX];
    uint32_t forks;                    /* as of engine_forks(): where it is another, the thread is not */
    struct admission_key key;          /* of cookies */
    struct tls_context *tls;           /* NULL: no key, clear text */
    bool loopback_only;                /* without a key */
    bool once;                         /* its key is a code */
    uint32_t other_keys;               /* clients that had another key, or none */
    lh_time key_notice_at;             /* no notice of such clients before */
    struct control_acceptor *acceptor; /* of streams; NULL without an engine */
    pthread_t thread;
    int wake_fd;
    pthread_mutex_t lock; /* of all that follows; held but for while the thread sleeps */
    pthread_cond_t changed;
    bool stop;
    int error;          /* why the thread ended */
    bool used;          /* `once`: a client had the code */
    uint32_t wanting;   /* calls of lh_accept() whose time is not up */
    uint32_t accepting; /* all calls of lh_accept() */
    uint32_t ready_count;
    struct lh_connection *ready[CLIENTS_MAX]; /* to be taken by those calls */
    uint32_t client_count;
    struct client *clients[CLIENTS_MAX]; /* in the order in which they came */
};

static int keep_text(const char **text, char *room, size_t size, const char *name)
{
    if (!*text)
        return 0;
    if (strlen(*text) >= size)
        return lh_fail(LH_EINVAL, "%s is longer than %zu bytes", name, size - 1);
    strcpy(room, *text);
    *text = room;
    return 0;
}

static int keep_attr(struct lh_listener *listener)
{
    struct lh_attr *attr = &listener->attr;
    int error = keep_text(&attr->device, listener->device, sizeof listener->device, "device");
    if (!error)
        error = keep_text(&attr->reliability, listener->reliability, sizeof listener->reliability,
                          "reliability");
    if (!error)
        error =
            keep_text(&attr->congestion, listener->congestion, sizeof listener->congestion, "congestion");
    if (!error)
        error = keep_text(&attr->path_file, listener->path_file, sizeof listener->path_file, "path_file");
    if (!error && attr->worker_cpus && attr->workers != LH_NO_WORKERS) {
        uint32_t count = attr->workers ? attr->workers : 1;
        memcpy(listener->cpus, attr->worker_cpus, count * sizeof *listener->cpus);
        attr->worker_cpus = listener->cpus;
    }
    return error;
}

/* ---- clients ----------------------------------------------------------------------------------------- */

/* early: those without a blob alone. */
static uint32_t clients_open(const struct lh_listener *listener, bool early)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < listener->client_count; i++) {
        const struct rendezvous *handshake = &listener->clients[i]->handshake;
        count += rendezvous_is_open(handshake) && (!early || handshake->state == RENDEZVOUS_BLOB);
    }
    return count;
}

/* Those who have READY, each for a call of lh_accept(), and are not handed over yet; since: opened then or
 * later. */
static uint32_t clients_promised(const struct lh_listener *listener, lh_time since)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < listener->client_count; i++)
        count +=
            listener->clients[i]->handshake.promised && listener->clients[i]->handshake.opened_ns >= since;
    return count;
}

/* Whether a client has answered a ping, and waits for its READY. */
static bool has_proven_client(const struct lh_listener *listener)
{
    for (uint32_t i = 0; i < listener->client_count; i++) {
        const struct rendezvous *handshake = &listener->clients[i]->handshake;
        if (handshake->state == RENDEZVOUS_PENDING && handshake->path && !handshake->promised)
            return true;
    }
    return false;
}

/* What the emulated links of further clients may hold. */
static uint64_t link_room(const struct lh_listener *listener)
{
    uint64_t room = HANDSHAKE_LINK_HELD_MAX;
    for (uint32_t i = 0; i < listener->client_count; i++)
        if (rendezvous_is_open(&listener->clients[i]->handshake))
            room -= rendezvous_link_bytes(&listener->clients[i]->handshake);
    return room;
}

static void forget_client(struct lh_listener *listener, uint32_t index)
{
    free(listener->clients[index]);
    listener->client_count--;
    memmove(&listener->clients[index], &listener->clients[index + 1],
            (listener->client_count - index) * sizeof listener->clients[0]);
}

/* Failures with an open endpoint are, and now and then one of the keys; neither strangers nor clients that
 * left. */
static bool is_reported(struct lh_listener *listener, const struct rendezvous *handshake)
{
    lh_time now = tcp_now();
    if (!listener->attr.on_notice)
        return false;
    if (!handshake->keys_differ || now < listener->key_notice_at)
        return handshake->state == RENDEZVOUS_PATH || handshake->promised;
    listener->key_notice_at = now + KEY_NOTICE_SPAN_NS;
    return true;
}

static void report(struct lh_listener *listener, const struct client *client)
{
    char text[512], others[64] = "";
    const struct lh_attr *attr = &listener->attr;
    listener->other_keys += client->handshake.keys_differ;
    if (!is_reported(listener, &client->handshake))
        return;
    snprintf(text, sizeof text, "%s", lh_last_error());
    if (client->handshake.keys_differ && listener->other_keys >= OTHER_KEYS_MANY)
        snprintf(others, sizeof others, "; %u clients were refused for that reason", listener->other_keys);
    char line[sizeof text + sizeof others + sizeof client->name + 2];
    snprintf(line, sizeof line, "%s: %s%s", client->name, text, others);
    attr->on_notice(attr->notice_context, LH_NOTICE_REFUSED, line);
    lh_fail(LH_EHANDSHAKE, "%s", text);
}

static void wake(struct lh_listener *listener)
{
    uint64_t one = 1;
    /* A full counter means that it is being woken already. */
    while (write(listener->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

/* With the reason in lh_last_error(). */
static void refuse_client(struct lh_listener *listener, uint32_t index)
{
    if (listener->clients[index]->handshake.promised)
        wake(listener); /* another one may get its place */
    report(listener, listener->clients[index]);
    rendezvous_drop(&listener->clients[index]->handshake);
    forget_client(listener, index);
}

/* Refuses the client that admission.h names. False: there is none. */
static bool make_room(struct lh_listener *listener, const struct admission_address *newcomer)
{
    struct admission_place places[CLIENTS_MAX];
    static_assert(CLIENTS_MAX <= ADMISSION_PLACES_MAX, "places of admission.h");
    for (uint32_t i = 0; i < listener->client_count; i++)
        places[i] =
            (struct admission_place){.address = listener->clients[i]->address,
                                     .connection = listener->clients[i]->handshake.fd,
                                     .standing = rendezvous_standing(&listener->clients[i]->handshake),
                                     .arrival = i};
    uint32_t victim = admission_victim(places, listener->client_count, newcomer);
    if (victim == ADMISSION_NONE)
        return false;
    rendezvous_send_cookie(&listener->clients[victim]->handshake);
    lh_fail(LH_EHANDSHAKE, "%s", HANDSHAKE_FULL);
    refuse_client(listener, victim);
    return true;
}

static void name_client(struct client *client)
{
    if (tcp_peer_name(client->handshake.fd, client->name, sizeof client->name) != 0)
        snprintf(client->name, sizeof client->name, "a disconnected client");
}

/* Its handshake has begun. */
static void add_client(struct lh_listener *listener, struct client *client, lh_time now)
{
    name_client(client);
    client->address = admission_address_of(client->handshake.fd);
    client->deadline = now + RENDEZVOUS_TIMEOUT_NS;
    client->busy_at = LH_TIME_NEVER;
    if (listener->client_count == CLIENTS_MAX && !make_room(listener, &client->address)) {
        lh_fail(LH_EHANDSHAKE, "%s", HANDSHAKE_FULL);
        rendezvous_drop(&client->handshake);
        free(client);
        return;
    }
    listener->clients[listener->client_count++] = client;
}

/* Before anything is read of it. */
static void turn_away(struct lh_listener *listener, struct client *client)
{
    name_client(client);
    lh_fail(LH_EHANDSHAKE, "%s", HANDSHAKE_LOOPBACK_ONLY);
    client->handshake.keys_differ = true;
    report(listener, client);
    rendezvous_drop(&client->handshake);
    free(client);
}

static void add_socket(struct lh_listener *listener, int fd, lh_time now)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    rendezvous_accept(&client->handshake, fd, &listener->attr, &listener->key, listener->acceptor);
    if (listener->loopback_only && !tcp_peer_is_local(fd)) {
        turn_away(listener, client);
        return;
    }
    if (rendezvous_accept_secure(&client->handshake, listener->tls)) {
        close(fd);
        free(client);
        return;
    }
    add_client(listener, client, now);
}

static void add_stream(struct lh_listener *listener, struct control_stream *stream, lh_time now)
{
    struct client *client = listener->used ? NULL : calloc(1, sizeof *client);
    if (!client) {
        control_stream_refuse(stream, listener->used ? HANDSHAKE_CODE_USED : HANDSHAKE_FULL);
        return;
    }
    rendezvous_accept_stream(&client->handshake, stream, &listener->attr,
                             tls_context_encryption(listener->tls), now);
    add_client(listener, client, now);
}

static void take_streams(struct lh_listener *listener, lh_time now)
{
    struct control_stream *stream;
    /* What comes meanwhile wakes the thread again. */
    for (uint32_t i = 0; listener->acceptor && i < CONTROL_ACCEPTOR_MAX; i++) {
        stream = control_acceptor_take(listener->acceptor);
        if (!stream)
            break;
        add_stream(listener, stream, now);
    }
}

/* As many as there are places; a full listener takes one, since each client is to be read once before it
 * may have to leave. So none leaves behind one that was just taken: without a descriptor accept() fails
 * even if no client waits. */
static void take_clients(struct lh_listener *listener, lh_time now)
{
    const struct admission_address unknown = {0};
    const uint32_t free_places = CLIENTS_MAX - listener->client_count,
                   accepts = free_places ? free_places : 1;
    for (uint32_t i = 0; i < accepts; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            add_socket(listener, fd, now);
            continue;
        }
        if (i == 0 && tcp_is_exhausted(errno) && !make_room(listener, &unknown))
            nanosleep(&(struct timespec){.tv_nsec = NO_DESCRIPTOR_PAUSE_NS}, NULL);
        break;
    }
}

/* ---- steps ------------------------------------------------------------------------------------------- */

/* After a step that went from one state to another. */
static void set_timers(struct client *client, lh_time now)
{
    bool waits =
        client->handshake.state == RENDEZVOUS_QUEUED || client->handshake.state == RENDEZVOUS_PENDING;
    client->deadline = waits ? LH_TIME_NEVER : now + RENDEZVOUS_TIMEOUT_NS;
    client->busy_at = waits ? now + BUSY_FIRST_NS : LH_TIME_NEVER;
}

static int send_busy(struct client *client, lh_time now)
{
    if (client->busy_at > now || client->handshake.promised)
        return 0;
    client->busy_at = now + BUSY_SPAN_NS;
    return rendezvous_send_busy(&client->handshake);
}

static struct rendezvous_permit permit_of(const struct lh_listener *listener, lh_time now)
{
    uint32_t promised = clients_promised(listener, 0), taken = listener->ready_count + promised;
    uint32_t recent = clients_promised(listener, now - lh_min(now, PROMISE_NS));
    bool is_over = listener->used || (listener->once && promised > 0);
    bool opens =
        listener->wanting > listener->ready_count && clients_open(listener, false) < OPEN_MAX && !is_over;
    return (struct rendezvous_permit){
        .open = opens,
        .open_early = opens && clients_open(listener, true) < OPEN_EARLY_MAX,
        .link_room = link_room(listener),
        .finish = listener->accepting > listener->ready_count + recent && taken < CLIENTS_MAX && !is_over,
        .promise =
            listener->accepting > taken && taken < CLIENTS_MAX && !is_over && !has_proven_client(listener),
    };
}

/* 1: handed over; 0: goes on; or the error with which it is refused. */
static int step_client(struct lh_listener *listener, struct client *client, lh_time now)
{
    struct rendezvous *handshake = &client->handshake;
    enum rendezvous_state before = handshake->state;
    int done = rendezvous_step(handshake, permit_of(listener, now), now);
    if (done < 0)
        return done;
    if (listener->used && handshake->state != RENDEZVOUS_PROPOSAL) /* it has the code, too */
        return lh_fail(LH_EHANDSHAKE, "%s", HANDSHAKE_CODE_USED);
    if (done) {
        listener->used = listener->once;
        listener->ready[listener->ready_count++] = rendezvous_done(handshake);
        pthread_cond_broadcast(&listener->changed);
        return 1;
    }
    /* A proposal and a blob share one timeout. */
    if (handshake->state != before && handshake->state != RENDEZVOUS_BLOB)
        set_timers(client, now);
    if (client->deadline <= now)
        return lh_fail(LH_ETIMEDOUT, "the handshake took longer than %llu s",
                       (unsigned long long)(RENDEZVOUS_TIMEOUT_NS / LH_NS_PER_S));
    return send_busy(client, now);
}

static void step_clients(struct lh_listener *listener, lh_time now)
{
    for (uint32_t i = 0; i < listener->client_count;) {
        int done = step_client(listener, listener->clients[i], now);
        if (done < 0)
            refuse_client(listener, i);
        else if (done > 0)
            forget_client(listener, i);
        else
            i++;
    }
    /* Those who only waited for a handshake that was under way. */
    if (listener->accepting > listener->wanting)
        pthread_cond_broadcast(&listener->changed);
}

/* ---- the thread -------------------------------------------------------------------------------------- */

static lh_time next_step(const struct lh_listener *listener, lh_time now)
{
    lh_time next = now + THREAD_SPAN_MAX_NS;
    for (uint32_t i = 0; i < listener->client_count; i++) {
        const struct client *client = listener->clients[i];
        lh_keep_earlier(&next, client->deadline);
        lh_keep_earlier(&next, client->busy_at);
        lh_keep_earlier(&next, rendezvous_next_ns(&client->handshake, now));
    }
    return next > now ? next - now : 0;
}

/* Without workers streams come, and go on, with the progress that this thread makes during lh_accept(). */
static bool brings_streams(const struct lh_listener *listener)
{
    return listener->acceptor && listener->attr.workers == LH_NO_WORKERS && listener->accepting > 0 &&
           control_acceptor_users(listener->acceptor) > 0;
}

/* Sleeps until there is a new client, a frame of one, a timer, or a call. */
static void sleep_and_take(struct lh_listener *listener)
{
    struct pollfd fds[CLIENTS_MAX + 2] = {{.fd = listener->fd, .events = POLLIN},
                                          {.fd = listener->wake_fd, .events = POLLIN}};
    nfds_t count = 2;
    for (uint32_t i = 0; i < listener->client_count; i++)
        /* Frames of streams wake the thread otherwise. */
        if (!listener->clients[i]->handshake.stream && rendezvous_reads(&listener->clients[i]->handshake))
            fds[count++] = (struct pollfd){.fd = listener->clients[i]->handshake.fd, .events = POLLIN};
    lh_time span = next_step(listener, tcp_now());
    if (brings_streams(listener))
        span = lh_min(span, PROGRESS_SPAN_NS);
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    pthread_mutex_unlock(&listener->lock);
    int ready = ppoll(fds, count, &timeout, NULL);
    int failed = ready < 0 && errno != EINTR ? errno : 0;
    pthread_mutex_lock(&listener->lock);
    if (failed)
        listener->error = failed;
    uint64_t drained;
    if (ready > 0 && fds[1].revents)
        while (read(listener->wake_fd, &drained, sizeof drained) < 0 && errno == EINTR)
            continue;
    if (ready > 0 && fds[0].revents & POLLIN)
        take_clients(listener, tcp_now());
}

static void *listener_main(void *argument)
{
    struct lh_listener *listener = argument;
    prctl(PR_SET_NAME, "lh-listener");
    pthread_mutex_lock(&listener->lock);
    while (!listener->stop && !listener->error) {
        if (brings_streams(listener))
            lh_engine_progress(listener->attr.engine, NULL);
        if (listener->acceptor && listener->client_count == CLIENTS_MAX)
            step_clients(listener, tcp_now()); /* each is read before a stream may take its place */
        take_streams(listener, tcp_now());
        step_clients(listener, tcp_now());
        sleep_and_take(listener);
    }
    pthread_cond_broadcast(&listener->changed);
    pthread_mutex_unlock(&listener->lock);
    return NULL;
}

static int open_acceptor(struct lh_listener *listener)
{
    listener->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listener->wake_fd < 0)
        return lh_fail(LH_ESYSTEM, "eventfd: %s", strerror(errno));
    if (!listener->attr.engine)
        return 0;
    listener->acceptor = control_acceptor_create(listener->wake_fd);
    if (listener->acceptor)
        return 0;
    close(listener->wake_fd);
    return lh_fail(LH_ENOMEM, "no memory for a listener");
}

static int start_thread(struct lh_listener *listener)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&listener->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&listener->lock, NULL);
    /* The program's signal handlers run in the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&listener->thread, NULL, listener_main, listener);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        return 0;
    pthread_mutex_destroy(&listener->lock);
    pthread_cond_destroy(&listener->changed);
    return lh_fail(LH_ESYSTEM, "cannot start the thread of a listener: %s", strerror(failed));
}

/* ---- calls ------------------------------------------------------------------------------------------- */

int lh_listen(const char *where, const struct lh_attr *given, struct lh_listener **out)
{
    struct lh_listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return lh_fail(LH_ENOMEM, "no memory for a listener");
    int error = attr_check(given, &listener->attr);
    if (!error)
        error = engine_settle(&listener->attr);
    if (!error)
        error = handshake_link_check(&listener->attr.link);
    if (!error)
        error = keep_attr(listener);
    if (!error)
        error = admission_random(&listener->key, sizeof listener->key);
    if (!error)
        error = check_device(&listener->attr);
    if (!error)
        error = tls_context_create(listener->attr.security, &listener->tls);
    listener->loopback_only = !listener->tls && has_loopback_only(&listener->attr);
    listener->once = listener->tls && listener->attr.security->code;
    listener->attr.security = NULL; /* the caller's */
    if (!error)
        error = tcp_listen(where, &listener->fd, &listener->port);
    if (error)
        goto free_listener;
    listener->forks = engine_forks();
    error = open_acceptor(listener);
    if (error)
        goto close_socket;
    error = start_thread(listener);
    if (error)
        goto close_acceptor;
    engine_count_listener(listener->attr.engine, 1);
    *out = listener;
    return 0;
close_acceptor:
    control_acceptor_release(listener->acceptor);
    close(listener->wake_fd);
close_socket:
    close(listener->fd);
free_listener:
    tls_context_free(listener->tls);
    free(listener);
    return error;
}

uint16_t lh_listener_port(const struct lh_listener *listener)
{
    return listener->port;
}

/* Nobody wakes the listener for a stream any more. */
static void close_acceptor(struct lh_listener *listener)
{
    struct control_stream *stream;
    if (!listener->acceptor)
        return;
    control_acceptor_close(listener->acceptor);
    while ((stream = control_acceptor_take(listener->acceptor)) != NULL) /* at most CONTROL_ACCEPTOR_MAX */
        control_stream_refuse(stream, HANDSHAKE_CLOSED);
    control_acceptor_release(listener->acceptor);
}

void lh_listener_close(struct lh_listener *listener)
{
    if (!listener || listener->forks != engine_forks())
        return;
    pthread_mutex_lock(&listener->lock);
    listener->stop = true;
    pthread_mutex_unlock(&listener->lock);
    wake(listener);
    pthread_join(listener->thread, NULL);
    lh_fail(LH_EHANDSHAKE, "%s", HANDSHAKE_CLOSED);
    close_acceptor(listener);
    while (listener->client_count > 0) {
        rendezvous_drop(&listener->clients[0]->handshake);
        forget_client(listener, 0);
    }
    for (uint32_t i = 0; i < listener->ready_count; i++)
        lh_close(listener->ready[i]);
    close(listener->wake_fd);
    close(listener->fd);
    engine_count_listener(listener->attr.engine, -1);
    pthread_cond_destroy(&listener->changed);
    pthread_mutex_destroy(&listener->lock);
    tls_context_free(listener->tls);
    free(listener);
}

/* Whether a handshake was begun for those who call lh_accept(). */
static bool has_work(const struct lh_listener *listener)
{
    for (uint32_t i = 0; i < listener->client_count; i++)
        if (listener->clients[i]->handshake.state == RENDEZVOUS_PATH ||
            listener->clients[i]->handshake.promised)
            return true;
    return false;
}

static void wait_for_change(struct lh_listener *listener, lh_time deadline)
{
    struct timespec until = {(time_t)(deadline / LH_NS_PER_S), (long)(deadline % LH_NS_PER_S)};
    if (deadline == LH_TIME_NEVER)
        pthread_cond_wait(&listener->changed, &listener->lock);
    else
        pthread_cond_timedwait(&listener->changed, &listener->lock, &until);
}

static bool over(const struct lh_listener *listener)
{
    return listener->ready_count > 0 || listener->error || listener->used;
}

/* Waits until there is a connection, or none to be expected. With the lock held. */
static void await(struct lh_listener *listener, lh_time deadline)
{
    listener->accepting++;
    listener->wanting++;
    wake(listener);
    while (!over(listener) && tcp_now() < deadline)
        wait_for_change(listener, deadline);
    listener->wanting--;
    while (!over(listener) && has_work(listener)) /* each has a deadline */
        wait_for_change(listener, LH_TIME_NEVER);
    listener->accepting--;
}

static int none_accepted(const struct lh_listener *listener)
{
    if (listener->error)
        return lh_fail(LH_ESYSTEM, "poll: %s", strerror(listener->error));
    return listener->used ? lh_fail(LH_ECLOSED, "%s", HANDSHAKE_CODE_USED)
                          : lh_fail(LH_ETIMEDOUT, "no client connected in time");
}

int lh_accept(struct lh_listener *listener, lh_time timeout_ns, struct lh_connection **connection)
{
    int error = 0;
    if (listener->forks != engine_forks())
        return lh_fail(LH_ESTATE, "listener belongs to the parent process (open another here)");
    pthread_mutex_lock(&listener->lock);
    await(listener, tcp_deadline(timeout_ns));
    if (listener->ready_count > 0)
        *connection = listener->ready[--listener->ready_count];
    else
        error = none_accepted(listener);
    pthread_mutex_unlock(&listener->lock);
    return error;
}

/* ---- connect --------------------------------------------------------------------------------------- */

/* Between tries at a full listener: a cookie lets the next one in where strangers fill it. The last is the
 * interval of BUSY for clients that wait. */
#define FULL_PAUSE_FIRST_NS (LH_NS_PER_S / 16)
#define FULL_PAUSE_MAX_NS   LH_NS_PER_S

struct attempt {
    const char *where;
    struct lh_attr attr;
    lh_time timeout_ns;
    lh_time deadline;
    uint32_t busy; /* notices that were forwarded */
    lh_time pause_ns;
    bool has_cookie;
    uint8_t cookie[ADMISSION_COOKIE_BYTES];
    struct tls_context *tls; /* NULL: no key, clear text */
    bool loopback_only;      /* without a key */
    int wake_fd;             /* an eventfd for a stream's frames; -1: none was needed so far */
};

static void report_busy(struct attempt *attempt)
{
    const struct lh_attr *attr = &attempt->attr;
    if (attr->on_notice && attr->on_notice(attr->notice_context, LH_NOTICE_BUSY, attempt->where))
        attempt->deadline = tcp_deadline(attempt->timeout_ns);
}

static void forward_busy(struct attempt *attempt, const struct rendezvous *r)
{
    if (attempt->busy == r->busy)
        return;
    attempt->busy = r->busy;
    report_busy(attempt);
}

/* The listener is full. Whether there is time for another try, after a pause. */
static bool may_retry(struct attempt *attempt)
{
    report_busy(attempt);
    lh_time now = tcp_now();
    lh_time pause = attempt->pause_ns;
    attempt->pause_ns = 2 * pause < FULL_PAUSE_MAX_NS ? 2 * pause : FULL_PAUSE_MAX_NS;
    if (attempt->deadline <= now || attempt->deadline - now <= pause)
        return false;
    nanosleep(&(struct timespec){(time_t)(pause / LH_NS_PER_S), (long)(pause % LH_NS_PER_S)}, NULL);
    return true;
}

static int too_late(const struct attempt *attempt, const struct rendezvous *r)
{
    if (attempt->busy)
        return lh_fail(LH_ETIMEDOUT, "%s is busy with another connection (wait longer)", attempt->where);
    if (r->state == RENDEZVOUS_PATH && !r->path)
        return lh_fail(LH_ETIMEDOUT, "%s: %s", attempt->where, RENDEZVOUS_NO_UDP);
    return lh_fail(LH_ETIMEDOUT, "%s did not answer in time", attempt->where);
}

static void drain(int wake_fd)
{
    uint64_t drained;
    while (read(wake_fd, &drained, sizeof drained) < 0 && errno == EINTR)
        continue;
}

/* Steps until the connection stands: 0; or why it does not. */
static int drive(struct attempt *attempt, struct rendezvous *r)
{
    const struct rendezvous_permit all = {.open = true, .finish = true};
    for (;;) { /* until the deadline */
        lh_time now = tcp_now();
        int done = rendezvous_step(r, all, now);
        if (done)
            return done < 0 ? done : 0;
        forward_busy(attempt, r);
        if (now >= attempt->deadline)
            return too_late(attempt, r);
        int fd = r->stream ? attempt->wake_fd : rendezvous_reads(r) ? r->fd : -1;
        int error = tcp_wait(fd, false, lh_earlier(attempt->deadline, rendezvous_next_ns(r, now)));
        if (r->stream)
            drain(attempt->wake_fd);
        if (error && error != -LH_ETIMEDOUT)
            return error;
    }
}

/* The kernel completes connections that the listener never takes, and resets them when it closes. */
static int not_taken(const char *where)
{
    return lh_fail(
        LH_EPEER, "%s: connection refused: the listener closed before it answered (start it again)", where);
}

/* What the peer asks for in place of the try that failed. */
struct remedy {
    bool older; /* another try in an older version */
    bool later; /* another try */
    bool stale; /* another try over a TCP connection of its own: the other one, or its listener, is gone */
};

/* Begins the handshake over a TCP connection of its own, in that version. */
static int begin_alone(struct attempt *attempt, uint8_t version, struct rendezvous *r)
{
    int fd;
    int error = tcp_connect(attempt->where, attempt->deadline, &fd);
    *r = (struct rendezvous){.fd = -1};
    if (error)
        return error;
    if (attempt->loopback_only)
        error = tcp_require_local(fd, HANDSHAKE_LOOPBACK_ONLY);
    if (error) {
        close(fd);
        return error == -LH_EPEER ? not_taken(attempt->where) : error;
    }
    const uint8_t *cookie = attempt->has_cookie ? attempt->cookie : NULL;
    return rendezvous_connect(r, fd, &attempt->attr, version, cookie, attempt->where, attempt->tls);
}

/* A stream of a control connection that its engine has to there; NULL: there is none. */
static struct control_stream *open_stream(struct attempt *attempt)
{
    if (!attempt->attr.engine || attempt->loopback_only) /* it may lead to another host */
        return NULL;
    if (attempt->wake_fd < 0)
        attempt->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return attempt->wake_fd < 0 ? NULL
                                : control_stream_open(attempt->attr.engine, attempt->where,
                                                      tls_context_identity(attempt->tls), attempt->wake_fd);
}

/* One try, over a stream where there is one and `shared`. */
static int try_once(struct attempt *attempt, uint8_t version, bool shared, struct remedy *remedy,
                    struct lh_connection **connection)
{
    struct rendezvous r;
    struct control_stream *stream = shared ? open_stream(attempt) : NULL;
    int error = stream ? rendezvous_connect_stream(&r, stream, &attempt->attr,
                                                   tls_context_encryption(attempt->tls), tcp_now())
                       : begin_alone(attempt, version, &r);
    if (!error)
        error = drive(attempt, &r);
    bool unheard = error == -LH_EPEER && r.state == RENDEZVOUS_PROPOSAL;
    if (unheard && !stream && r.fd >= 0)
        error = not_taken(attempt->where);
    *remedy = (struct remedy){.older = error && r.older,
                              .later = error && r.full,
                              .stale = stream && error && (unheard || r.closed)};
    if (error && r.has_cookie) {
        attempt->has_cookie = true;
        memcpy(attempt->cookie, r.cookie, sizeof r.cookie);
    }
    if (remedy->stale)
        control_stream_open_no_more(stream);
    if (error && r.fd >= 0)
        rendezvous_drop(&r);
    else if (!error)
        *connection = rendezvous_done(&r);
    return error;
}

static int try_all(struct attempt *attempt, struct lh_connection **connection)
{
    struct remedy remedy;
    uint8_t version = HANDSHAKE_VERSION;
    bool shared = true;
    for (;;) { /* until the deadline */
        int error = try_once(attempt, version, shared, &remedy, connection);
        shared = !remedy.stale;
        if (remedy.older && version > HANDSHAKE_VERSION_MIN)
            version--;
        else if (!remedy.stale && (!remedy.later || !may_retry(attempt)))
            return error;
    }
}

int lh_connect(const char *where, const struct lh_attr *given, lh_time timeout_ns,
               struct lh_connection **connection)
{
    struct attempt attempt = {.where = where,
                              .timeout_ns = timeout_ns,
                              .deadline = tcp_deadline(timeout_ns),
                              .pause_ns = FULL_PAUSE_FIRST_NS,
                              .wake_fd = -1};
    int error = attr_check(given, &attempt.attr);
    if (!error)
        error = engine_settle(&attempt.attr);
    if (!error)
        error = check_device(&attempt.attr);
    if (!error)
        error = tls_context_create(attempt.attr.security, &attempt.tls);
    attempt.loopback_only = !error && !attempt.tls && has_loopback_only(&attempt.attr);
    if (!error)
        error = try_all(&attempt, connection);
    tls_context_free(attempt.tls);
    if (attempt.wake_fd >= 0)
        close(attempt.wake_fd);
    return error;
}
