/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/seal.h"

/* First: OpenSSL has macros with names of this library. */
#include "base/error.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#ifdef LH_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

#include "base/bytes.h"

#define EXTENSION_LENGTH 1u
#define CRYPT_OFFSET     0u
/* The lowest bit is one, the version of PSP above it. */
#define VERSION_AES_128 0x01u
#define VERSION_AES_256 0x05u

/* ---- AES-GCM of libipsec-mb -------------------------------------------------------------------------- */

#ifdef LH_IPSEC_MB

static_assert(sizeof(struct gcm_key_data) <= sizeof(((struct seal_key *)0)->schedule), "size of a key");

/* Its functions for this processor; never freed. */
static _Atomic(IMB_MGR *) functions;

/* NULL: no memory, or a processor without AES instructions, where libcrypto is as good. */
static IMB_MGR *ipsec_mb(void)
{
    IMB_MGR *ready = atomic_load_explicit(&functions, memory_order_acquire), *none = NULL;
    if (ready != NULL)
        return ready;
    ready = alloc_mb_mgr(0);
    if (ready == NULL)
        return NULL;
    IMB_ARCH processor = IMB_ARCH_NONE;
    init_mb_mgr_auto(ready, &processor);
    if (imb_get_errno(ready) != 0 || processor == IMB_ARCH_NONE || processor == IMB_ARCH_NOAESNI) {
        free_mb_mgr(ready);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&functions, &none, ready))
        return ready;
    free_mb_mgr(ready); /* another thread was first */
    return none;
}

static void ipsec_mb_set(struct seal_key *key, const uint8_t *bytes)
{
    struct gcm_key_data *schedule = (struct gcm_key_data *)(void *)key->schedule;
    if (key->bytes == 32)
        IMB_AES256_GCM_PRE(ipsec_mb(), bytes, schedule);
    else
        IMB_AES128_GCM_PRE(ipsec_mb(), bytes, schedule);
}

static void ipsec_mb_encrypt(struct seal_key *key, const uint8_t *nonce, const uint8_t *associated,
                             uint32_t associated_bytes, const struct seal_text *text, uint8_t *out,
                             uint8_t *icv)
{
    const struct gcm_key_data *schedule = (const struct gcm_key_data *)(const void *)key->schedule;
    struct gcm_context_data context;
    IMB_MGR *mb = ipsec_mb();
    if (key->bytes == 32) {
        IMB_AES256_GCM_INIT(mb, schedule, &context, nonce, associated, associated_bytes);
        if (text->head_bytes > 0)
            IMB_AES256_GCM_ENC_UPDATE(mb, schedule, &context, out, text->head, text->head_bytes);
        if (text->rest_bytes > 0)
            IMB_AES256_GCM_ENC_UPDATE(mb, schedule, &context, out + text->head_bytes, text->rest,
                                      text->rest_bytes);
        IMB_AES256_GCM_ENC_FINALIZE(mb, schedule, &context, icv, SEAL_ICV_BYTES);
        return;
    }
    IMB_AES128_GCM_INIT(mb, schedule, &context, nonce, associated, associated_bytes);
    if (text->head_bytes > 0)
        IMB_AES128_GCM_ENC_UPDATE(mb, schedule, &context, out, text->head, text->head_bytes);
    if (text->rest_bytes > 0)
        IMB_AES128_GCM_ENC_UPDATE(mb, schedule, &context, out + text->head_bytes, text->rest,
                                  text->rest_bytes);
    IMB_AES128_GCM_ENC_FINALIZE(mb, schedule, &context, icv, SEAL_ICV_BYTES);
}

static bool ipsec_mb_decrypt(struct seal_key *key, const uint8_t *nonce, const uint8_t *associated,
                             uint32_t associated_bytes, const uint8_t *in, uint32_t bytes,
                             const uint8_t *icv, uint8_t *out)
{
    const struct gcm_key_data *schedule = (const struct gcm_key_data *)(const void *)key->schedule;
    struct gcm_context_data context;
    uint8_t found[SEAL_ICV_BYTES];
    if (key->bytes == 32)
        IMB_AES256_GCM_DEC(ipsec_mb(), schedule, &context, out, in, bytes, nonce, associated,
                           associated_bytes, found, sizeof found);
    else
        IMB_AES128_GCM_DEC(ipsec_mb(), schedule, &context, out, in, bytes, nonce, associated,
                           associated_bytes, found, sizeof found);
    return CRYPTO_memcmp(found, icv, sizeof found) == 0;
}

static bool has_ipsec_mb(void)
{
    return ipsec_mb() != NULL;
}

#else

/* Not in this build: no key is ever set for it. */
static bool has_ipsec_mb(void)
{
    return false;
}

static void ipsec_mb_set(struct seal_key *key, const uint8_t *bytes)
{
    (void)key;
    (void)bytes;
    assert(false);
}

static void ipsec_mb_encrypt(struct seal_key *key, const uint8_t *nonce, const uint8_t *associated,
                             uint32_t associated_bytes, const struct seal_text *text, uint8_t *out,
                             uint8_t *icv)
{
    (void)key, (void)nonce, (void)associated, (void)associated_bytes, (void)text, (void)out, (void)icv;
    assert(false);
}

static bool ipsec_mb_decrypt(struct seal_key *key, const uint8_t *nonce, const uint8_t *associated,
                             uint32_t associated_bytes, const uint8_t *in, uint32_t bytes,
                             const uint8_t *icv, uint8_t *out)
{
    (void)key, (void)nonce, (void)associated, (void)associated_bytes, (void)in, (void)bytes, (void)icv;
    (void)out;
    return false;
}

#endif

/* ---- AES-GCM of libcrypto ---------------------------------------------------------------------------- */

static int libcrypto_set(struct seal_key *key, const uint8_t *bytes)
{
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    if (cipher == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a cipher");
    const EVP_CIPHER *type = key->bytes == 32 ? EVP_aes_256_gcm() : EVP_aes_128_gcm();
    if (EVP_CipherInit_ex(cipher, type, NULL, bytes, NULL, !key->opens) != 1) {
        EVP_CIPHER_CTX_free(cipher);
        ERR_clear_error();
        return lh_fail(LH_ESYSTEM, "AES-GCM: not available in this system's libcrypto");
    }
    key->cipher = cipher;
    return 0;
}

/* A key that was set needs no memory: only a broken libcrypto fails here, and no packet may leave then. */
static void must(int result)
{
    assert(result == 1);
    (void)result;
}

static void libcrypto_encrypt(struct seal_key *key, const uint8_t *nonce, const uint8_t *associated,
                              uint32_t associated_bytes, const struct seal_text *text, uint8_t *out,
                              uint8_t *icv)
{
    EVP_CIPHER_CTX *cipher = key->cipher;
    int used = 0, length;
    must(EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, nonce));
    if (associated_bytes > 0)
        must(EVP_EncryptUpdate(cipher, NULL, &length, associated, (int)associated_bytes));
    if (text->head_bytes > 0)
        must(EVP_EncryptUpdate(cipher, out, &used, text->head, (int)text->head_bytes));
    if (text->rest_bytes > 0)
        must(EVP_EncryptUpdate(cipher, out + used, &length, text->rest, (int)text->rest_bytes));
    must(EVP_EncryptFinal_ex(cipher, out, &length)); /* GCM: writes nothing */
    must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, SEAL_ICV_BYTES, icv));
}

static bool libcrypto_decrypt(struct seal_key *key, const uint8_t *nonce, const uint8_t *associated,
                              uint32_t associated_bytes, const uint8_t *in, uint32_t bytes,
                              const uint8_t *icv, uint8_t *out)
{
    EVP_CIPHER_CTX *cipher = key->cipher;
    uint8_t wanted[SEAL_ICV_BYTES], none[SEAL_ICV_BYTES];
    int length;
    memcpy(wanted, icv, sizeof wanted); /* the call takes no constant */
    bool holds = EVP_DecryptInit_ex(cipher, NULL, NULL, NULL, nonce) == 1 &&
                 EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, SEAL_ICV_BYTES, wanted) == 1;
    if (holds && associated_bytes > 0)
        holds = EVP_DecryptUpdate(cipher, NULL, &length, associated, (int)associated_bytes) == 1;
    if (holds && bytes > 0)
        holds = EVP_DecryptUpdate(cipher, out, &length, in, (int)bytes) == 1;
    return holds && EVP_DecryptFinal_ex(cipher, none, &length) == 1;
}

/* ---- AES-GCM ----------------------------------------------------------------------------------------- */

bool seal_has_backend(enum seal_backend backend)
{
    return backend != SEAL_IPSEC_MB || has_ipsec_mb();
}

int seal_key_set(struct seal_key *key, enum seal_backend backend, const uint8_t *bytes, uint32_t count,
                 bool opens)
{
    assert((count == 16 || count == 32) && !key->set);
    if (backend == SEAL_FASTEST)
        backend = has_ipsec_mb() ? SEAL_IPSEC_MB : SEAL_LIBCRYPTO;
    assert(seal_has_backend(backend));
    key->bytes = count;
    key->opens = opens;
    int error = 0;
    if (backend == SEAL_IPSEC_MB)
        ipsec_mb_set(key, bytes);
    else
        error = libcrypto_set(key, bytes);
    key->set = error == 0;
    return error;
}

void seal_key_wipe(struct seal_key *key)
{
    EVP_CIPHER_CTX_free(key->cipher); /* wipes it; NULL is fine */
    seal_wipe(key, sizeof *key);
}

void seal_encrypt(struct seal_key *key, const uint8_t nonce[SEAL_NONCE_BYTES], const uint8_t *associated,
                  uint32_t associated_bytes, const struct seal_text *text, uint8_t *out, uint8_t *icv)
{
    assert(key->set && !key->opens);
    if (key->cipher == NULL)
        ipsec_mb_encrypt(key, nonce, associated, associated_bytes, text, out, icv);
    else
        libcrypto_encrypt(key, nonce, associated, associated_bytes, text, out, icv);
}

bool seal_decrypt(struct seal_key *key, const uint8_t nonce[SEAL_NONCE_BYTES], const uint8_t *associated,
                  uint32_t associated_bytes, const uint8_t *in, uint32_t bytes, const uint8_t *icv,
                  uint8_t *out)
{
    assert(key->set && key->opens);
    if (key->cipher == NULL)
        return ipsec_mb_decrypt(key, nonce, associated, associated_bytes, in, bytes, icv, out);
    return libcrypto_decrypt(key, nonce, associated, associated_bytes, in, bytes, icv, out);
}

/* ---- packets ----------------------------------------------------------------------------------------- */

static uint8_t version_of(uint32_t key_bytes)
{
    return key_bytes == 32 ? VERSION_AES_256 : VERSION_AES_128;
}

uint32_t seal_packet(struct seal_key *key, const struct seal_header *header, const struct seal_text *text,
                     uint8_t *out)
{
    assert(header->count >> SEAL_COUNT_BITS == 0);
    uint32_t bytes = text->head_bytes + text->rest_bytes;
    out[0] = SEAL_NEXT_HEADER;
    out[1] = EXTENSION_LENGTH;
    out[2] = CRYPT_OFFSET;
    out[3] = version_of(key->bytes);
    lh_put_be32(out + SEAL_SPI_OFFSET, header->spi);
    lh_put_be64(out + SEAL_KIND_OFFSET, (uint64_t)header->kind << SEAL_COUNT_BITS | header->count);
    seal_encrypt(key, out + SEAL_SPI_OFFSET, out, SEAL_HEADER_BYTES, text, out + SEAL_HEADER_BYTES,
                 out + SEAL_HEADER_BYTES + bytes);
    return bytes + SEAL_BYTES;
}

bool seal_read(const uint8_t *packet, uint32_t bytes, uint32_t key_bytes, struct seal_header *header)
{
    if (bytes <= SEAL_BYTES || packet[0] != SEAL_NEXT_HEADER || packet[1] != EXTENSION_LENGTH ||
        packet[2] != CRYPT_OFFSET || packet[3] != version_of(key_bytes) ||
        packet[SEAL_KIND_OFFSET] >= SEAL_KINDS)
        return false;
    uint64_t iv = lh_get_be64(packet + SEAL_KIND_OFFSET);
    header->spi = lh_get_be32(packet + SEAL_SPI_OFFSET);
    header->kind = (enum seal_kind)(iv >> SEAL_COUNT_BITS);
    header->count = iv & ((UINT64_C(1) << SEAL_COUNT_BITS) - 1);
    return true;
}

bool seal_open(struct seal_key *key, const uint8_t *packet, uint32_t bytes, uint8_t *plain)
{
    assert(bytes > SEAL_BYTES);
    return seal_decrypt(key, packet + SEAL_SPI_OFFSET, packet, SEAL_HEADER_BYTES,
                        packet + SEAL_HEADER_BYTES, bytes - SEAL_BYTES, packet + bytes - SEAL_ICV_BYTES,
                        plain);
}

/* ---- secrets ----------------------------------------------------------------------------------------- */

#define LABEL_PREFIX "tls13 " /* of RFC 8446, as QUIC has it, too */
#define LABEL_MAX    12u
#define CONTEXT_MAX  32u

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t count)
{
    if (count > 0)
        memcpy(at, bytes, count);
    return at + count;
}

bool seal_derive(const uint8_t secret[SEAL_SECRET_BYTES], const char *label, const uint8_t *context,
                 uint32_t context_bytes, uint8_t *out, uint32_t bytes)
{
    uint8_t info[2 + 1 + sizeof LABEL_PREFIX + LABEL_MAX + 1 + CONTEXT_MAX + 1], block[EVP_MAX_MD_SIZE];
    const size_t prefix_bytes = strlen(LABEL_PREFIX), label_bytes = strlen(label);
    uint8_t *at = info + 3;
    unsigned length = 0;
    assert(bytes > 0 && bytes <= 32 && label_bytes <= LABEL_MAX && context_bytes <= CONTEXT_MAX);
    lh_put_be16(info, (uint16_t)bytes);
    info[2] = (uint8_t)(prefix_bytes + label_bytes);
    at = put_bytes(at, LABEL_PREFIX, prefix_bytes);
    at = put_bytes(at, label, label_bytes);
    *at++ = (uint8_t)context_bytes;
    at = put_bytes(at, context, context_bytes);
    *at++ = 1; /* the only block of HKDF-Expand */
    bool derived =
        HMAC(EVP_sha256(), secret, SEAL_SECRET_BYTES, info, (size_t)(at - info), block, &length) != NULL &&
        length == 32;
    if (derived)
        memcpy(out, block, bytes);
    seal_wipe(block, sizeof block);
    return derived;
}

bool seal_next_epoch(uint8_t secret[SEAL_SECRET_BYTES])
{
    uint8_t next[SEAL_SECRET_BYTES];
    bool derived = seal_derive(secret, "lh ku", NULL, 0, next, sizeof next);
    if (derived)
        memcpy(secret, next, sizeof next);
    seal_wipe(next, sizeof next);
    return derived;
}

bool seal_derive_key(const uint8_t secret[SEAL_SECRET_BYTES], uint8_t direction, enum seal_kind kind,
                     uint8_t channel, uint8_t *out, uint32_t bytes)
{
    const uint8_t context[] = {direction, (uint8_t)kind, channel};
    return seal_derive(secret, "lh key", context, sizeof context, out, bytes);
}

void seal_wipe(void *secret, size_t bytes)
{
    OPENSSL_cleanse(secret, bytes);
}

/* ---- replays ----------------------------------------------------------------------------------------- */

static uint64_t word_of(uint64_t count)
{
    return (count / 64) % SEAL_WINDOW_WORDS;
}

bool seal_window_is_past(const struct seal_window *window, uint64_t count)
{
    return count < window->next && window->next - count > SEAL_WINDOW;
}

bool seal_window_takes(const struct seal_window *window, uint64_t count)
{
    if (count >= window->next)
        return true;
    return !seal_window_is_past(window, count) && !((window->words[word_of(count)] >> (count % 64)) & 1);
}

/* Words that the window enters are cleared; it may have left the older half of the last one. */
void seal_window_add(struct seal_window *window, uint64_t count)
{
    if (count >= window->next) {
        uint64_t first = window->next == 0 ? 0 : (window->next - 1) / 64 + 1, last = count / 64;
        if (last >= first && last - first >= SEAL_WINDOW_WORDS)
            first = last - SEAL_WINDOW_WORDS + 1;
        for (uint64_t i = first; i <= last; i++) /* at most SEAL_WINDOW_WORDS */
            window->words[i % SEAL_WINDOW_WORDS] = 0;
        window->next = count + 1;
    }
    window->words[word_of(count)] |= UINT64_C(1) << (count % 64);
}
