/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_rank.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/big_endian.h"
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

static int prove(struct group_rank *rank, const char *secret, const struct group_claim *claim,
                 const struct group_challenge *challenge, lh_time deadline)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    if (challenge->secret != (*secret != '\0'))
        return lh_fail(LH_EHANDSHAKE, "rank 0 at %s asks for %s secret (set LONGHAUL_SECRET for all ranks)",
                       rank->where, challenge->secret ? "a" : "no");
    int error = group_proof_make(secret, claim, false, proof);
    return error ? error : send_frame(rank, GROUP_PROOF, proof, sizeof proof, deadline);
}

static int await_welcome(struct group_rank *rank, const char *secret, const struct group_claim *claim,
                         lh_time deadline)
{
    uint8_t proof[GROUP_PROOF_BYTES];
    int error = read_header(rank, GROUP_WELCOME, sizeof proof, deadline);
    if (!error)
        error = read_body(rank, proof, sizeof proof, deadline);
    if (error || group_proof_check(secret, claim, true, proof))
        return error;
    return lh_fail(LH_EHANDSHAKE, "rank 0 at %s has another secret (set LONGHAUL_SECRET for all ranks)",
                   rank->where);
}

/* Over a new connection. *answered: rank 0 is there, and it is no use to connect again. */
static int shake_hands(struct group_rank *rank, const char *secret, lh_time timeout_ns, lh_time deadline,
                       bool *answered)
{
    uint8_t hello[GROUP_HELLO_BYTES], body[GROUP_CHALLENGE_BYTES];
    struct group_challenge challenge;
    struct group_claim claim = {.rank = rank->rank, .size = rank->size};
    struct group_hello mine = {.rank = rank->rank, .size = rank->size, .secret = *secret != '\0'};
    int error = group_nonce(mine.nonce);
    memcpy(claim.rank_nonce, mine.nonce, sizeof claim.rank_nonce);
    group_hello_encode(&mine, hello);
    if (!error)
        error = send_frame(rank, GROUP_HELLO, hello, sizeof hello, deadline);
    if (!error)
        error = read_header(rank, GROUP_CHALLENGE, sizeof body, deadline);
    *answered = error != -LH_EPEER;
    if (!error)
        error = read_body(rank, body, sizeof body, deadline);
    if (!error)
        error = group_challenge_decode(body, &challenge);
    if (error)
        return error;
    memcpy(claim.root_nonce, challenge.nonce, sizeof claim.root_nonce);
    lh_time wait_ns = challenge.wait_ms * LH_NS_PER_MS;
    lh_time until = tcp_deadline((wait_ns < timeout_ns ? wait_ns : timeout_ns) + GROUP_GRACE_NS);
    error = prove(rank, secret, &claim, &challenge, until);
    return error ? error : await_welcome(rank, secret, &claim, until);
}

static int join_once(struct group_rank *rank, const char *secret, lh_time timeout_ns, lh_time deadline,
                     bool *answered)
{
    *answered = false;
    int error = tcp_connect(rank->where, deadline, &rank->fd);
    if (error)
        return error;
    error = shake_hands(rank, secret, timeout_ns, deadline, answered);
    if (error)
        close(rank->fd);
    return error;
}

int group_rank_join(struct group_rank *rank, const char *where, uint32_t number, uint32_t size,
                    const char *secret, lh_time timeout_ns)
{
    bool answered;
    char cause[256];
    lh_time deadline = tcp_deadline(timeout_ns), pause = PAUSE_FIRST_NS;
    *rank = (struct group_rank){.fd = -1, .where = where, .rank = number, .size = size};
    for (;;) { /* until the deadline */
        int error = join_once(rank, secret, timeout_ns, deadline, &answered);
        if (!error || answered || error == -LH_EINVAL)
            return error;
        snprintf(cause, sizeof cause, "%s", lh_last_error());
        if (tcp_now() + pause >= deadline)
            return lh_fail(LH_ETIMEDOUT,
                           "rank %u: rank 0 did not answer within %g s: %s (start rank 0; "
                           "is MASTER_ADDR its host?)",
                           number, (double)timeout_ns / 1e9, cause);
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
