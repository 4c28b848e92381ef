/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group_root.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/types.h>

#include "base/bytes.h"
#include "base/error.h"
#include "launch/admission.h"
#include "launch/group_frames.h"
#include "launch/tcp.h"

#define GROUP_CLIENT_TIMEOUT_NS (5 * LH_NS_PER_S)

/* ---- group member ---------------------------------------------------------------------------------- */

int group_member_start(struct group_member *member, int fd, struct tls_context *tls, lh_time now)
{
    *member = (struct group_member){.channel = {.fd = fd},
                                    .deadline = now + GROUP_CLIENT_TIMEOUT_NS,
                                    .address = admission_address_of(fd)};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (tcp_peer_name(fd, member->name, sizeof member->name))
        snprintf(member->name, sizeof member->name, "a disconnected client");
    int error = channel_secure(&member->channel, tls, true);
    if (error)
        channel_close(&member->channel);
    return error;
}

/* ---- small frames ------------------------------------------------------------------------------------ */

/* Whole or not at all: a socket holds far more than a handshake, unless the peer does not read. */
static int send_small(struct group_member *member, enum group_frame_type type, const void *body,
                      uint32_t bytes)
{
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_SMALL_BODY_MAX];
    assert(bytes <= GROUP_SMALL_BODY_MAX);
    group_frame_encode(&(struct group_frame){type, bytes}, frame);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES, body, bytes);
    ssize_t whole = (ssize_t)(GROUP_FRAME_HEADER_BYTES + bytes);
    ssize_t sent = channel_send(&member->channel, frame, (size_t)whole);
    if (sent == whole && !channel_has_unsent(&member->channel))
        return 0;
    return lh_fail(LH_EPEER, "%s: connection failed: %s", member->name,
                   sent < 0 ? strerror(errno) : "send buffer full");
}

/* Up to `bytes`; 0: nothing has come; or -LH_EPEER. */
static ssize_t receive(struct group_member *member, void *buffer, size_t bytes)
{
    ssize_t got = channel_receive(&member->channel, buffer, bytes);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return lh_fail(LH_EPEER, "%s: %s", member->name, got == 0 ? "closed the connection" : strerror(errno));
}

/* 1: a whole frame of that type is there; 0: more is to come; or why it never will be. */
static int read_small(struct group_member *member, enum group_frame_type type)
{
    struct group_frame header;
    for (;;) { /* at most a header and a body */
        uint32_t want = GROUP_FRAME_HEADER_BYTES;
        if (member->have >= want) {
            int error = group_frame_decode(member->frame, &header);
            if (error)
                return error;
            if (header.type != type)
                return lh_fail(LH_EHANDSHAKE, "unexpected rendezvous frame of type %d (expected %d)",
                               header.type, type);
            want += header.body_bytes;
            assert(want <= sizeof member->frame);
            if (member->have == want)
                break;
        }
        ssize_t got = receive(member, member->frame + member->have, want - member->have);
        if (got <= 0)
            return (int)got;
        member->have += (uint32_t)got;
    }
    member->have = 0;
    return 1;
}

static int too_early(const struct group_member *member)
{
    return lh_fail(LH_EHANDSHAKE, "%s: data of rank %u before its turn (is it of this release?)",
                   member->name, member->claim.rank);
}

/* ---- handshake --------------------------------------------------------------------------------------- */

static int check_hello(const struct group_hello *hello, const struct group_terms *terms)
{
    if (hello->size != terms->size)
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u has %u ranks, rank 0 has %u (start all with the same number)", hello->rank,
                       hello->size, terms->size);
    enum handshake_encryption encryption = handshake_encryption_of(tls_context_encryption(terms->tls));
    if (hello->encryption != encryption)
        return lh_fail(
            LH_EHANDSHAKE,
            "rank %u has --encryption %s, rank 0 has %s (use the same --encryption for all ranks)",
            hello->rank, handshake_encryption_name(hello->encryption),
            handshake_encryption_name(encryption));
    bool secret = *terms->secret != '\0';
    if (hello->secret != secret)
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u has %s, rank 0 has %s (set LONGHAUL_SECRET to the same text for all ranks)",
                       hello->rank, secret ? "no secret" : "a secret", secret ? "one" : "none");
    if (group_jobs_conflict(hello->job, terms->job))
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u belongs to job %s, rank 0 to job %s (use a different MASTER_PORT per job)",
                       hello->rank, hello->job, terms->job);
    return 0;
}

/* The same for each connection of a rank, without anything kept for it. */
static int make_nonce(const struct group_member *member, const struct group_hello *hello,
                      const struct group_terms *terms, uint8_t nonce[GROUP_NONCE_BYTES])
{
    uint8_t bound[8 + GROUP_NONCE_BYTES];
    static_assert(GROUP_NONCE_BYTES == ADMISSION_COOKIE_BYTES, "a cookie is a nonce");
    lh_put_be32(bound, hello->rank);
    lh_put_be32(bound + 4, hello->size);
    memcpy(bound + 8, hello->nonce, GROUP_NONCE_BYTES);
    return admission_cookie_make(&terms->key, &member->address, bound, sizeof bound, nonce);
}

static int on_hello(struct group_member *member, const struct group_terms *terms, lh_time now)
{
    struct group_hello hello;
    uint8_t body[GROUP_CHALLENGE_BYTES];
    struct group_challenge challenge = {.secret = *terms->secret != '\0'};
    int error = group_hello_decode(member->frame + GROUP_FRAME_HEADER_BYTES, &hello);
    if (!error)
        error = check_hello(&hello, terms);
    if (!error)
        error = make_nonce(member, &hello, terms, challenge.nonce);
    if (error)
        return error;
    memcpy(challenge.job, terms->job, strlen(terms->job));
    lh_time left_ms = terms->deadline > now ? (terms->deadline - now) / LH_NS_PER_MS : 0;
    challenge.wait_ms = left_ms < UINT32_MAX ? (uint32_t)left_ms : UINT32_MAX;
    member->claim = (struct group_claim){.rank = hello.rank, .size = hello.size};
    memcpy(member->claim.rank_nonce, hello.nonce, GROUP_NONCE_BYTES);
    memcpy(member->claim.root_nonce, challenge.nonce, GROUP_NONCE_BYTES);
    static const uint8_t none[GROUP_NONCE_BYTES];
    member->outdated = memcmp(hello.known, none, sizeof none) != 0 &&
                       memcmp(hello.known, challenge.nonce, sizeof hello.known) != 0;
    member->greeted = true;
    group_challenge_encode(&challenge, body);
    return send_small(member, GROUP_CHALLENGE, body, sizeof body);
}

int group_member_step(struct group_member *member, const struct group_terms *terms, lh_time now)
{
    int secured = channel_handshake(&member->channel);
    if (secured <= 0)
        return secured;
    if (!member->greeted) {
        int came = read_small(member, GROUP_HELLO);
        int error = came == 1 ? on_hello(member, terms, now) : came;
        if (error || came == 0)
            return error;
    }
    int came = read_small(member, GROUP_PROOF);
    if (came == 1 && member->outdated) {
        member->outdated = false;
        came = read_small(member, GROUP_PROOF);
    }
    if (came <= 0)
        return came;
    if (!group_proof_check(terms->secret, &member->claim, false, member->frame + GROUP_FRAME_HEADER_BYTES))
        return lh_fail(
            LH_EHANDSHAKE,
            "rank %u has another secret than rank 0 (set LONGHAUL_SECRET to the same text for all "
            "ranks)",
            member->claim.rank);
    /* What came in the same record, no socket would tell. */
    return channel_has_unread(&member->channel) ? too_early(member) : 1;
}

/* Sends WELCOME. -LH_EPEER. */
static int group_member_welcome(struct group_member *member, const struct group_terms *terms)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    int error = group_proof_make(terms->secret, &member->claim, true, proof);
    return error ? error : send_small(member, GROUP_WELCOME, proof, sizeof proof);
}

/* ---- exchange ---------------------------------------------------------------------------------------- */

#define PART_HEAD_BYTES (GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES)

static int check_part(const struct group_member *member, uint32_t round, size_t bytes)
{
    struct group_frame header;
    int error = group_frame_decode(member->frame, &header);
    if (error)
        return error;
    if (header.type != GROUP_PART || lh_get_be32(member->frame + GROUP_FRAME_HEADER_BYTES) != round)
        return lh_fail(LH_EHANDSHAKE, "unexpected rendezvous frame of type %d", header.type);
    if (header.body_bytes - GROUP_ROUND_BYTES != bytes)
        return lh_fail(LH_EINVAL, "exchange: rank %u gives %u bytes, rank 0 gives %zu", member->claim.rank,
                       header.body_bytes - GROUP_ROUND_BYTES, bytes);
    return 0;
}

int group_member_read_part(struct group_member *member, uint32_t round, uint8_t *part, size_t bytes)
{
    for (;;) { /* until the socket is empty or the part whole */
        size_t have = member->part_have;
        bool in_head = have < PART_HEAD_BYTES;
        if (have == PART_HEAD_BYTES + bytes)
            return channel_has_unread(&member->channel) ? too_early(member) : 1;
        ssize_t got =
            in_head ? receive(member, member->frame + have, PART_HEAD_BYTES - have)
                    : receive(member, part + (have - PART_HEAD_BYTES), PART_HEAD_BYTES + bytes - have);
        if (got <= 0)
            return (int)got;
        member->part_have += (size_t)got;
        if (in_head && member->part_have == PART_HEAD_BYTES) {
            int error = check_part(member, round, bytes);
            if (error)
                return error;
        }
    }
}

/* Writes what is possible of a frame. 1: whole; 0; -LH_EPEER. */
static int group_member_write(struct group_member *member, const uint8_t *frame, size_t bytes)
{
    while (member->sent < bytes || channel_has_unsent(&member->channel)) { /* until the socket is full */
        ssize_t sent = channel_send(&member->channel, frame + member->sent, bytes - member->sent);
        if (sent < 0)
            return lh_fail(LH_EPEER, "%s: %s", member->name, strerror(errno));
        member->sent += (size_t)sent;
        if (sent == 0)
            return member->sent == bytes && !channel_has_unsent(&member->channel);
    }
    return 1;
}

/* 0: nothing came from a member that has nothing to send; -LH_EPEER: it closed the connection;
 * -LH_EHANDSHAKE: it sent something. */
static int group_member_check_silent(struct group_member *member)
{
    uint8_t byte;
    ssize_t got = receive(member, &byte, 1);
    return got > 0 ? too_early(member) : (int)got;
}

/* ---- end --------------------------------------------------------------------------------------------- */

static void send_last(struct group_member *member, enum group_frame_type type, const char *text)
{
    size_t length = strnlen(text, GROUP_REASON_MAX);
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_REASON_MAX];
    group_frame_encode(&(struct group_frame){type, (uint32_t)length}, frame);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES, text, length);
    (void)channel_send(&member->channel, frame, GROUP_FRAME_HEADER_BYTES + length);
    channel_close(&member->channel);
}

void group_member_refuse(struct group_member *member)
{
    send_last(member, GROUP_REFUSE, lh_last_error());
}

/* Sends FULL to a client that has said HELLO, or proved the key, and closes. */
static void group_member_evict(struct group_member *member)
{
    if (member->greeted || channel_is_proven(&member->channel))
        send_last(member, GROUP_FULL, "");
    else
        channel_close(&member->channel);
}

/* How hard it is to send a client away. No stranger proves the key. */
static enum admission_standing standing_of(const struct group_member *member)
{
    if (channel_is_proven(&member->channel))
        return ADMISSION_RETURNED;
    return member->greeted ? ADMISSION_GREETED : ADMISSION_NEW;
}

/* ---- group root ------------------------------------------------------------------------------------ */

/*
 * Timers: each client's handshake, GROUP_CLIENT_TIMEOUT_NS from its connection; the deadline of the call.
 */

/* Deadlines of clients are looked at that often. */
#define POLL_SPAN_NS LH_NS_PER_S
/* After an accept() without a descriptor, whose client stays in the backlog. */
#define PAUSE_NS       (10 * LH_NS_PER_MS)
#define NAMED_RANKS    8u
#define REFUSAL_MAX    (GROUP_REASON_MAX + TCP_NAME_MAX)
#define ALL_HEAD_BYTES (GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES)

/* What the ranks that are there are waited for. */
enum phase { PHASE_JOIN, PHASE_READ, PHASE_WRITE };

struct group_root {
    int fd;
    struct group_terms terms;
    uint32_t round;
    enum phase phase;
    uint32_t waiting;           /* ranks that the phase still waits for */
    bool *over;                 /* by rank: it does not wait for this one */
    struct group_member *ranks; /* ranks[0] is not used */
    struct group_member clients[GROUP_CLIENTS_MAX];
    uint64_t arrivals;    /* clients that were accepted */
    struct pollfd *polls; /* the listener, and what is open of clients and ranks, in this order */
    char job[GROUP_JOB_BYTES];
    char refusal[REFUSAL_MAX]; /* the last one, for a missing rank */
    bool loopback_only;
    /* the exchange that is under way */
    uint8_t *all; /* the frame ALL */
    size_t part_bytes;
};

/* ---- messages ---------------------------------------------------------------------------------------- */

/* "rank 2", "ranks 1, 3 and 5 others". */
static void name_waiting(const struct group_root *root, char *out, size_t size)
{
    uint32_t named = 0;
    int used = snprintf(out, size, root->waiting == 1 ? "rank" : "ranks");
    for (uint32_t rank = 1; rank < root->terms.size && named < NAMED_RANKS; rank++)
        if (!root->over[rank])
            used += snprintf(out + used, size - (size_t)used, "%s %u", named++ ? "," : "", rank);
    if (root->waiting > named)
        snprintf(out + used, size - (size_t)used, " and %u others", root->waiting - named);
}

static int timed_out(const struct group_root *root, lh_time timeout_ns)
{
    char names[NAMED_RANKS * 8 + 32];
    double seconds = (double)timeout_ns / 1e9;
    bool joining = root->phase == PHASE_JOIN, refused = joining && *root->refusal;
    name_waiting(root, names, sizeof names);
    return lh_fail(LH_ETIMEDOUT, "%s of %u: %s within %g s%s%s", names, root->terms.size,
                   joining ? "not joined" : "no answer", seconds, refused ? "; refused " : "",
                   refused ? root->refusal : " (start all ranks; is MASTER_ADDR the same for all?)");
}

/* ---- clients ----------------------------------------------------------------------------------------- */

static void refuse_client(struct group_root *root, struct group_member *client, int error)
{
    char reason[REFUSAL_MAX];
    snprintf(reason, sizeof reason, "%.*s", (int)GROUP_REASON_MAX, lh_last_error());
    if (error != -LH_EPEER)
        snprintf(root->refusal, sizeof root->refusal, "%.*s: %.*s", (int)TCP_NAME_MAX - 16, client->name,
                 (int)GROUP_REASON_MAX, reason);
    group_member_refuse(client);
}

/* Sends the client away that admission.h names. False: there is none. */
static bool evict_client(struct group_root *root, const struct admission_address *newcomer)
{
    struct admission_place places[GROUP_CLIENTS_MAX];
    struct group_member *members[GROUP_CLIENTS_MAX];
    uint32_t count = 0;
    static_assert(GROUP_CLIENTS_MAX <= ADMISSION_PLACES_MAX, "places of admission.h");
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++) {
        struct group_member *client = &root->clients[i];
        if (client->channel.fd < 0)
            continue;
        places[count] = (struct admission_place){.address = client->address,
                                                 .connection = client->channel.fd,
                                                 .standing = standing_of(client),
                                                 .arrival = client->arrival};
        members[count++] = client;
    }
    uint32_t victim = admission_victim(places, count, newcomer);
    if (victim != ADMISSION_NONE)
        group_member_evict(members[victim]);
    return victim != ADMISSION_NONE;
}

static struct group_member *free_place(struct group_root *root)
{
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        if (root->clients[i].channel.fd < 0)
            return &root->clients[i];
    return NULL;
}

/* It takes no place, so no client has to leave for it. */
static void turn_away(struct group_root *root, int fd, lh_time now)
{
    struct group_member stranger;
    if (group_member_start(&stranger, fd, NULL, now) == 0)
        refuse_client(root, &stranger, lh_fail(LH_EHANDSHAKE, "%s", GROUP_LOOPBACK_ONLY));
}

static void add_client(struct group_root *root, int fd, lh_time now)
{
    if (root->loopback_only && !tcp_peer_is_local(fd)) {
        turn_away(root, fd, now);
        return;
    }
    struct admission_address address = admission_address_of(fd);
    struct group_member *place = free_place(root);
    if (!place && evict_client(root, &address))
        place = free_place(root);
    assert(place); /* clients are new or greeted, or have proved the key, and of these some leave */
    if (group_member_start(place, fd, root->terms.tls, now) == 0)
        place->arrival = root->arrivals++;
}

/* The client stays in the backlog until a descriptor is free. */
static void on_no_descriptor(struct group_root *root)
{
    struct rlimit limit = {0};
    const struct admission_address unknown = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    snprintf(root->refusal, sizeof root->refusal,
             "some: no file descriptor left for them (limit %llu: raise it with ulimit -n)",
             (unsigned long long)limit.rlim_cur);
    if (!evict_client(root, &unknown))
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static uint32_t count_free(const struct group_root *root)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        count += root->clients[i].channel.fd < 0;
    return count;
}

/* As many as there are places; without one a single client, since each is to be read once before it may
 * have to leave. So none leaves behind one that was just taken: without a descriptor accept() fails
 * even if no client waits. */
static void take_clients(struct group_root *root, lh_time now)
{
    const uint32_t free_places = count_free(root), accepts = free_places ? free_places : 1;
    for (uint32_t i = 0; i < accepts; i++) {
        int fd = accept4(root->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            add_client(root, fd, now);
            continue;
        }
        if (i == 0 && tcp_is_exhausted(errno))
            on_no_descriptor(root);
        break;
    }
}

/* The same process, whose first connection was lost on the way, returns by another. */
static bool is_same_process(const struct group_member *a, const struct group_member *b)
{
    return !memcmp(a->claim.rank_nonce, b->claim.rank_nonce, GROUP_NONCE_BYTES);
}

/* A client has proved that it may be the rank that it claims to be. */
static int join(struct group_root *root, struct group_member *client)
{
    struct group_member *rank = &root->ranks[client->claim.rank];
    if (rank->channel.fd >= 0 && root->phase == PHASE_JOIN && is_same_process(rank, client)) {
        channel_close(&rank->channel);
        *rank = *client;
        client->channel = (struct channel){.fd = -1};
        return 0;
    }
    if (rank->channel.fd >= 0)
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u joined twice, first from %s (give each process a different rank)",
                       client->claim.rank, rank->name);
    assert(root->phase == PHASE_JOIN && root->waiting > 0);
    *rank = *client;
    client->channel = (struct channel){.fd = -1};
    root->over[rank->claim.rank] = true;
    root->waiting--;
    return 0;
}

static void step_client(struct group_root *root, struct group_member *client, lh_time now)
{
    int done = group_member_step(client, &root->terms, now);
    if (done == 1)
        done = join(root, client);
    else if (done == 0 && client->deadline <= now)
        done = lh_fail(LH_ETIMEDOUT, "the handshake took longer than %llu s",
                       (unsigned long long)(GROUP_CLIENT_TIMEOUT_NS / LH_NS_PER_S));
    if (done < 0)
        refuse_client(root, client, done);
}

/* ---- ranks ------------------------------------------------------------------------------------------- */

/* While ranks join, one that left may join again. */
static void release_rank(struct group_root *root, struct group_member *member)
{
    root->over[member->claim.rank] = false;
    root->waiting++;
}

static int on_gone(struct group_root *root, struct group_member *member)
{
    uint32_t rank = member->claim.rank;
    if (root->phase != PHASE_JOIN)
        return lh_fail(LH_EPEER, "rank %u (%s) has disconnected (its output has the reason)", rank,
                       member->name);
    channel_close(&member->channel);
    release_rank(root, member);
    return 0;
}

/* A rank that has nothing to send has left, or has sent something. */
static int step_silent(struct group_root *root, struct group_member *member)
{
    int error = group_member_check_silent(member);
    if (error == -LH_EPEER)
        return on_gone(root, member);
    if (!error || root->phase != PHASE_JOIN)
        return error;
    refuse_client(root, member, error);
    release_rank(root, member);
    return 0;
}

/* What the phase waits for of a rank. 1: done; 0: goes on; or an error. */
static int step_part(struct group_root *root, uint32_t rank)
{
    struct group_member *member = &root->ranks[rank];
    if (root->phase == PHASE_WRITE)
        return group_member_write(member, root->all, ALL_HEAD_BYTES + root->part_bytes * root->terms.size);
    uint8_t *part = root->all + ALL_HEAD_BYTES + root->part_bytes * rank;
    return group_member_read_part(member, root->round, part, root->part_bytes);
}

static int step_rank(struct group_root *root, uint32_t rank)
{
    struct group_member *member = &root->ranks[rank];
    if (root->over[rank])
        return step_silent(root, member);
    int done = step_part(root, rank);
    if (done == -LH_EPEER)
        return on_gone(root, member);
    if (done == 1) {
        root->over[rank] = true;
        root->waiting--;
    }
    return done < 0 ? done : 0;
}

/* ---- the loop ---------------------------------------------------------------------------------------- */

static void add_poll(struct group_root *root, struct group_member *member, short events, nfds_t *count)
{
    member->poll = 0;
    if (member->channel.fd < 0)
        return;
    member->poll = (uint32_t)*count;
    root->polls[(*count)++] = (struct pollfd){.fd = member->channel.fd, .events = events};
}

static bool is_ready(const struct group_root *root, const struct group_member *member)
{
    return member->channel.fd >= 0 && member->poll && root->polls[member->poll].revents;
}

/* Open descriptors alone: poll() takes no more entries than a process may have descriptors. In the last
 * phase a rank that is over may give its next part already, which nobody reads yet. */
static nfds_t fill_polls(struct group_root *root)
{
    nfds_t count = 1;
    bool writing = root->phase == PHASE_WRITE;
    root->polls[0] = (struct pollfd){.fd = root->fd, .events = POLLIN};
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        add_poll(root, &root->clients[i], POLLIN, &count);
    for (uint32_t rank = 1; rank < root->terms.size; rank++) {
        if (writing && root->over[rank])
            root->ranks[rank].poll = 0;
        else
            add_poll(root, &root->ranks[rank], writing ? POLLOUT : POLLIN, &count);
    }
    return count;
}

static int sleep_until(struct group_root *root, lh_time wake)
{
    nfds_t count = fill_polls(root);
    lh_time now = tcp_now(), span = wake > now ? wake - now : 0;
    if (span > POLL_SPAN_NS)
        span = POLL_SPAN_NS;
    struct timespec timeout = {(time_t)(span / LH_NS_PER_S), (long)(span % LH_NS_PER_S)};
    int ready = ppoll(root->polls, count, &timeout, NULL);
    if (ready < 0 && errno == EINTR)
        for (nfds_t i = 0; i < count; i++)
            root->polls[i].revents = 0;
    else if (ready < 0)
        return lh_fail(LH_ESYSTEM, "poll: %llu descriptors: %s", (unsigned long long)count,
                       strerror(errno));
    return 0;
}

/* What has come, once. */
static int step_all(struct group_root *root)
{
    int error = 0;
    lh_time now = tcp_now();
    uint32_t size = root->terms.size;
    for (uint32_t rank = 1; rank < size && !error; rank++)
        if (is_ready(root, &root->ranks[rank]))
            error = step_rank(root, rank);
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX && !error; i++) {
        struct group_member *client = &root->clients[i];
        if (is_ready(root, client) || (client->channel.fd >= 0 && client->deadline <= now))
            step_client(root, client, now);
    }
    if (!error && root->polls[0].revents & POLLIN)
        take_clients(root, now);
    return error;
}

/* The reason goes to all ranks that are there. */
static void abandon(struct group_root *root)
{
    for (uint32_t rank = 1; rank < root->terms.size; rank++)
        if (root->ranks[rank].channel.fd >= 0)
            group_member_refuse(&root->ranks[rank]);
}

static int run_phase(struct group_root *root, enum phase phase, lh_time deadline, lh_time timeout_ns)
{
    int error = 0;
    root->phase = phase;
    root->waiting = root->terms.size - 1;
    memset(root->over, 0, root->terms.size * sizeof *root->over);
    while (root->waiting > 0 && !error) { /* until the deadline */
        if (tcp_now() >= deadline)
            error = timed_out(root, timeout_ns);
        else
            error = sleep_until(root, deadline);
        if (!error)
            error = step_all(root);
    }
    if (error)
        abandon(root);
    return error;
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static void free_root(struct group_root *root)
{
    free(root->polls);
    free(root->over);
    free(root->ranks);
    free(root);
}

int group_root_open(const char *where, uint32_t size, const char *secret, const char *job,
                    struct tls_context *tls, struct group_root **out)
{
    uint16_t port;
    int error = 0;
    struct group_root *root = calloc(1, sizeof *root);
    if (!root)
        return lh_fail(LH_ENOMEM, "no memory for a rendezvous");
    root->terms =
        (struct group_terms){.size = size, .secret = secret, .job = *job ? job : root->job, .tls = tls};
    root->ranks = calloc(size, sizeof *root->ranks);
    root->over = calloc(size, sizeof *root->over);
    root->polls = calloc(1 + GROUP_CLIENTS_MAX + (size_t)size, sizeof *root->polls);
    if (!root->ranks || !root->over || !root->polls)
        error = lh_fail(LH_ENOMEM, "no memory for a rendezvous of %u ranks", size);
    if (!error)
        error = admission_random(&root->terms.key, sizeof root->terms.key);
    if (!error)
        error = group_job_make(root->job);
    if (!error)
        error = tcp_listen(where, &root->fd, &port);
    if (error) {
        free_root(root);
        return error;
    }
    for (uint32_t rank = 0; rank < size; rank++)
        root->ranks[rank].channel.fd = -1;
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        root->clients[i].channel.fd = -1;
    *out = root;
    return 0;
}

void group_root_serve_loopback_only(struct group_root *root)
{
    root->loopback_only = true;
}

int group_root_join(struct group_root *root, lh_time timeout_ns)
{
    root->terms.deadline = tcp_deadline(timeout_ns);
    int error = run_phase(root, PHASE_JOIN, root->terms.deadline, timeout_ns);
    for (uint32_t rank = 1; rank < root->terms.size && !error; rank++)
        error = group_member_welcome(&root->ranks[rank], &root->terms);
    if (error)
        abandon(root);
    return error;
}

int group_root_exchange(struct group_root *root, const void *mine, size_t bytes, void *all,
                        lh_time timeout_ns)
{
    uint32_t size = root->terms.size;
    lh_time deadline = tcp_deadline(timeout_ns);
    if (bytes > GROUP_EXCHANGE_MAX / size)
        return lh_fail(LH_ERANGE, "exchange: %zu bytes of %u ranks exceed %llu MiB", bytes, size,
                       (unsigned long long)(GROUP_EXCHANGE_MAX >> 20));
    root->all = malloc(ALL_HEAD_BYTES + bytes * size);
    if (!root->all)
        return lh_fail(LH_ENOMEM, "no memory for an exchange of %zu bytes", bytes * size);
    root->part_bytes = bytes;
    group_frame_encode(&(struct group_frame){GROUP_ALL, (uint32_t)(GROUP_ROUND_BYTES + bytes * size)},
                       root->all);
    lh_put_be32(root->all + GROUP_FRAME_HEADER_BYTES, root->round);
    if (bytes)
        memcpy(root->all + ALL_HEAD_BYTES, mine, bytes);
    for (uint32_t rank = 1; rank < size; rank++)
        root->ranks[rank].part_have = root->ranks[rank].sent = 0;
    int error = run_phase(root, PHASE_READ, deadline, timeout_ns);
    if (!error)
        error = run_phase(root, PHASE_WRITE, deadline, timeout_ns);
    if (!error && bytes)
        memcpy(all, root->all + ALL_HEAD_BYTES, bytes * size);
    free(root->all);
    root->all = NULL;
    root->round++;
    return error;
}

int group_root_socket(const struct group_root *root, uint32_t rank)
{
    assert(rank > 0 && rank < root->terms.size);
    return root->ranks[rank].channel.fd;
}

void group_root_close(struct group_root *root)
{
    if (poll(&(struct pollfd){.fd = root->fd, .events = POLLIN}, 1, 0) > 0)
        take_clients(root, tcp_now()); /* of the backlog, for an answer */
    close(root->fd);
    lh_fail(LH_EHANDSHAKE, "the group is complete: %u ranks have joined (is a rank used twice?)",
            root->terms.size);
    for (uint32_t i = 0; i < GROUP_CLIENTS_MAX; i++)
        if (root->clients[i].channel.fd >= 0)
            group_member_refuse(&root->clients[i]);
    for (uint32_t rank = 1; rank < root->terms.size; rank++)
        if (root->ranks[rank].channel.fd >= 0)
            channel_close(&root->ranks[rank].channel);
    free_root(root);
}
