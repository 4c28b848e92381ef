/*
 * group_proof.h - that both ends of a connection know the group's secret: HMAC-SHA-256 under the secret of a
 * label, both nonces, the rank and the size. The secret itself never travels. What follows on the connection
 * is neither encrypted nor authenticated.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_LAUNCH_GROUP_GROUP_PROOF_H
#define LH_LAUNCH_GROUP_GROUP_PROOF_H

#include "launch/group/group_frame.h"

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
