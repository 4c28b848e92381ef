/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group_meeting.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/launch.h>
#include <longhaul/types.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/min_max.h"
#include "device/device_registry.h"
#include "group/group.h"
#include "keys/key_file.h"
#include "launch/group_frames.h"
#include "launch/group_root.h"
#include "launch/launcher.h"
#include "launch/tcp.h"
#include "launch/tls_channel.h"
#include "message/attributes.h"
#include "message/engine.h"
#include "wire/roce_packet.h"

/* ---- group rank ------------------------------------------------------------------------------------ */

/* What a rank waits beyond its own timeout, so that the reason of rank 0 comes first. */
#define GROUP_GRACE_NS (2 * LH_NS_PER_S)

/* What a rank claims to be, and where rank 0 listens; all texts stay the caller's until group_rank_close().
 */
struct group_rank_terms {
    const char *where;
    uint32_t rank, size;
    const char *secret; /* "": none */
    const char *job;    /* "": not known */
    struct tls_context *tls;
    bool loopback_only;
};

/* Between attempts to connect. */
#define PAUSE_FIRST_NS (5 * LH_NS_PER_MS)
#define PAUSE_MAX_NS   (250 * LH_NS_PER_MS)

/* ---- frames ------------------------------------------------------------------------------------------ */

/* What failed is known to be the connection to rank 0. */
static int to_root_failed(const struct group_rank *rank, int error)
{
    char cause[256];
    snprintf(cause, sizeof cause, "%s", lh_last_error());
    return lh_fail((enum lh_error) - error, "rank 0 at %s: %s", rank->where, cause);
}

static int send_frame(struct group_rank *rank, enum group_frame_type type, const void *body, uint32_t bytes,
                      lh_time deadline)
{
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_SMALL_BODY_MAX];
    assert(bytes <= GROUP_SMALL_BODY_MAX);
    group_frame_encode(&(struct group_frame){type, bytes}, frame);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES, body, bytes);
    int error = channel_send_all(&rank->channel, frame, GROUP_FRAME_HEADER_BYTES + bytes, deadline);
    return error ? to_root_failed(rank, error) : 0;
}

static int refused(struct group_rank *rank, const struct group_frame *frame, lh_time deadline)
{
    uint8_t body[GROUP_REASON_MAX];
    char reason[GROUP_REASON_MAX + 1];
    if (channel_receive_all(&rank->channel, body, frame->body_bytes, deadline))
        return to_root_failed(rank, -LH_EPEER);
    group_reason_decode(body, frame->body_bytes, reason);
    return lh_fail(LH_EHANDSHAKE, "%s", reason);
}

/* The header of a frame of that type and length. */
static int read_header(struct group_rank *rank, enum group_frame_type type, uint64_t bytes,
                       lh_time deadline)
{
    uint8_t head[GROUP_FRAME_HEADER_BYTES];
    struct group_frame frame;
    int error = channel_receive_all(&rank->channel, head, sizeof head, deadline);
    if (!error)
        error = group_frame_decode(head, &frame);
    if (error)
        return to_root_failed(rank, error);
    if (frame.type == GROUP_REFUSE)
        return refused(rank, &frame, deadline);
    if (frame.type == GROUP_FULL)
        return lh_fail(LH_EPEER, "rank 0 at %s: too many clients connect to it", rank->where);
    if (frame.type == type && frame.body_bytes == bytes)
        return 0;
    return lh_fail(LH_EHANDSHAKE, "rank 0 at %s: unexpected rendezvous frame of type %d and %u bytes",
                   rank->where, frame.type, frame.body_bytes);
}

static int read_body(struct group_rank *rank, void *body, size_t bytes, lh_time deadline)
{
    int error = channel_receive_all(&rank->channel, body, bytes, deadline);
    return error ? to_root_failed(rank, error) : 0;
}

/* ---- joining ----------------------------------------------------------------------------------------- */

/* What a rank keeps from one connection to the next. */
struct joining {
    const char *secret;
    struct tls_context *tls;
    bool loopback_only;
    lh_time timeout_ns, deadline;
    lh_time limit; /* of all deadlines: rank 0 may answer with another nonce again and again */
    struct group_hello hello;
    bool answered; /* rank 0 has sent CHALLENGE: claim is complete, and the deadline is rank 0's, too */
    struct group_claim claim;
};

static int prove(struct group_rank *rank, const struct joining *joining)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    int error = group_proof_make(joining->secret, &joining->claim, false, proof);
    return error ? error : send_frame(rank, GROUP_PROOF, proof, sizeof proof, joining->deadline);
}

static int await_welcome(struct group_rank *rank, const struct joining *joining)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    int error = read_header(rank, GROUP_WELCOME, sizeof proof, joining->deadline);
    if (!error)
        error = read_body(rank, proof, sizeof proof, joining->deadline);
    if (error || group_proof_check(joining->secret, &joining->claim, true, proof))
        return error;
    return lh_fail(LH_EHANDSHAKE, "rank 0 at %s has another secret (set LONGHAUL_SECRET for all ranks)",
                   rank->where);
}

static int send_hello(struct group_rank *rank, struct joining *joining)
{
    uint8_t hello[GROUP_HELLO_BYTES];
    group_hello_encode(&joining->hello, hello);
    return send_frame(rank, GROUP_HELLO, hello, sizeof hello, joining->deadline);
}

/* The first CHALLENGE sets the deadline; a later one repeats it, or is of another rank 0. */
static int on_challenge(struct group_rank *rank, struct joining *joining,
                        const struct group_challenge *challenge)
{
    if (challenge->secret != (*joining->secret != '\0'))
        return lh_fail(LH_EHANDSHAKE, "rank 0 at %s asks for %s secret (set LONGHAUL_SECRET for all ranks)",
                       rank->where, challenge->secret ? "a" : "no");
    if (group_jobs_conflict(joining->hello.job, challenge->job))
        return lh_fail(
            LH_EHANDSHAKE,
            "rank 0 at %s belongs to job %s, rank %u to job %s (use a different MASTER_PORT per job)",
            rank->where, challenge->job, rank->rank, joining->hello.job);
    bool same = !memcmp(joining->claim.root_nonce, challenge->nonce, GROUP_NONCE_BYTES);
    if (joining->answered && same)
        return 0;
    memcpy(joining->claim.root_nonce, challenge->nonce, GROUP_NONCE_BYTES);
    memcpy(joining->hello.known, challenge->nonce, GROUP_NONCE_BYTES);
    if (!*joining->hello.job)
        memcpy(joining->hello.job, challenge->job, GROUP_JOB_BYTES);
    lh_time wait_ns = challenge->wait_ms * LH_NS_PER_MS;
    joining->deadline =
        lh_earlier(joining->limit, tcp_deadline(lh_earlier(wait_ns, joining->timeout_ns) + GROUP_GRACE_NS));
    joining->answered = true;
    return prove(rank, joining);
}

/* The handshake of TLS, if there is one. What rank 0 says in clear text is not believed. */
static int secure(struct group_rank *rank, const struct joining *joining)
{
    int done = channel_secure(&rank->channel, joining->tls, false);
    while (done == 0) { /* until the deadline */
        done = channel_handshake(&rank->channel);
        int error = done == 0 ? tcp_wait(rank->channel.fd, false, joining->deadline) : 0;
        if (error)
            return to_root_failed(rank, error);
    }
    return done < 0 ? to_root_failed(rank, done) : 0;
}

/* Over a new connection. */
static int shake_hands(struct group_rank *rank, struct joining *joining)
{
    uint8_t body[GROUP_CHALLENGE_BYTES];
    struct group_challenge challenge;
    int error = secure(rank, joining);
    if (error)
        return error;
    error = send_hello(rank, joining);
    if (!error && joining->answered)
        error = prove(rank, joining);
    /* Rank 0 may have closed, and its reason may be here. */
    if (!error || error == -LH_EPEER)
        error = read_header(rank, GROUP_CHALLENGE, sizeof body, joining->deadline);
    if (!error)
        error = read_body(rank, body, sizeof body, joining->deadline);
    if (!error)
        error = group_challenge_decode(body, &challenge);
    if (!error)
        error = on_challenge(rank, joining, &challenge);
    return error ? error : await_welcome(rank, joining);
}

/* lh_last_error() stays. */
static void close_kept(struct channel *channel)
{
    char kept[LH_ERROR_TEXT_BYTES];
    snprintf(kept, sizeof kept, "%s", lh_last_error());
    channel_close(channel);
    lh_error_set(LH_EHANDSHAKE, kept);
}

/* *retry: the connection was not made, or was lost on the way: there may be a place, or a rank 0, later.
 * Whoever refuses a connection after it has answered has ended. */
static int join_once(struct group_rank *rank, struct joining *joining, bool *retry)
{
    char lost[256];
    bool answered = joining->answered;
    snprintf(lost, sizeof lost, "%s", lh_last_error());
    int error = tcp_connect(rank->where, joining->deadline, &rank->channel.fd);
    *retry = error && error != -LH_EINVAL && !(answered && error == -LH_EPEER);
    if (error && answered && error == -LH_EPEER)
        return lh_fail(LH_EPEER, "%s", lost);
    if (error)
        return error;
    if (joining->loopback_only)
        error = tcp_require_local(rank->channel.fd, GROUP_LOOPBACK_ONLY);
    error = error ? to_root_failed(rank, error) : shake_hands(rank, joining);
    *retry = error == -LH_EPEER;
    if (error)
        close_kept(&rank->channel);
    return error;
}

static int too_late(const struct group_rank *rank, const struct joining *joining)
{
    char cause[256];
    snprintf(cause, sizeof cause, "%s", lh_last_error());
    if (joining->answered)
        return lh_fail(LH_ETIMEDOUT, "rank %u: %s", rank->rank, cause);
    return lh_fail(
        LH_ETIMEDOUT,
        "rank %u: rank 0 did not answer within %g s: %s (start rank 0; is MASTER_ADDR its host?)",
        rank->rank, (double)joining->timeout_ns / 1e9, cause);
}

/* Connects to rank 0 until it answers, again where rank 0 had no place or the connection failed, and waits
 * until all ranks have joined: at most twice the timeout, and GROUP_GRACE_NS. -LH_EHANDSHAKE: rank 0
 * refuses, or has another secret or job; -LH_ETIMEDOUT; -LH_EPEER: rank 0 has answered, and has ended
 * since. */
static int group_rank_join(struct group_rank *rank, const struct group_rank_terms *terms,
                           lh_time timeout_ns)
{
    bool retry;
    lh_time pause = PAUSE_FIRST_NS;
    struct joining joining = {
        .secret = terms->secret,
        .tls = terms->tls,
        .loopback_only = terms->loopback_only,
        .timeout_ns = timeout_ns,
        .deadline = tcp_deadline(timeout_ns),
        .limit = tcp_deadline(2 * timeout_ns + GROUP_GRACE_NS),
        .hello = {.rank = terms->rank,
                  .size = terms->size,
                  .encryption = handshake_encryption_of(tls_context_encryption(terms->tls)),
                  .secret = *terms->secret != '\0'},
        .claim = {.rank = terms->rank, .size = terms->size},
    };
    *rank = (struct group_rank){
        .channel = {.fd = -1}, .where = terms->where, .rank = terms->rank, .size = terms->size};
    int error = group_nonce(joining.hello.nonce);
    if (error)
        return error;
    memcpy(joining.claim.rank_nonce, joining.hello.nonce, GROUP_NONCE_BYTES);
    memcpy(joining.hello.job, terms->job, strnlen(terms->job, GROUP_JOB_BYTES - 1));
    for (;;) { /* until the deadline */
        error = join_once(rank, &joining, &retry);
        if (!error || !retry)
            return error;
        if (tcp_now() + pause >= joining.deadline)
            return too_late(rank, &joining);
        nanosleep(&(struct timespec){(time_t)(pause / LH_NS_PER_S), (long)(pause % LH_NS_PER_S)}, NULL);
        pause = 2 * pause < PAUSE_MAX_NS ? 2 * pause : PAUSE_MAX_NS;
    }
}

/* ---- exchange ---------------------------------------------------------------------------------------- */

/* As group_exchange(). */
static int group_rank_exchange(struct group_rank *rank, const void *mine, size_t bytes, void *all,
                               lh_time timeout_ns)
{
    lh_time deadline = tcp_deadline(timeout_ns + GROUP_GRACE_NS);
    uint8_t head[GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES], round[GROUP_ROUND_BYTES];
    if (bytes > GROUP_EXCHANGE_MAX / rank->size)
        return lh_fail(LH_ERANGE, "exchange: %zu bytes of %u ranks exceed %llu MiB", bytes, rank->size,
                       (unsigned long long)(GROUP_EXCHANGE_MAX >> 20));
    group_frame_encode(&(struct group_frame){GROUP_PART, (uint32_t)(GROUP_ROUND_BYTES + bytes)}, head);
    lh_put_be32(head + GROUP_FRAME_HEADER_BYTES, rank->round);
    int error = channel_send_all(&rank->channel, head, sizeof head, deadline);
    if (!error)
        error = channel_send_all(&rank->channel, mine, bytes, deadline);
    /* Rank 0 may have closed, and its reason may be here. */
    if (error && error != -LH_EPEER)
        return to_root_failed(rank, error);
    error = read_header(rank, GROUP_ALL, GROUP_ROUND_BYTES + bytes * rank->size, deadline);
    if (!error)
        error = read_body(rank, round, sizeof round, deadline);
    if (!error && lh_get_be32(round) != rank->round++)
        return lh_fail(LH_EHANDSHAKE, "rank 0 at %s: unexpected round %u", rank->where, lh_get_be32(round));
    return error ? error : read_body(rank, all, bytes * rank->size, deadline);
}

static void group_rank_close(struct group_rank *rank)
{
    channel_close(&rank->channel);
}

/* ---- group meeting --------------------------------------------------------------------------------- */

static int open_root(const struct launcher_settings *settings, lh_time timeout_ns, struct tls_context *tls,
                     struct group_meeting *meeting)
{
    char cause[256];
    int error = group_root_open(settings->listen, settings->size, settings->secret, settings->job, tls,
                                &meeting->root);
    if (error == -LH_EADDR) {
        snprintf(cause, sizeof cause, "%s", lh_last_error());
        return lh_fail(LH_EADDR, "rank 0 cannot listen at %s (set MASTER_PORT to a free port)", cause);
    }
    if (error)
        return error;
    if (settings->loopback_only)
        group_root_serve_loopback_only(meeting->root);
    error = group_root_join(meeting->root, timeout_ns);
    if (error)
        group_meeting_close(meeting);
    return error;
}

int group_meeting_open(const struct launcher_settings *settings, struct tls_context *tls,
                       lh_time timeout_ns, struct group_meeting *meeting)
{
    *meeting =
        (struct group_meeting){.rank = settings->rank, .size = settings->size, .timeout_ns = timeout_ns};
    if (settings->size == 1)
        return 0;
    if (settings->rank == 0)
        return open_root(settings, timeout_ns, tls, meeting);
    const struct group_rank_terms terms = {
        .where = settings->where,
        .rank = settings->rank,
        .size = settings->size,
        .secret = settings->secret,
        .job = settings->job,
        .tls = tls,
        .loopback_only = settings->loopback_only,
    };
    return group_rank_join(&meeting->member, &terms, timeout_ns);
}

int group_meeting_exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct group_meeting *meeting = context;
    if (meeting->rank > 0)
        return group_rank_exchange(&meeting->member, mine, bytes, all, meeting->timeout_ns);
    if (meeting->root)
        return group_root_exchange(meeting->root, mine, bytes, all, meeting->timeout_ns);
    if (bytes)
        memcpy(all, mine, bytes);
    return 0;
}

/* The socket that leads to another rank; -1: none does. Rank 0 has one to each rank, the others to rank 0
 * alone. */
static int group_meeting_socket(const struct group_meeting *meeting, uint32_t rank)
{
    if (meeting->rank > 0)
        return rank == 0 ? meeting->member.channel.fd : -1;
    return meeting->root && rank > 0 ? group_root_socket(meeting->root, rank) : -1;
}

void group_meeting_close(struct group_meeting *meeting)
{
    char kept[LH_ERROR_TEXT_BYTES];
    snprintf(kept, sizeof kept, "%s", lh_last_error());
    if (meeting->rank > 0)
        group_rank_close(&meeting->member);
    else if (meeting->root)
        group_root_close(meeting->root);
    lh_error_set(LH_EHANDSHAKE, kept);
}

/* ---- group address --------------------------------------------------------------------------------- */

/* The address of this host that a rank gives to the others. */

#define ALONE         "udp:127.0.0.1"
#define LOOPBACK_FOUR "udp:127."
#define LOOPBACK_SIX  "udp:[::1]"

/* Whether it can be reached from elsewhere: it is up and has a carrier; link-local IPv6 needs a scope that
 * is another one there. */
static bool is_usable(const struct ifaddrs *interface)
{
    const unsigned needed = IFF_UP | IFF_RUNNING;
    if (!interface->ifa_addr || (interface->ifa_flags & needed) != needed)
        return false;
    if (interface->ifa_addr->sa_family == AF_INET)
        return true;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)interface->ifa_addr;
    return interface->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr);
}

static int format_device(const struct sockaddr *address, char *device, size_t size)
{
    char host[64];
    bool six = address->sa_family == AF_INET6;
    socklen_t bytes = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int failed = getnameinfo(address, bytes, host, sizeof host, NULL, 0, NI_NUMERICHOST);
    if (failed)
        return lh_fail(LH_EADDR, "%s", gai_strerror(failed));
    snprintf(device, size, six ? "udp:[%s]" : "udp:%s", host);
    return 0;
}

/* The first usable address in the filter's order, of that family if there is one. */
static const struct ifaddrs *find(const struct ifaddrs *list, const char *filter, int family)
{
    int best = INT32_MAX;
    const struct ifaddrs *found = NULL;
    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        int place = is_usable(at) ? interface_filter_match(filter, at->ifa_name) : -1;
        if (place < 0)
            continue;
        place = 2 * place + (at->ifa_addr->sa_family != family);
        if (place < best) {
            best = place;
            found = at;
        }
    }
    return found;
}

/* 1: there is one; 0: there is none. */
static int interface_device(const char *filter, int family, char *device, size_t size)
{
    struct ifaddrs *list;
    if (getifaddrs(&list))
        return lh_fail(LH_ESYSTEM, "getifaddrs: %s", strerror(errno));
    const struct ifaddrs *found = find(list, filter, family);
    int error = found ? format_device(found->ifa_addr, device, size) : 0;
    freeifaddrs(list);
    return error ? error : found != NULL;
}

static int chosen_device(const char *interfaces, int family, char *device, size_t size)
{
    int found = interface_device(interfaces, family, device, size);
    if (found == 0)
        return lh_fail(LH_EADDR,
                       "LONGHAUL_SOCKET_IFNAME: \"%.80s\" matches no interface that is up, has a carrier "
                       "and an address (ip address lists them)",
                       interfaces);
    return found < 0 ? found : 0;
}

/* Whether that device is reached from this host alone. */
static bool group_address_is_loopback(const char *device)
{
    return !strncmp(device, LOOPBACK_FOUR, strlen(LOOPBACK_FOUR)) || !strcmp(device, LOOPBACK_SIX);
}

/* What ranks learn of each other: whether the address is a loopback one 1 | MTU 4 | of rank 0: the device
 * at which ranks of other hosts reached it, with zeros behind; or zeros, when there are none 63 | whether the
 * MTU may be any multiple of ROCE_PAYLOAD_STEP 1: 0 of an older release, or of a rank that chose its
 * device */
#define NOTE_DEVICE_BYTES 63u
#define NOTE_BYTES        (6u + NOTE_DEVICE_BYTES)

struct note {
    bool local;
    bool any_mtu;
    uint32_t mtu_bytes;
    char outside[NOTE_DEVICE_BYTES];
};

static void encode_note(const struct note *note, uint8_t out[NOTE_BYTES])
{
    out[0] = note->local;
    lh_put_be32(out + 1, note->mtu_bytes);
    memcpy(out + 5, note->outside, NOTE_DEVICE_BYTES);
    out[5 + NOTE_DEVICE_BYTES] = note->any_mtu;
}

static void decode_note(const uint8_t in[NOTE_BYTES], struct note *note)
{
    note->local = in[0];
    note->mtu_bytes = lh_get_be32(in + 1);
    memcpy(note->outside, in + 5, NOTE_DEVICE_BYTES);
    note->outside[NOTE_DEVICE_BYTES - 1] = '\0';
    note->any_mtu = in[5 + NOTE_DEVICE_BYTES] != 0;
}

/* Rank 0: the address of this host that the first rank of another host has reached. An interface's name or
 * its place in a list shows nothing of the kind: a bridge without a cable comes first as well. */
static void find_outside(const struct group_meeting *meeting, char outside[NOTE_DEVICE_BYTES])
{
    char device[TCP_NAME_MAX];
    for (uint32_t rank = 1; rank < meeting->size && !*outside; rank++) {
        int fd = group_meeting_socket(meeting, rank);
        if (fd >= 0 && tcp_udp_device(fd, device, sizeof device) == 0 &&
            !group_address_is_loopback(device) && strlen(device) < NOTE_DEVICE_BYTES)
            strcpy(outside, device);
    }
}

/* *alone: this rank has a loopback address, and others do not, so that they could not reach it. Such a rank
 * reached rank 0 by loopback, so it is on the host of rank 0, whose address `outside` is. */
static int compare(struct group_meeting *meeting, const struct note *mine, bool *alone, struct note *common)
{
    uint8_t bytes[NOTE_BYTES];
    uint8_t *all = malloc((size_t)meeting->size * NOTE_BYTES);
    *common = *mine;
    *alone = false;
    if (!all)
        return lh_fail(LH_ENOMEM, "no memory for %u ranks", meeting->size);
    encode_note(mine, bytes);
    int error = group_meeting_exchange(meeting, bytes, sizeof bytes, all);
    for (uint32_t rank = 0; rank < meeting->size && !error; rank++) {
        struct note note;
        decode_note(all + (size_t)rank * NOTE_BYTES, &note);
        *alone |= mine->local && !note.local;
        common->any_mtu &= note.any_mtu;
        common->mtu_bytes = note.mtu_bytes < common->mtu_bytes ? note.mtu_bytes : common->mtu_bytes;
        if (rank == 0)
            memcpy(common->outside, note.outside, sizeof note.outside);
    }
    free(all);
    return error;
}

/* What decides over the address of a rank. */
struct group_address_terms {
    const char *interfaces;
    bool chose_device; /* this rank did */
    bool encrypts;     /* packets are longer */
};

/* Sets *mtu_bytes to the largest MTU that fits the paths of all ranks to rank 0, a power of two if that
 * of one must be; 0: not even the smallest does, or this rank is alone.
 * Writes a device, "udp:10.0.0.1": on the first interface of the filter (launcher.h), when one was
 * chosen; else with the address that the rendezvous uses. Where that is a loopback address and another
 * rank has none, as with a host whose name leads to 127.0.1.1: the address of rank 0's host that a rank
 * of another host has reached. All ranks call it, since it makes an exchange. -LH_EADDR: no interface
 * matches. */
static int group_address_find(struct group_meeting *meeting, const struct group_address_terms *terms,
                              char *device, size_t size, uint32_t *mtu_bytes)
{
    bool alone;
    struct note mine = {0}, common;
    int fd = group_meeting_socket(meeting, meeting->rank == 0), error = 0;
    snprintf(device, size, ALONE);
    if (fd >= 0)
        error = tcp_udp_device(fd, device, size);
    int family = strchr(device, '[') ? AF_INET6 : AF_INET;
    if (!error && *terms->interfaces)
        error = chosen_device(terms->interfaces, family, device, size);
    mine.local = group_address_is_loopback(device);
    mine.mtu_bytes = fd >= 0 ? tcp_path_mtu(fd, terms->encrypts ? ROCE_SEALED_EXTRA : 0) : 0;
    mine.any_mtu = !terms->chose_device;
    if (meeting->rank == 0)
        find_outside(meeting, mine.outside);
    if (!error)
        error = compare(meeting, &mine, &alone, &common);
    if (error)
        return error;
    if (alone && !*terms->interfaces && *common.outside)
        snprintf(device, size, "%s", common.outside);
    bool takes_powers = !common.any_mtu && common.mtu_bytes != 0;
    *mtu_bytes = takes_powers ? roce_mtu_for(common.mtu_bytes) : common.mtu_bytes;
    return 0;
}

/* ---- group env ------------------------------------------------------------------------------------- */

#define TIMEOUT_DEFAULT_NS (30 * LH_NS_PER_S)
#define TIMEOUT_MAX_NS     (86400 * LH_NS_PER_S)
/* Each rank's links lose packets of their own. */
#define SEED_STEP 0x9E3779B97F4A7C15u

static const char *get_variable(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* What a group of the environment encrypts with. */
struct secrecy {
    enum lh_encryption encryption;
    bool loopback_only; /* without a key */
    struct key_group key;
    struct tls_context *tls; /* NULL: clear text */
};

/* The caller's key file, else the launcher's secret, else the launcher's key file. *found: there is one. */
static int read_key(const struct lh_security *security, const struct launcher_settings *settings,
                    struct key_group *key, bool *found)
{
    const char *file = security && security->key_file ? security->key_file : "";
    const char *secret = security ? security->secret : NULL;
    *found = true;
    if (*file || secret)
        return key_group_given(secret, file, key);
    if (*settings->secret)
        return key_group_of_text("LONGHAUL_SECRET", settings->secret, key);
    if (*settings->key_file)
        return key_group_read(settings->key_file, key);
    *found = false;
    return 0;
}

static int check_given(const struct lh_security *security)
{
    struct lh_attr attr;
    struct lh_security copy = *security;
    lh_attr_init(&attr);
    attr.security = &copy;
    if (security->struct_bytes == sizeof copy && !security->secret &&
        (!security->key_file || !*security->key_file))
        copy.key_file = "of the launcher";
    return attr_check(&attr, &attr);
}

/* To be ended by end_secrecy(). */
static int begin_secrecy(const struct lh_group_attr *attr, const struct launcher_settings *settings,
                         struct secrecy *secrecy)
{
    const struct lh_security *security;
    bool found;
    *secrecy = (struct secrecy){.encryption = LH_ENCRYPTION_OFF};
    int error = security_of(attr->attr, attr->attr_across, &security);
    if (!error && security)
        error = check_given(security);
    bool loopback_only = security && security->loopback_only;
    secrecy->loopback_only = loopback_only;
    if (error || (security && security->encryption == LH_ENCRYPTION_OFF))
        return error;
    error = read_key(security, settings, &secrecy->key, &found);
    if (!error && !found && security && !loopback_only)
        error =
            lh_fail(LH_EINVAL, "security.key_file: not set, and LONGHAUL_SECRET neither (name a key file, "
                               "or set security to NULL)");
    if (error || !found)
        return error;
    secrecy->loopback_only = false;
    secrecy->encryption = security ? security->encryption : LH_ENCRYPTION_FULL;
    if (secrecy->encryption == LH_ENCRYPTION_FULL)
        error = fabric_device_check_encrypts(attr->engine ? attr->engine->device : attr->device);
    if (!error)
        error =
            tls_context_of(&secrecy->key.rendezvous, secrecy->encryption, GROUP_KEY_REMEDY, &secrecy->tls);
    return error;
}

static void end_secrecy(struct secrecy *secrecy)
{
    tls_context_free(secrecy->tls);
    key_group_wipe(&secrecy->key);
}

/* Attributes of connections, completed by what is known here. */
struct completed {
    struct lh_attr inside, across;
};

/* Connections of a group do not measure the MTU of their paths. Across sites there is the link of
 * LONGHAUL_LINK. */
static void complete(const struct launcher_settings *settings, uint32_t mtu_bytes,
                     struct lh_group_attr *attr, struct completed *completed)
{
    lh_attr_init(&completed->inside);
    if (attr->attr)
        completed->inside = *attr->attr;
    completed->across = attr->attr_across ? *attr->attr_across : completed->inside;
    completed->inside.security = completed->across.security = NULL; /* it is in use */
    attr_fill_packets(&completed->inside, mtu_bytes);
    attr_fill_packets(&completed->across, mtu_bytes);
    if (!lh_link_is_none(&settings->link)) {
        completed->across.link = settings->link;
        completed->across.link.seed += settings->rank * SEED_STEP;
    }
    attr->attr = &completed->inside;
    attr->attr_across = &completed->across;
}

/* Where a peer cannot be reached, the address that was chosen may be the cause. Not where all are here. */
static int name_device(int error, const char *device)
{
    char cause[512];
    if ((error != -LH_EPEER && error != -LH_ETIMEDOUT) || group_address_is_loopback(device))
        return error;
    snprintf(cause, sizeof cause, "%s", lh_last_error());
    return lh_fail((enum lh_error) - error,
                   "%s; this rank's packets use %s (choose another interface by LONGHAUL_SOCKET_IFNAME)",
                   cause, device);
}

static int create(struct group_meeting *meeting, const struct launcher_settings *settings,
                  const struct secrecy *secrecy, const struct lh_group_attr *given, struct lh_group **group)
{
    struct lh_group_attr attr = *given;
    struct completed completed;
    uint32_t mtu_bytes;
    char device[TCP_NAME_MAX];
    attr.rank = settings->rank;
    attr.size = settings->size;
    attr.exchange = group_meeting_exchange;
    attr.exchange_context = meeting;
    if (!attr.site && *settings->site)
        attr.site = settings->site;
    /* A device that the caller chose may lead another way. */
    bool chose_device = attr.device || attr.engine;
    const struct group_address_terms terms = {settings->interfaces, chose_device,
                                              secrecy->encryption == LH_ENCRYPTION_FULL};
    int error = group_address_find(meeting, &terms, device, sizeof device, &mtu_bytes);
    if (error)
        return error;
    if (!attr.device)
        attr.device = device;
    complete(settings, chose_device ? 0 : mtu_bytes, &attr, &completed);
    error = group_create(&attr, secrecy->encryption, &secrecy->key, group);
    return chose_device ? error : name_device(error, device);
}

int lh_group_create_env(const struct lh_group_attr *given, struct lh_group **group)
{
    struct launcher_settings settings;
    struct group_meeting meeting;
    struct secrecy secrecy;
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    if (given && given->struct_bytes != sizeof attr)
        return lh_fail(LH_EINVAL, "lh_group_attr: %zu bytes, %zu expected (call lh_group_attr_init())",
                       given->struct_bytes, sizeof attr);
    if (given)
        attr = *given;
    int error = launcher_read(get_variable, NULL, &settings);
    lh_time timeout_ns = attr.timeout_ns ? attr.timeout_ns : TIMEOUT_DEFAULT_NS;
    if (!error && timeout_ns > TIMEOUT_MAX_NS)
        error = lh_fail(LH_ERANGE, "timeout_ns: out of range (at most a day)");
    if (error)
        return error;
    error = begin_secrecy(&attr, &settings, &secrecy);
    settings.loopback_only = secrecy.loopback_only;
    if (!error)
        error = group_meeting_open(&settings, secrecy.tls, timeout_ns, &meeting);
    if (!error) {
        error = create(&meeting, &settings, &secrecy, &attr, group);
        group_meeting_close(&meeting);
    }
    end_secrecy(&secrecy);
    return error;
}

int lh_group_rank_env(uint32_t *rank, uint32_t *size)
{
    struct launcher_settings settings;
    int error = launcher_read(get_variable, NULL, &settings);
    if (error)
        return error;
    *rank = settings.rank;
    *size = settings.size;
    return 0;
}
