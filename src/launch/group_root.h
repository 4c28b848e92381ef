/*
 * group_root.h - rank 0 of a rendezvous over TCP: lets the other ranks join, and runs exchanges among them.
 * Only calls make progress, and each ends by its deadline. Strangers, slow and hostile clients cost a place
 * among GROUP_CLIENTS_MAX for GROUP_CLIENT_TIMEOUT_NS at most, and leave when others need it (admission.h).
 * A rank that had to leave returns, and joins with its first bytes (group_frames.h).
 *
 * An error of a call is sent to all ranks as the reason, and ends the rendezvous.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_ROOT_H
#define LH_LAUNCH_GROUP_ROOT_H

#include <longhaul/types.h>

#include "launch/admission.h"
#include "launch/group_frames.h"
#include "launch/tcp.h"
#include "launch/tls_channel.h"

#define GROUP_CLIENTS_MAX 64u

struct group_root;

/* Listens at "HOST:PORT" for size - 1 ranks. secret and job: "" for none; tls: NULL for clear text; they stay
 * the caller's. -LH_EADDR, -LH_ENOMEM, -LH_ESYSTEM. */
int group_root_open(const char *where, uint32_t size, const char *secret, const char *job,
                    struct tls_context *tls, struct group_root **root);
/* From now on clients of other hosts are refused. Ahead of group_root_join(). */
void group_root_serve_loopback_only(struct group_root *root);
/* Waits until all ranks have joined. -LH_ETIMEDOUT names those that are missing. */
int group_root_join(struct group_root *root, lh_time timeout_ns);
/* As group_exchange() of rank 0. -LH_ETIMEDOUT and -LH_EPEER name the rank, -LH_EINVAL two ranks whose sizes
 * differ. */
int group_root_exchange(struct group_root *root, const void *mine, size_t bytes, void *all,
                        lh_time timeout_ns);
/* The socket of a rank that has joined. */
int group_root_socket(const struct group_root *root, uint32_t rank);
/* Refuses clients that wait, and closes. Changes lh_last_error(). */
void group_root_close(struct group_root *root);

/* ---- group member ---------------------------------------------------------------------------------- */

/*
 * One connection of rank 0's rendezvous, from an accepted socket to a rank that has joined.
 * It never waits: each call reads or writes what is possible now.
 */

struct group_member {
    struct channel channel; /* descriptor -1: none */
    lh_time deadline;       /* of its handshake */
    uint64_t arrival;       /* its number among all clients */
    uint32_t poll;          /* its index in the table for poll(); 0: not there */
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
    struct tls_context *tls;  /* NULL: clear text */
    struct admission_key key; /* of rank 0's nonces */
    lh_time deadline;         /* of the rendezvous */
};

/* Takes an accepted socket, non-blocking. -LH_ENOMEM: it is closed. */
int group_member_start(struct group_member *member, int fd, struct tls_context *tls, lh_time now);
/* Goes on with its handshake. 1: it has proved its claim; 0: more is to come; or why it is to be refused. */
int group_member_step(struct group_member *member, const struct group_terms *terms, lh_time now);
/* Reads its PART of `bytes` for that round into part. 1: whole; 0; -LH_EINVAL: of other bytes; -LH_EPEER;
 * -LH_EHANDSHAKE: another frame. */
int group_member_read_part(struct group_member *member, uint32_t round, uint8_t *part, size_t bytes);
/* Sends lh_last_error() as the reason, as far as possible without waiting, and closes. */
void group_member_refuse(struct group_member *member);

#endif
