/*
 * group_frames.h - the frames over TCP by which the ranks of a group find each other at rank 0, and proofs of
 * the secret. Pure. Integers big-endian.
 *
 * Frame, 12 bytes and a body: magic 4 | version 1 | type 1 | zero 2 | body bytes 4
 *   HELLO      rank 4 | size 4 | zero 2 | encryption 1 | secret 1 | nonce 16 | known 16 | job 64: of a rank
 *   CHALLENGE  milliseconds that rank 0 waits for ranks yet 4 | secret 4 | nonce 16 | job 64
 *   PROOF      proof 32
 *   WELCOME    proof 32 of rank 0: all ranks are there
 *   PART       round 4 | what the rank gives to an exchange
 *   ALL        round 4 | what all gave, by rank
 *   REFUSE     a reason for people; ends the connection
 *   FULL       empty: another client needs the place; ends the connection. The rank returns
 *
 * Secret: 1 with one, else 0. Encryption: enum handshake_encryption; with it all runs under TLS.
 *
 * Nonces: a rank keeps its own for all its connections. Rank 0's is a cookie (admission.h) over the rank's
 * address, rank, size and nonce: the same for each connection of that rank, and rank 0 keeps nothing for
 * it. So a rank that has lost its place after CHALLENGE sends HELLO and PROOF at once when it returns, and
 * needs no further round trip. If it returns from another address, its `known` nonce is not the right one:
 * rank 0 leaves that PROOF aside and takes the one that answers its new CHALLENGE. Whoever overhears both
 * can repeat them from the same address while ranks join: the secret keeps out those who do not overhear.
 *
 * Job: what the launcher calls the job ("PMIX_NAMESPACE=..."), in zeros to the end. Without one rank 0
 * picks a random name, which ranks learn by CHALLENGE and repeat when they return. Two jobs with names of
 * one kind do not mix.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_FRAMES_H
#define LH_LAUNCH_GROUP_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/handshake.h"

#define GROUP_FRAME_HEADER_BYTES 12u
#define GROUP_NONCE_BYTES        16u
#define GROUP_PROOF_BYTES        32u
#define GROUP_JOB_BYTES          64u /* with the zero that ends it */
#define GROUP_HELLO_BYTES        (12u + 2 * GROUP_NONCE_BYTES + GROUP_JOB_BYTES)
#define GROUP_CHALLENGE_BYTES    (8u + GROUP_NONCE_BYTES + GROUP_JOB_BYTES)
#define GROUP_JOB_RANDOM         "random-" /* begins a name that rank 0 picked */
#define GROUP_ROUND_BYTES        4u
#define GROUP_REASON_MAX         300u
/* Longest body of all but PART and ALL. */
#define GROUP_SMALL_BODY_MAX GROUP_REASON_MAX
/* What one exchange may hold of all ranks. */
#define GROUP_EXCHANGE_MAX ((uint64_t)1 << 28)

enum group_frame_type {
    GROUP_HELLO = 1,
    GROUP_CHALLENGE = 2,
    GROUP_PROOF = 3,
    GROUP_WELCOME = 4,
    GROUP_PART = 5,
    GROUP_ALL = 6,
    GROUP_REFUSE = 7,
    GROUP_FULL = 8,
};

/* What to do where ranks differ. */
#define GROUP_LOOPBACK_ONLY                                                                                \
    "not encrypted: ranks on other hosts are refused (set LONGHAUL_SECRET, or LONGHAUL_KEY_FILE, for all " \
    "ranks; or use --insecure)"
#define GROUP_KEY_REMEDY "give all ranks the same LONGHAUL_SECRET or key file, and the same --encryption"

struct group_frame {
    enum group_frame_type type;
    uint32_t body_bytes;
};

struct group_hello {
    uint32_t rank, size;
    enum handshake_encryption encryption;
    bool secret;
    uint8_t nonce[GROUP_NONCE_BYTES];
    uint8_t known
        [GROUP_NONCE_BYTES];   /* rank 0's nonce that the PROOF behind this is for; zeros: none follows */
    char job[GROUP_JOB_BYTES]; /* "": not known yet */
};

struct group_challenge {
    uint32_t wait_ms;
    bool secret;
    uint8_t nonce[GROUP_NONCE_BYTES];
    char job[GROUP_JOB_BYTES];
};

void group_frame_encode(const struct group_frame *frame, uint8_t out[GROUP_FRAME_HEADER_BYTES]);
/* Also checks that the length is possible for the type. -LH_EHANDSHAKE: no such frame; -LH_EVERSION: of
 * another version. */
int group_frame_decode(const uint8_t in[GROUP_FRAME_HEADER_BYTES], struct group_frame *frame);

void group_hello_encode(const struct group_hello *hello, uint8_t out[GROUP_HELLO_BYTES]);
/* -LH_EHANDSHAKE: a rank that is not below the size, no flag, or no text. */
int group_hello_decode(const uint8_t in[GROUP_HELLO_BYTES], struct group_hello *hello);
void group_challenge_encode(const struct group_challenge *challenge, uint8_t out[GROUP_CHALLENGE_BYTES]);
int group_challenge_decode(const uint8_t in[GROUP_CHALLENGE_BYTES], struct group_challenge *challenge);
/* Whether two names are of one kind, both from launchers or both random (GROUP_JOB_RANDOM), and differ. */
bool group_jobs_conflict(const char *a, const char *b);
/* Copies a reason of at most GROUP_REASON_MAX bytes, without what a terminal could act on. */
void group_reason_decode(const uint8_t *in, uint32_t bytes, char reason[GROUP_REASON_MAX + 1]);

/* ---- group proof ----------------------------------------------------------------------------------- */

/*
 * That both ends of a connection know the group's secret: HMAC-SHA-256 under the secret of a
 * label, both nonces, the rank and the size. The secret itself never travels. Without TLS, what follows on
 * the connection is neither encrypted nor authenticated.
 */

struct group_claim {
    uint32_t rank, size;
    uint8_t rank_nonce[GROUP_NONCE_BYTES];
    uint8_t root_nonce[GROUP_NONCE_BYTES];
};

/* Random bytes of the system. -LH_ESYSTEM. */
int group_nonce(uint8_t nonce[GROUP_NONCE_BYTES]);
/* The name of a job that has none from its launcher: GROUP_JOB_RANDOM and 32 digits. -LH_ESYSTEM. */
int group_job_make(char job[GROUP_JOB_BYTES]);
/* by_root: rank 0's proof, else the rank's. Without a secret (""): zeros. */
int group_proof_make(const char *secret, const struct group_claim *claim, bool by_root,
                     uint8_t proof[GROUP_PROOF_BYTES]);
/* Whether that is the proof; in a time that does not depend on where it differs. */
bool group_proof_check(const char *secret, const struct group_claim *claim, bool by_root,
                       const uint8_t proof[GROUP_PROOF_BYTES]);

#endif
