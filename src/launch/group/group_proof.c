/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group/group_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "launch/admission.h"

int group_nonce(uint8_t nonce[GROUP_NONCE_BYTES])
{
    return admission_random(nonce, GROUP_NONCE_BYTES);
}

int group_job_make(char job[GROUP_JOB_BYTES])
{
    uint8_t random[GROUP_NONCE_BYTES];
    int error = group_nonce(random);
    memset(job, 0, GROUP_JOB_BYTES);
    int used = snprintf(job, GROUP_JOB_BYTES, GROUP_JOB_RANDOM);
    for (size_t i = 0; i < sizeof random && !error; i++)
        used += snprintf(job + used, GROUP_JOB_BYTES - (size_t)used, "%02x", random[i]);
    return error;
}

#define LABEL_BYTES 8u
#define CLAIM_BYTES (LABEL_BYTES + 8u + 2 * GROUP_NONCE_BYTES)

int group_proof_make(const char *secret, const struct group_claim *claim, bool by_root,
                     uint8_t proof[GROUP_PROOF_BYTES])
{
    uint8_t text[CLAIM_BYTES];
    unsigned length = 0;
    memset(proof, 0, GROUP_PROOF_BYTES);
    if (!*secret)
        return 0;
    memcpy(text, by_root ? "LHG root" : "LHG rank", LABEL_BYTES);
    lh_put_be32(text + LABEL_BYTES, claim->rank);
    lh_put_be32(text + LABEL_BYTES + 4, claim->size);
    memcpy(text + LABEL_BYTES + 8, claim->rank_nonce, GROUP_NONCE_BYTES);
    memcpy(text + LABEL_BYTES + 8 + GROUP_NONCE_BYTES, claim->root_nonce, GROUP_NONCE_BYTES);
    if (HMAC(EVP_sha256(), secret, (int)strlen(secret), text, sizeof text, proof, &length) &&
        length == GROUP_PROOF_BYTES)
        return 0;
    return lh_fail(LH_ESYSTEM, "HMAC-SHA-256: not available in this system's libcrypto");
}

bool group_proof_check(const char *secret, const struct group_claim *claim, bool by_root,
                       const uint8_t proof[GROUP_PROOF_BYTES])
{
    uint8_t right[GROUP_PROOF_BYTES];
    return group_proof_make(secret, claim, by_root, right) == 0 &&
           CRYPTO_memcmp(right, proof, GROUP_PROOF_BYTES) == 0;
}
