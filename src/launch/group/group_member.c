/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_member.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "launch/group/group_root.h"

void group_member_start(struct group_member *member, int fd, lh_time now)
{
    *member = (struct group_member){
        .fd = fd, .deadline = now + GROUP_CLIENT_TIMEOUT_NS, .address = admission_address_of(fd)};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (tcp_peer_name(fd, member->name, sizeof member->name))
        snprintf(member->name, sizeof member->name, "a disconnected client");
}

/* ---- small frames ------------------------------------------------------------------------------------ */

/* Whole or not at all: a socket holds far more than a handshake, unless the peer does not read. */
static int send_small(const struct group_member *member, enum group_frame_type type, const void *body,
                      uint32_t bytes)
{
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_SMALL_BODY_MAX];
    assert(bytes <= GROUP_SMALL_BODY_MAX);
    group_frame_encode(&(struct group_frame){type, bytes}, frame);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES, body, bytes);
    ssize_t whole = (ssize_t)(GROUP_FRAME_HEADER_BYTES + bytes);
    ssize_t sent = send(member->fd, frame, (size_t)whole, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == whole)
        return 0;
    return lh_fail(LH_EPEER, "%s: connection failed: %s", member->name,
                   sent < 0 ? strerror(errno) : "send buffer full");
}

/* Up to `bytes`; 0: nothing has come; or -LH_EPEER. */
static ssize_t receive(const struct group_member *member, void *buffer, size_t bytes)
{
    ssize_t got = recv(member->fd, buffer, bytes, MSG_DONTWAIT);
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

/* ---- handshake --------------------------------------------------------------------------------------- */

static int check_hello(const struct group_hello *hello, const struct group_terms *terms)
{
    if (hello->size != terms->size)
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u has %u ranks, rank 0 has %u (start all with the same number)", hello->rank,
                       hello->size, terms->size);
    bool secret = *terms->secret != '\0';
    if (hello->secret != secret)
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u has %s, rank 0 has %s (set LONGHAUL_SECRET to the same text for all ranks)",
                       hello->rank, secret ? "no secret" : "a secret", secret ? "one" : "none");
    if (group_jobs_conflict(hello->job, terms->job))
        return lh_fail(LH_EHANDSHAKE,
                       "rank %u is of job %s, rank 0 of job %s (give each job a MASTER_PORT of its own)",
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
    return 1;
}

int group_member_welcome(struct group_member *member, const struct group_terms *terms)
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
            return 1;
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

int group_member_write(struct group_member *member, const uint8_t *frame, size_t bytes)
{
    while (member->sent < bytes) { /* until the socket is full */
        ssize_t sent =
            send(member->fd, frame + member->sent, bytes - member->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (sent < 0)
            return lh_fail(LH_EPEER, "%s: %s", member->name, strerror(errno));
        member->sent += (size_t)sent;
    }
    return 1;
}

int group_member_check_silent(const struct group_member *member)
{
    uint8_t byte;
    ssize_t got = recv(member->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got > 0)
        return lh_fail(LH_EHANDSHAKE, "%s: data of rank %u before its turn (is it of this release?)",
                       member->name, member->claim.rank);
    return lh_fail(LH_EPEER, "%s: closed the connection", member->name);
}

/* ---- end --------------------------------------------------------------------------------------------- */

static void send_last(struct group_member *member, enum group_frame_type type, const char *text)
{
    size_t length = strnlen(text, GROUP_REASON_MAX);
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_REASON_MAX], unread[512];
    group_frame_encode(&(struct group_frame){type, (uint32_t)length}, frame);
    memcpy(frame + GROUP_FRAME_HEADER_BYTES, text, length);
    send(member->fd, frame, GROUP_FRAME_HEADER_BYTES + length, MSG_NOSIGNAL | MSG_DONTWAIT);
    /* Closed with bytes unread, TCP would throw away what it has just sent. */
    shutdown(member->fd, SHUT_WR);
    for (int i = 0; i < 64 && recv(member->fd, unread, sizeof unread, MSG_DONTWAIT) > 0; i++)
        continue;
    group_member_close(member);
}

void group_member_refuse(struct group_member *member)
{
    send_last(member, GROUP_REFUSE, lh_last_error());
}

void group_member_evict(struct group_member *member)
{
    if (member->greeted)
        send_last(member, GROUP_FULL, "");
    else
        group_member_close(member);
}

void group_member_close(struct group_member *member)
{
    close(member->fd);
    member->fd = -1;
}
