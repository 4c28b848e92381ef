/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/group_frames.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/types.h>

#include "base/bytes.h"
#include "base/error.h"
#include "launch/admission.h"

/* ---- group frame ----------------------------------------------------------------------------------- */

#define GROUP_FRAME_MAGIC   0x4C484731u /* "LHG1" */
#define GROUP_FRAME_VERSION 2u

void group_frame_encode(const struct group_frame *frame, uint8_t out[GROUP_FRAME_HEADER_BYTES])
{
    lh_put_be32(out, GROUP_FRAME_MAGIC);
    out[4] = GROUP_FRAME_VERSION;
    out[5] = (uint8_t)frame->type;
    lh_put_be16(out + 6, 0);
    lh_put_be32(out + 8, frame->body_bytes);
}

static bool is_possible(uint8_t type, uint32_t bytes)
{
    switch (type) {
    case GROUP_HELLO:
        return bytes == GROUP_HELLO_BYTES;
    case GROUP_CHALLENGE:
        return bytes == GROUP_CHALLENGE_BYTES;
    case GROUP_PROOF:
    case GROUP_WELCOME:
        return bytes == GROUP_PROOF_BYTES;
    case GROUP_PART:
    case GROUP_ALL:
        return bytes >= GROUP_ROUND_BYTES && bytes <= GROUP_EXCHANGE_MAX + GROUP_ROUND_BYTES;
    case GROUP_REFUSE:
        return bytes <= GROUP_REASON_MAX;
    case GROUP_FULL:
        return bytes == 0;
    default:
        return false;
    }
}

int group_frame_decode(const uint8_t in[GROUP_FRAME_HEADER_BYTES], struct group_frame *frame)
{
    if (handshake_is_tls(in))
        return lh_fail(LH_EHANDSHAKE,
                       "the remote side encrypts, this side does not (" GROUP_KEY_REMEDY ")");
    if (lh_get_be32(in) != GROUP_FRAME_MAGIC)
        return lh_fail(LH_EHANDSHAKE, "not the rendezvous of a group (is this address another program's?)");
    if (in[4] != GROUP_FRAME_VERSION)
        return lh_fail(LH_EVERSION, "rendezvous version %u of the remote side (this side: %u)", in[4],
                       GROUP_FRAME_VERSION);
    uint32_t bytes = lh_get_be32(in + 8);
    if (lh_get_be16(in + 6) != 0 || !is_possible(in[5], bytes))
        return lh_fail(LH_EHANDSHAKE, "malformed rendezvous frame: type %u of %u bytes", in[5], bytes);
    *frame = (struct group_frame){(enum group_frame_type)in[5], bytes};
    return 0;
}

/* zero 2 | encryption 1 | flag 1 */
static int read_terms(const uint8_t *in, struct group_hello *hello)
{
    if (lh_get_be16(in) != 0 || in[2] > HANDSHAKE_ENCRYPTION_FULL || in[3] > 1)
        return lh_fail(LH_EHANDSHAKE, "malformed rendezvous frame: terms 0x%08x", lh_get_be32(in));
    hello->secret = in[3] == 1;
    hello->encryption = (enum handshake_encryption)in[2];
    return 0;
}

static int read_flag(const uint8_t *in, bool *flag)
{
    if (lh_get_be32(in) > 1)
        return lh_fail(LH_EHANDSHAKE, "malformed rendezvous frame: flag %u", lh_get_be32(in));
    *flag = lh_get_be32(in) == 1;
    return 0;
}

/* Printable ASCII, and zeros behind it. */
static int read_job(const uint8_t in[GROUP_JOB_BYTES], char job[GROUP_JOB_BYTES])
{
    size_t length = strnlen((const char *)in, GROUP_JOB_BYTES);
    for (size_t i = 0; i < GROUP_JOB_BYTES; i++)
        if (length == GROUP_JOB_BYTES || (i < length && (in[i] < ' ' || in[i] > '~')) ||
            (i > length && in[i]))
            return lh_fail(LH_EHANDSHAKE, "malformed rendezvous frame: name of a job");
    memcpy(job, in, GROUP_JOB_BYTES);
    return 0;
}

void group_hello_encode(const struct group_hello *hello, uint8_t out[GROUP_HELLO_BYTES])
{
    lh_put_be32(out, hello->rank);
    lh_put_be32(out + 4, hello->size);
    lh_put_be16(out + 8, 0);
    out[10] = (uint8_t)hello->encryption;
    out[11] = hello->secret;
    memcpy(out + 12, hello->nonce, GROUP_NONCE_BYTES);
    memcpy(out + 12 + GROUP_NONCE_BYTES, hello->known, GROUP_NONCE_BYTES);
    memcpy(out + 12 + 2 * GROUP_NONCE_BYTES, hello->job, GROUP_JOB_BYTES);
}

int group_hello_decode(const uint8_t in[GROUP_HELLO_BYTES], struct group_hello *hello)
{
    hello->rank = lh_get_be32(in);
    hello->size = lh_get_be32(in + 4);
    memcpy(hello->nonce, in + 12, GROUP_NONCE_BYTES);
    memcpy(hello->known, in + 12 + GROUP_NONCE_BYTES, GROUP_NONCE_BYTES);
    if (hello->rank == 0 || hello->rank >= hello->size)
        return lh_fail(LH_EHANDSHAKE, "rank %u of %u cannot join rank 0", hello->rank, hello->size);
    int error = read_terms(in + 8, hello);
    return error ? error : read_job(in + 12 + 2 * GROUP_NONCE_BYTES, hello->job);
}

void group_challenge_encode(const struct group_challenge *challenge, uint8_t out[GROUP_CHALLENGE_BYTES])
{
    lh_put_be32(out, challenge->wait_ms);
    lh_put_be32(out + 4, challenge->secret);
    memcpy(out + 8, challenge->nonce, GROUP_NONCE_BYTES);
    memcpy(out + 8 + GROUP_NONCE_BYTES, challenge->job, GROUP_JOB_BYTES);
}

int group_challenge_decode(const uint8_t in[GROUP_CHALLENGE_BYTES], struct group_challenge *challenge)
{
    challenge->wait_ms = lh_get_be32(in);
    memcpy(challenge->nonce, in + 8, GROUP_NONCE_BYTES);
    int error = read_flag(in + 4, &challenge->secret);
    return error ? error : read_job(in + 8 + GROUP_NONCE_BYTES, challenge->job);
}

void group_reason_decode(const uint8_t *in, uint32_t bytes, char reason[GROUP_REASON_MAX + 1])
{
    assert(bytes <= GROUP_REASON_MAX);
    for (uint32_t i = 0; i < bytes; i++)
        reason[i] = in[i] >= ' ' && in[i] < 127 ? (char)in[i] : '?';
    reason[bytes] = '\0';
}

static bool is_random(const char *job)
{
    return !strncmp(job, GROUP_JOB_RANDOM, strlen(GROUP_JOB_RANDOM));
}

bool group_jobs_conflict(const char *a, const char *b)
{
    return *a && *b && is_random(a) == is_random(b) && strcmp(a, b) != 0;
}

/* ---- group proof ----------------------------------------------------------------------------------- */

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
