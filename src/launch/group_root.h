/*
 * group_member.h - one connection of rank 0's rendezvous, from an accepted socket to a rank that has joined.
 * It never waits: each call reads or writes what is possible now.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_GROUP_MEMBER_H
#define LH_LAUNCH_GROUP_GROUP_MEMBER_H

#include "launch/admission.h"
#include "launch/group/group_frame.h"
#include "launch/group/group_proof.h"
#include "launch/tcp.h"

struct group_member {
    int fd;           /* -1: none */
    lh_time deadline; /* of its handshake */
    uint64_t arrival; /* its number among all clients */
    uint32_t poll;    /* its index in the table for poll(); 0: not there */
    struct admission_address address;
    bool greeted;  /* HELLO has come, and CHALLENGE was sent */
    bool outdated; /* its next PROOF is for another nonce of rank 0, and another one follows */
    struct group_claim claim;
    char name[TCP_NAME_MAX]; /* of the peer, for people */
    uint32_t have;           /* bytes of the frame that is being read */
    uint8_t frame[GROUP_FRAME_HEADER_BYTES + GROUP_SMALL_BODY_MAX];
    /* the exchange that is under way */
    size_t part_have; /* bytes of PART, with its header */
    size_t sent;      /* of ALL */
};

/* What all members of a rendezvous have in common. */
struct group_terms {
    uint32_t size;
    const char *secret;
    const char *job;
    struct admission_key key; /* of rank 0's nonces */
    lh_time deadline;         /* of the rendezvous */
};

/* Takes an accepted socket, non-blocking. */
void group_member_start(struct group_member *member, int fd, lh_time now);
/* Goes on with its handshake. 1: it has proved its claim; 0: more is to come; or why it is to be refused. */
int group_member_step(struct group_member *member, const struct group_terms *terms, lh_time now);
/* Sends WELCOME. -LH_EPEER. */
int group_member_welcome(struct group_member *member, const struct group_terms *terms);
/* Reads its PART of `bytes` for that round into part. 1: whole; 0; -LH_EINVAL: of other bytes; -LH_EPEER;
 * -LH_EHANDSHAKE: another frame. */
int group_member_read_part(struct group_member *member, uint32_t round, uint8_t *part, size_t bytes);
/* Writes what is possible of a frame. 1: whole; 0; -LH_EPEER. */
int group_member_write(struct group_member *member, const uint8_t *frame, size_t bytes);
/* 0: nothing came from a member that has nothing to send; -LH_EPEER: it closed the connection;
 * -LH_EHANDSHAKE: it sent something. */
int group_member_check_silent(const struct group_member *member);
/* Sends FULL to a client that has said HELLO, and closes. */
void group_member_evict(struct group_member *member);
/* Sends lh_last_error() as the reason, as far as possible without waiting, and closes. */
void group_member_refuse(struct group_member *member);
void group_member_close(struct group_member *member);

#endif
