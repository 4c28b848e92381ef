/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_rank.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/earlier.h"
#include "base/error.h"
#include "launch/group/group_frame.h"
#include "launch/group/group_proof.h"
#include "launch/tcp.h"

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
    int error = tcp_write(rank->fd, frame, GROUP_FRAME_HEADER_BYTES + bytes, deadline);
    return error ? to_root_failed(rank, error) : 0;
}

static int refused(struct group_rank *rank, const struct group_frame *frame, lh_time deadline)
{
    uint8_t body[GROUP_REASON_MAX];
    char reason[GROUP_REASON_MAX + 1];
    if (tcp_read(rank->fd, body, frame->body_bytes, deadline))
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
    int error = tcp_read(rank->fd, head, sizeof head, deadline);
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
    int error = tcp_read(rank->fd, body, bytes, deadline);
    return error ? to_root_failed(rank, error) : 0;
}

/* ---- joining ----------------------------------------------------------------------------------------- */

/* What a rank keeps from one connection to the next. */
struct joining {
    const char *secret;
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

static int say_hello(struct group_rank *rank, struct joining *joining)
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
            "rank 0 at %s is of job %s, rank %u of job %s (give each job a MASTER_PORT of its own)",
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

/* Over a new connection. */
static int shake_hands(struct group_rank *rank, struct joining *joining)
{
    uint8_t body[GROUP_CHALLENGE_BYTES];
    struct group_challenge challenge;
    int error = say_hello(rank, joining);
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

/* *retry: the connection was not made, or was lost on the way: there may be a place, or a rank 0, later.
 * Whoever refuses a connection after it has answered has ended. */
static int join_once(struct group_rank *rank, struct joining *joining, bool *retry)
{
    char lost[256];
    bool answered = joining->answered;
    snprintf(lost, sizeof lost, "%s", lh_last_error());
    int error = tcp_connect(rank->where, joining->deadline, &rank->fd);
    *retry = error && error != -LH_EINVAL && !(answered && error == -LH_EPEER);
    if (error && answered && error == -LH_EPEER)
        return lh_fail(LH_EPEER, "%s", lost);
    if (error)
        return error;
    error = shake_hands(rank, joining);
    *retry = error == -LH_EPEER;
    if (error)
        close(rank->fd);
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

int group_rank_join(struct group_rank *rank, const struct group_rank_terms *terms, lh_time timeout_ns)
{
    bool retry;
    lh_time pause = PAUSE_FIRST_NS;
    struct joining joining = {
        .secret = terms->secret,
        .timeout_ns = timeout_ns,
        .deadline = tcp_deadline(timeout_ns),
        .limit = tcp_deadline(2 * timeout_ns + GROUP_GRACE_NS),
        .hello = {.rank = terms->rank, .size = terms->size, .secret = *terms->secret != '\0'},
        .claim = {.rank = terms->rank, .size = terms->size},
    };
    *rank = (struct group_rank){.fd = -1, .where = terms->where, .rank = terms->rank, .size = terms->size};
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

int group_rank_exchange(struct group_rank *rank, const void *mine, size_t bytes, void *all,
                        lh_time timeout_ns)
{
    lh_time deadline = tcp_deadline(timeout_ns + GROUP_GRACE_NS);
    uint8_t head[GROUP_FRAME_HEADER_BYTES + GROUP_ROUND_BYTES], round[GROUP_ROUND_BYTES];
    if (bytes > GROUP_EXCHANGE_MAX / rank->size)
        return lh_fail(LH_ERANGE, "exchange: %zu bytes of %u ranks exceed %llu MiB", bytes, rank->size,
                       (unsigned long long)(GROUP_EXCHANGE_MAX >> 20));
    group_frame_encode(&(struct group_frame){GROUP_PART, (uint32_t)(GROUP_ROUND_BYTES + bytes)}, head);
    lh_put_be32(head + GROUP_FRAME_HEADER_BYTES, rank->round);
    int error = tcp_write(rank->fd, head, sizeof head, deadline);
    if (!error)
        error = tcp_write(rank->fd, mine, bytes, deadline);
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

void group_rank_close(struct group_rank *rank)
{
    close(rank->fd);
    rank->fd = -1;
}
