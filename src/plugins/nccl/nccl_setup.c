/*
 * nccl_setup.c - what a process opens, and how two processes connect.
 *
 * A device that NCCL uses is opened once: an engine, which all its comms share, a listener for all its listen
 * comms, and a thread that accepts. A handle has the listener's address and a token of the listen comm; the
 * connecting side sends the token in the tag of its first message.
 *
 * lh_accept and lh_connect wait for the peer, NCCL's calls must not: the accepting thread waits for clients,
 * and each connect has a thread of its own while it lasts. NCCL's calls look at the results.
 *
 * A third thread, the closer, ends comms: NCCL may close a comm as soon as its sends are done, which is
 * before they have arrived. At the end of the process the closer gets CLOSE_TIMEOUT_S for that.
 *
 * One lock covers all of it. The library stays loaded after dlclose (-z nodelete): its threads would lose
 * their code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/nccl/nccl_plugin.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define ACCEPT_TURN_NS     (100 * LH_NS_PER_MS)
#define CONNECT_TIMEOUT_NS (60 * LH_NS_PER_S)
#define CLOSE_TIMEOUT_S    10
#define CLOSE_TURN_NS      1000000
/* An accepted client that sends no token, and a connect that NCCL gave up. */
#define ORPHAN_TIMEOUT_S 60
/* As many as a listener admits before they are accepted. NCCL repeats the calls beyond. */
#define CONNECTS_MAX 8
/* Accepted clients without token: a further one takes the place of the oldest. So strangers do not stop the
 * acceptor. Those with a token of a listen comm, which only its peers know, are not counted: NCCL may accept
 * them late. As many of those that are over wait for the closer. */
#define STRANGERS_MAX 64

/* ---- handle -------------------------------------------------------------------------------------------- */

static const char MAGIC[8] = "LHNCCL1"; /* 1: of the form of handles and of frames */

/* Little endian, as all hosts that NCCL runs on. */
struct handle {
    char magic[8];
    uint32_t frame_bytes, frames; /* the landing place */
    uint64_t token;               /* never 0 */
    char where[80];               /* of the listener, "192.0.2.7:40000" */
};
_Static_assert(sizeof(struct handle) <= NCCL_HANDLE_BYTES, "NCCL copies no more");

/* ---- state --------------------------------------------------------------------------------------------- */

struct client {
    struct client *next;
    struct lh_connection *connection;
    struct lh_request *hello;
    uint64_t token; /* 0: none yet */
    bool is_over;   /* it failed, or no listen comm has its token: the closer ends it */
    time_t since_s;
};

struct listen_comm {
    struct listen_comm *next;
    struct opened *opened;
    uint64_t token;
};

struct opened {
    bool is_open;
    struct lh_engine *engine;
    struct lh_listener *listener;
    bool has_acceptor, is_broken; /* broken: the listener accepts no more */
    int listen_comms, silent, over;
    struct client *clients; /* the oldest first */
};

/* A connect of NCCL that its thread runs. */
struct attempt {
    struct attempt *next;
    const void *key; /* address of NCCL's handle, which it passes again */
    struct handle handle;
    struct opened *opened;
    bool is_done;
    int result;
    struct nccl_comm *comm;
    time_t since_s;
};

struct closing {
    struct closing *next;
    struct nccl_comm *comm;
    time_t since_s;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_ready, has_closer, is_ending;
    struct nccl_settings settings;
    struct plugin_device devices[PLUGIN_DEVICES_MAX];
    struct opened opened[PLUGIN_DEVICES_MAX];
    int count;
    struct listen_comm *listens;
    struct attempt *attempts;
    int attempts_running;
    struct closing *closing;
    int comms; /* and those that are being closed */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ---- the closer ---------------------------------------------------------------------------------------- */

static bool must_end(const struct closing *closing)
{
    return nccl_comm_is_drained(closing->comm) || now_s() - closing->since_s >= CLOSE_TIMEOUT_S;
}

/* Takes what is over from the lists. */
static struct closing *take_closing(void)
{
    for (struct closing **at = &plugin.closing; *at; at = &(*at)->next)
        if (must_end(*at)) {
            struct closing *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

static struct client *take_orphan(void)
{
    for (int i = 0; i < plugin.count; i++)
        for (struct client **at = &plugin.opened[i].clients; *at; at = &(*at)->next)
            if ((*at)->is_over || (!(*at)->token && now_s() - (*at)->since_s >= ORPHAN_TIMEOUT_S)) {
                struct client *found = *at;
                *at = found->next;
                plugin.opened[i].over -= found->is_over;
                plugin.opened[i].silent -= !found->is_over;
                return found;
            }
    return NULL;
}

static struct attempt *take_abandoned(void)
{
    for (struct attempt **at = &plugin.attempts; *at; at = &(*at)->next)
        if ((*at)->is_done && (plugin.is_ending || now_s() - (*at)->since_s >= ORPHAN_TIMEOUT_S)) {
            struct attempt *found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

static void client_free(struct client *client)
{
    lh_close(client->connection);
    lh_request_free(client->hello);
    free(client);
}

/* Ends one thing that is over, without the lock meanwhile. Returns false if there is none. */
static bool end_one(void)
{
    struct closing *closing = take_closing();
    struct client *client = closing ? NULL : take_orphan();
    struct attempt *attempt = closing || client ? NULL : take_abandoned();
    struct nccl_comm *comm = closing ? closing->comm : attempt ? attempt->comm : NULL;
    if (!closing && !client && !attempt)
        return false;
    pthread_mutex_unlock(&plugin.lock);
    if (client) {
        nccl_log(NCCL_LOG_INFO, "%s: refused: it has sent no token of a listen comm",
                 lh_peer_name(client->connection));
        client_free(client);
    }
    if (comm)
        nccl_comm_destroy(comm);
    free(closing);
    free(attempt);
    pthread_mutex_lock(&plugin.lock);
    plugin.comms -= comm != NULL;
    pthread_cond_broadcast(&plugin.changed);
    return true;
}

/* Sleeps until something changes; while something waits for its time, for a turn. */
static void closer_sleep(bool is_busy)
{
    bool has_orphans = plugin.attempts != NULL;
    for (int i = 0; i < plugin.count; i++)
        has_orphans |= plugin.opened[i].clients != NULL;
    if (!is_busy && !has_orphans) {
        pthread_cond_wait(&plugin.changed, &plugin.lock);
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += CLOSE_TURN_NS;
    if (!is_busy || until.tv_nsec >= (long)LH_NS_PER_S) {
        until.tv_sec++;
        until.tv_nsec -= is_busy ? (long)LH_NS_PER_S : CLOSE_TURN_NS;
    }
    pthread_cond_timedwait(&plugin.changed, &plugin.lock, &until);
}

static void *closer_run(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&plugin.lock);
    for (;;) {
        if (end_one())
            continue;
        if (plugin.is_ending && !plugin.closing)
            break;
        closer_sleep(plugin.closing != NULL);
    }
    plugin.has_closer = false;
    pthread_cond_broadcast(&plugin.changed);
    pthread_mutex_unlock(&plugin.lock);
    return NULL;
}

static int start_thread(void *(*run)(void *), void *context)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, context);
    if (error) {
        nccl_log(NCCL_LOG_WARN, "thread: %s", strerror(error));
        return NCCL_SYSTEM_ERROR;
    }
    pthread_detach(thread);
    return NCCL_SUCCESS;
}

int nccl_setup_close(void *comm)
{
    if (!comm || nccl_is_inherited())
        return NCCL_SUCCESS;
    struct closing *closing = malloc(sizeof *closing);
    if (!closing) { /* then the caller waits, which is short unless the peer is far */
        nccl_comm_destroy(comm);
        pthread_mutex_lock(&plugin.lock);
        plugin.comms--;
        pthread_mutex_unlock(&plugin.lock);
        return NCCL_SUCCESS;
    }
    *closing = (struct closing){.comm = comm, .since_s = now_s()};
    pthread_mutex_lock(&plugin.lock);
    closing->next = plugin.closing;
    plugin.closing = closing;
    pthread_cond_broadcast(&plugin.changed);
    pthread_mutex_unlock(&plugin.lock);
    return NCCL_SUCCESS;
}

/* ---- accepted clients ---------------------------------------------------------------------------------- */

static void end_client(struct opened *opened, struct client *client)
{
    client->is_over = true;
    opened->over++;
    pthread_cond_broadcast(&plugin.changed);
}

static bool is_listening(const struct opened *opened, uint64_t token)
{
    const struct listen_comm *listen = plugin.listens;
    while (listen && (listen->opened != opened || listen->token != token))
        listen = listen->next;
    return listen != NULL;
}

/* With the lock. Reads the tokens that have come. */
static void judge_clients(struct opened *opened)
{
    for (struct client *client = opened->clients; client && opened->silent > 0; client = client->next) {
        struct lh_result hello = {0};
        if (client->token || client->is_over || lh_test(client->hello, &hello) != 1)
            continue;
        opened->silent--;
        client->token = hello.error ? 0 : hello.tag;
        if (!client->token || !is_listening(opened, client->token))
            end_client(opened, client);
    }
}

static void make_room(struct opened *opened)
{
    struct client *client = opened->clients;
    while (client && (client->token || client->is_over))
        client = client->next;
    if (client && opened->silent >= STRANGERS_MAX) {
        opened->silent--;
        end_client(opened, client);
    }
}

/* ---- opening a device ---------------------------------------------------------------------------------- */

/* Takes a client that lh_accept has returned. */
static void add_client(struct opened *opened, struct lh_connection *connection)
{
    struct client *client = calloc(1, sizeof *client);
    struct lh_message hello = {0};
    if (!client || lh_recvmsg(connection, &hello, &client->hello)) {
        nccl_log(NCCL_LOG_WARN, "accept: %s", client ? lh_last_error() : "out of memory");
        lh_close(connection);
        free(client);
        return;
    }
    client->connection = connection;
    client->since_s = now_s();
    pthread_mutex_lock(&plugin.lock);
    make_room(opened);
    struct client **end = &opened->clients;
    while (*end)
        end = &(*end)->next;
    *end = client;
    opened->silent++;
    pthread_cond_broadcast(&plugin.changed);
    pthread_mutex_unlock(&plugin.lock);
}

static void *acceptor_run(void *context)
{
    struct opened *opened = context;
    pthread_mutex_lock(&plugin.lock);
    while (!plugin.is_ending && !opened->is_broken) {
        judge_clients(opened);
        if (opened->listen_comms == 0 || opened->over >= STRANGERS_MAX) {
            pthread_cond_wait(&plugin.changed, &plugin.lock);
            continue;
        }
        pthread_mutex_unlock(&plugin.lock);
        struct lh_connection *connection = NULL;
        int error = lh_accept(opened->listener, ACCEPT_TURN_NS, &connection);
        if (!error)
            add_client(opened, connection);
        else if (error != -LH_ETIMEDOUT)
            nccl_log(NCCL_LOG_WARN, "accept: %s", lh_last_error());
        pthread_mutex_lock(&plugin.lock);
        opened->is_broken = error && error != -LH_ETIMEDOUT;
    }
    opened->has_acceptor = false;
    pthread_cond_broadcast(&plugin.changed);
    pthread_mutex_unlock(&plugin.lock);
    return NULL;
}

static bool on_notice(void *context, enum lh_notice notice, const char *text)
{
    (void)context;
    if (notice == LH_NOTICE_REFUSED)
        nccl_log(NCCL_LOG_INFO, "refused %s", text);
    return true;
}

static int listen_at(const struct plugin_device *device, struct lh_engine *engine,
                     struct lh_listener **listener)
{
    struct lh_attr attr;
    struct lh_security security;
    char where[96];
    nccl_settings_attr(&plugin.settings, &attr, &security);
    attr.engine = engine;
    attr.device = engine ? NULL : device->name;
    attr.on_notice = on_notice;
    snprintf(where, sizeof where, "%s:0", device->address);
    if (!lh_listen(where, &attr, listener))
        return NCCL_SUCCESS;
    nccl_log(NCCL_LOG_WARN, "%s: %s", device->interface, lh_last_error());
    return NCCL_SYSTEM_ERROR;
}

/* With the lock. Opens the device at the first call. */
static int open_device(int index, struct opened **out)
{
    struct opened *opened = &plugin.opened[index];
    *out = opened;
    if (opened->is_open)
        return NCCL_SUCCESS;
    struct lh_engine_attr attr;
    lh_engine_attr_init(&attr);
    attr.device = plugin.devices[index].name;
    attr.rate_bps = plugin.settings.shared.rate_bps;
    if (lh_engine_create(&attr, &opened->engine)) {
        nccl_log(NCCL_LOG_WARN, "%s: %s", plugin.devices[index].interface, lh_last_error());
        return NCCL_SYSTEM_ERROR;
    }
    int result = listen_at(&plugin.devices[index], opened->engine, &opened->listener);
    if (!result && !plugin.has_closer) {
        result = start_thread(closer_run, NULL);
        plugin.has_closer = !result;
    }
    if (!result)
        result = start_thread(acceptor_run, opened);
    if (result) {
        if (opened->listener)
            lh_listener_close(opened->listener);
        lh_engine_destroy(opened->engine);
        *opened = (struct opened){0};
        return result;
    }
    opened->is_open = opened->has_acceptor = true;
    return NCCL_SUCCESS;
}

/* ---- init, devices ------------------------------------------------------------------------------------- */

/* Tries what the settings say, before NCCL relies on it: a key that cannot be read, say. */
static int try_settings(void)
{
    struct lh_listener *listener = NULL;
    int result = listen_at(&plugin.devices[0], NULL, &listener);
    if (!result)
        lh_listener_close(listener);
    return result;
}

static void tell_start(int version)
{
    const struct nccl_settings *settings = &plugin.settings;
    char names[512] = "", window[32], advice[128] = "";
    size_t used = 0;
    for (int i = 0; i < plugin.count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s %s", i ? ", " : "",
                                 plugin.devices[i].interface, plugin.devices[i].address);
    if (settings->shared.rate_bps && settings->rtt_ns) {
        /* A channel carries half a window a round trip, when a repair takes a second one. */
        double flight = (double)settings->shared.rate_bps / 8 * (double)settings->rtt_ns / 1e9;
        double channels = 2 * flight / (double)settings->window_bytes;
        unsigned count = channels < 1 ? 1 : channels > 64 ? 64 : (unsigned)channels + 1;
        snprintf(advice, sizeof advice, "; for this path: NCCL_MIN_NCHANNELS=%u or more", count);
    }
    nccl_log(NCCL_LOG_INFO,
             "Longhaul %s, table v%d: %s; reliability %s, congestion %s, window %s a connection%s%s%s%s",
             lh_version(), version, names, settings->shared.reliability,
             *settings->shared.congestion ? settings->shared.congestion : "default",
             lh_format_size(settings->window_bytes, window, sizeof window),
             *settings->shared.key_file ? ", key " : "", settings->shared.key_file,
             lh_link_is_none(&settings->shared.link) ? "" : ", emulated link", advice);
}

int nccl_setup_init(nccl_logger logger, int version)
{
    int result = NCCL_SUCCESS;
    nccl_log_to(logger);
    if (nccl_is_inherited())
        return nccl_refuse_child();
    pthread_mutex_lock(&plugin.lock);
    if (!plugin.is_ready) {
        result = nccl_settings_read(&plugin.settings);
        if (!result)
            result = nccl_settings_devices(&plugin.settings, plugin.devices, &plugin.count);
        if (!result)
            result = try_settings();
        if (!result && nccl_watch_forks())
            result = NCCL_SYSTEM_ERROR;
        if (!result) {
            plugin.is_ready = true;
            tell_start(version);
        }
    }
    pthread_mutex_unlock(&plugin.lock);
    return result;
}

int nccl_setup_devices(int *count)
{
    if (nccl_is_inherited())
        return nccl_refuse_child();
    pthread_mutex_lock(&plugin.lock);
    *count = plugin.count;
    pthread_mutex_unlock(&plugin.lock);
    return NCCL_SUCCESS;
}

/* Devices do not change after init. */
static int check_device(int index, const char *call)
{
    if (plugin.is_ready && index >= 0 && index < plugin.count)
        return NCCL_SUCCESS;
    nccl_log(NCCL_LOG_WARN, "%s: device %d: out of range (there are %d)", call, index, plugin.count);
    return NCCL_INVALID_USAGE;
}

int nccl_setup_properties(int index, struct nccl_properties *properties)
{
    if (nccl_is_inherited())
        return nccl_refuse_child();
    pthread_mutex_lock(&plugin.lock);
    int result = check_device(index, "getProperties");
    if (!result) {
        int speed = plugin_speed(plugin.settings.shared.rate_bps);
        *properties = (struct nccl_properties){
            .device = &plugin.devices[index],
            .index = index,
            .speed = speed ? speed : plugin.devices[index].speed,
            .latency = (float)plugin.settings.rtt_ns / 2 / (float)LH_NS_PER_US,
        };
    }
    pthread_mutex_unlock(&plugin.lock);
    return result;
}

/* ---- listen, accept ------------------------------------------------------------------------------------ */

static uint64_t new_token(void)
{
    uint64_t token = 0;
    while (token == 0) /* again once in 2^64 times */
        if (getrandom(&token, sizeof token, 0) != sizeof token)
            return 0;
    return token;
}

/* With the lock. */
static int listen_now(int index, struct handle *handle, void **out)
{
    struct opened *opened = NULL;
    int result = check_device(index, "listen");
    if (!result)
        result = open_device(index, &opened);
    if (result)
        return result;
    struct listen_comm *listen = malloc(sizeof *listen);
    uint64_t token = new_token();
    if (!listen || !token) {
        nccl_log(NCCL_LOG_WARN, "listen: out of memory");
        free(listen);
        return NCCL_SYSTEM_ERROR;
    }
    *listen = (struct listen_comm){.next = plugin.listens, .opened = opened, .token = token};
    plugin.listens = listen;
    opened->listen_comms++;
    pthread_cond_broadcast(&plugin.changed);
    struct nccl_landing landing = nccl_landing_for(plugin.settings.window_bytes);
    *handle = (struct handle){.frame_bytes = landing.frame_bytes, .frames = landing.frames, .token = token};
    memcpy(handle->magic, MAGIC, sizeof handle->magic);
    snprintf(handle->where, sizeof handle->where, "%s:%u", plugin.devices[index].address,
             lh_listener_port(opened->listener));
    *out = listen;
    return NCCL_SUCCESS;
}

int nccl_setup_listen(int device, void *out, void **listen_comm)
{
    struct handle handle;
    *listen_comm = NULL;
    if (nccl_is_inherited())
        return nccl_refuse_child();
    pthread_mutex_lock(&plugin.lock);
    int result = listen_now(device, &handle, listen_comm);
    pthread_mutex_unlock(&plugin.lock);
    if (!result) {
        memset(out, 0, NCCL_HANDLE_BYTES);
        memcpy(out, &handle, sizeof handle);
    }
    return result;
}

int nccl_setup_close_listen(void *comm)
{
    struct listen_comm *listen = comm;
    if (nccl_is_inherited())
        return NCCL_SUCCESS;
    pthread_mutex_lock(&plugin.lock);
    for (struct listen_comm **at = &plugin.listens; listen && *at; at = &(*at)->next)
        if (*at == listen) {
            *at = listen->next;
            listen->opened->listen_comms--;
            for (struct client *client = listen->opened->clients; client; client = client->next)
                if (client->token == listen->token && !client->is_over)
                    end_client(listen->opened, client);
            free(listen);
            break;
        }
    pthread_mutex_unlock(&plugin.lock);
    return NCCL_SUCCESS;
}

/* Takes the oldest client with the token of a listen comm. */
static struct client *take_client(const struct listen_comm *listen)
{
    struct client **at = &listen->opened->clients, *client;
    judge_clients(listen->opened);
    while ((client = *at) && (client->token != listen->token || client->is_over))
        at = &client->next;
    if (client)
        *at = client->next;
    return client;
}

int nccl_setup_accept(void *listen_comm, void **recv_comm)
{
    struct listen_comm *listen = listen_comm;
    *recv_comm = NULL;
    if (nccl_is_inherited())
        return nccl_refuse_child();
    pthread_mutex_lock(&plugin.lock);
    struct client *client = take_client(listen);
    bool is_broken = listen->opened->is_broken;
    plugin.comms += client != NULL;
    pthread_mutex_unlock(&plugin.lock);
    if (!client)
        return is_broken ? NCCL_SYSTEM_ERROR : NCCL_SUCCESS; /* its reason is in the log */
    struct nccl_comm *comm = NULL;
    struct nccl_landing landing = nccl_landing_for(plugin.settings.window_bytes);
    lh_request_free(client->hello);
    int result = nccl_comm_recv_create(client->connection, listen->opened->engine, &landing, &comm);
    free(client);
    *recv_comm = comm;
    if (!comm) {
        pthread_mutex_lock(&plugin.lock);
        plugin.comms--;
        pthread_mutex_unlock(&plugin.lock);
    }
    return result;
}

/* ---- connect ------------------------------------------------------------------------------------------- */

static int read_handle(const void *bytes, struct handle *handle)
{
    memcpy(handle, bytes, sizeof *handle);
    bool is_valid = !memcmp(handle->magic, MAGIC, sizeof MAGIC) && handle->token &&
                    handle->frame_bytes >= NCCL_FRAME_BYTES_MIN &&
                    handle->frame_bytes <= NCCL_FRAME_BYTES_MAX && handle->frames >= 1 &&
                    handle->frames <= NCCL_FRAMES_MAX && memchr(handle->where, 0, sizeof handle->where);
    if (is_valid)
        return NCCL_SUCCESS;
    nccl_log(NCCL_LOG_WARN, "connect: the handle is of another plugin or release (load %s on all hosts)",
             "the same libnccl-net-longhaul.so");
    return NCCL_INVALID_USAGE;
}

static void *connect_run(void *context)
{
    struct attempt *attempt = context;
    struct lh_attr attr;
    struct lh_security security;
    nccl_settings_attr(&plugin.settings, &attr, &security);
    attr.engine = attempt->opened->engine;
    attr.on_notice = on_notice;
    struct lh_connection *connection = NULL;
    struct nccl_comm *comm = NULL;
    int result = NCCL_REMOTE_ERROR;
    if (lh_connect(attempt->handle.where, &attr, CONNECT_TIMEOUT_NS, &connection)) {
        nccl_log(NCCL_LOG_WARN, "connect to %s: %s", attempt->handle.where, lh_last_error());
    } else {
        struct nccl_landing landing = {attempt->handle.frame_bytes, attempt->handle.frames};
        result = nccl_comm_send_create(connection, attr.engine, &landing, attempt->handle.token, &comm);
    }
    pthread_mutex_lock(&plugin.lock);
    attempt->comm = comm;
    attempt->result = result;
    attempt->is_done = true;
    attempt->since_s = now_s();
    plugin.attempts_running--;
    plugin.comms += comm != NULL;
    pthread_cond_broadcast(&plugin.changed);
    pthread_mutex_unlock(&plugin.lock);
    return NULL;
}

/* With the lock. Starts an attempt unless too many run: NCCL calls again. */
static int start_attempt(int device, const void *key, const struct handle *handle)
{
    struct opened *opened = NULL;
    int result = check_device(device, "connect");
    if (!result)
        result = open_device(device, &opened);
    if (result || plugin.attempts_running >= CONNECTS_MAX)
        return result;
    struct attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return NCCL_SUCCESS; /* memory may come back until NCCL calls again */
    attempt->key = key;
    attempt->handle = *handle;
    attempt->opened = opened;
    result = start_thread(connect_run, attempt);
    if (result) {
        free(attempt);
        return result;
    }
    attempt->next = plugin.attempts;
    plugin.attempts = attempt;
    plugin.attempts_running++;
    return NCCL_SUCCESS;
}

static struct attempt **find_attempt(const void *key, const struct handle *handle)
{
    struct attempt **at = &plugin.attempts;
    while (*at && ((*at)->key != key || (*at)->handle.token != handle->token))
        at = &(*at)->next;
    return at;
}

int nccl_setup_connect(int device, const void *bytes, void **send_comm)
{
    struct handle handle;
    *send_comm = NULL;
    int result = read_handle(bytes, &handle);
    if (!result && nccl_is_inherited())
        result = nccl_refuse_child();
    if (result)
        return result;
    pthread_mutex_lock(&plugin.lock);
    struct attempt **at = find_attempt(bytes, &handle), *attempt = *at;
    if (!attempt) {
        result = start_attempt(device, bytes, &handle);
    } else if (attempt->is_done) {
        *at = attempt->next;
        *send_comm = attempt->comm;
        result = attempt->result;
        free(attempt);
    }
    pthread_mutex_unlock(&plugin.lock);
    return result;
}

/* ---- the end of the process ---------------------------------------------------------------------------- */

/* With the lock. */
static bool has_threads(void)
{
    bool runs = plugin.has_closer;
    for (int i = 0; i < plugin.count; i++)
        runs |= plugin.opened[i].has_acceptor;
    return runs;
}

/* With the lock: until closer and acceptors have ended. */
static void await_threads(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CLOSE_TIMEOUT_S + 1;
    while (has_threads() && !pthread_cond_timedwait(&plugin.changed, &plugin.lock, &until))
        continue;
}

static void close_device(struct opened *opened)
{
    while (opened->clients) {
        struct client *client = opened->clients;
        opened->clients = client->next;
        client_free(client);
    }
    lh_listener_close(opened->listener);
    lh_engine_destroy(opened->engine);
}

/* Lets closed comms deliver what they have accepted. Frees the rest only if NCCL has closed everything: its
 * threads may still run. */
__attribute__((destructor)) static void end_process(void)
{
    if (!plugin.is_ready || nccl_is_inherited())
        return;
    pthread_mutex_lock(&plugin.lock);
    plugin.is_ending = true;
    pthread_cond_broadcast(&plugin.changed);
    await_threads();
    bool is_unused = plugin.comms == 0 && plugin.attempts_running == 0 && !has_threads();
    pthread_mutex_unlock(&plugin.lock);
    for (int i = 0; is_unused && i < plugin.count; i++)
        if (plugin.opened[i].is_open)
            close_device(&plugin.opened[i]);
}
