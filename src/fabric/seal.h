/*
 * seal.h - encrypted packets, in the format of PSP (Google's PSP architecture specification, 2022): AES-GCM,
 * the packet around it, and the keys of a connection. Pure but for memory that libcrypto takes.
 *
 * A sealed packet is the payload of a UDP datagram; big-endian. docs/wire.md describes what is in it.
 *
 *    0   1  next header: SEAL_NEXT_HEADER, a BTH follows
 *    1   1  extension length: 1
 *    2   1  crypt offset: 0, all behind this header is encrypted
 *    3   1  version: 0x05 AES-256-GCM, 0x01 AES-128-GCM
 *    4   4  SPI: epoch 8, queue pair number of the reader 24
 *    8   8  IV: kind 8, count 56
 *   16   n  encrypted
 *       16  ICV, over all of it
 *
 * The nonce of GCM is SPI and IV. An IV is never used twice under a key, whatever becomes of the packet: who
 * owns a key counts its packets, and takes no number back.
 *
 * Keys: of the secret of an epoch come the next epoch's secret, and a key for each direction, kind and
 * channel (HKDF-Expand-Label of RFC 8446, section 7.1, with SHA-256). Both sides derive all by themselves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_SEAL_H
#define LH_FABRIC_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEAL_NEXT_HEADER  0xFEu /* an IP protocol number for experiments; no BTH opcode in use */
#define SEAL_HEADER_BYTES 16u
#define SEAL_ICV_BYTES    16u
#define SEAL_SPI_OFFSET   4u
#define SEAL_KIND_OFFSET  8u
#define SEAL_BYTES        (SEAL_HEADER_BYTES + SEAL_ICV_BYTES) /* around what is encrypted */
#define SEAL_SECRET_BYTES 32u
#define SEAL_NONCE_BYTES  12u
#define SEAL_KEY_MAX      32u
#define SEAL_COUNT_BITS   56u

/* What the packets of a key are; in the first byte of the IV. */
enum seal_kind {
    SEAL_DATA = 0,
    SEAL_CONTROL = 1,
    SEAL_PUNCH = 2,
    SEAL_KINDS,
};

/* ---- AES-GCM --------------------------------------------------------------------------------------- */

enum seal_backend {
    SEAL_FASTEST, /* of those that this build and this processor have */
    SEAL_LIBCRYPTO,
    SEAL_IPSEC_MB,
};

/* Of one direction: it seals, or it opens. Of one thread at a time. All zero: none. */
struct seal_key {
    void *cipher; /* of libcrypto; NULL: the schedule is ipsec-mb's */
    uint32_t bytes;
    bool set;
    bool opens;
    _Alignas(64) uint8_t schedule[1024];
};

/* Whether there is that one here. */
bool seal_has_backend(enum seal_backend backend);
/* A key of 16 or 32 bytes. -LH_ENOMEM, -LH_ESYSTEM: this system's libcrypto has no AES-GCM. */
int seal_key_set(struct seal_key *key, enum seal_backend backend, const uint8_t *bytes, uint32_t count,
                 bool opens);
/* Leaves nothing of it in memory. One that is not set is fine. */
void seal_key_wipe(struct seal_key *key);

/* Text in two pieces, so that a header and the payload behind it need not lie together. */
struct seal_text {
    const uint8_t *head;
    uint32_t head_bytes;
    const uint8_t *rest;
    uint32_t rest_bytes;
};

/* Encrypts a text of `associated` (authenticated, in clear text); out holds all of it, icv 16 bytes. */
void seal_encrypt(struct seal_key *key, const uint8_t nonce[SEAL_NONCE_BYTES], const uint8_t *associated,
                  uint32_t associated_bytes, const struct seal_text *text, uint8_t *out, uint8_t *icv);
/* False: not what was encrypted with this key, nonce and `associated`. out holds `bytes`, and is garbage
 * then. */
bool seal_decrypt(struct seal_key *key, const uint8_t nonce[SEAL_NONCE_BYTES], const uint8_t *associated,
                  uint32_t associated_bytes, const uint8_t *in, uint32_t bytes, const uint8_t *icv,
                  uint8_t *out);

/* ---- packets --------------------------------------------------------------------------------------- */

struct seal_header {
    uint32_t spi;
    enum seal_kind kind;
    uint64_t count; /* below 2^SEAL_COUNT_BITS */
};

/* Writes a packet, SEAL_BYTES longer than the text. Returns its length. */
uint32_t seal_packet(struct seal_key *key, const struct seal_header *header, const struct seal_text *text,
                     uint8_t *out);
/* Reads the header, which may be anybody's. False: it is none, or of another version than `key_bytes` has;
 * or the packet has nothing in it. */
bool seal_read(const uint8_t *packet, uint32_t bytes, uint32_t key_bytes, struct seal_header *header);
/* Opens a packet that seal_read() took; plain holds bytes - SEAL_BYTES. False as of seal_decrypt(). */
bool seal_open(struct seal_key *key, const uint8_t *packet, uint32_t bytes, uint8_t *plain);

/* ---- secrets --------------------------------------------------------------------------------------- */

/* HKDF-Expand-Label of a secret of 32 bytes: 1 to 32 bytes. label: at most 12 characters; context: at most
 * 32 bytes. False: this system's libcrypto has no HMAC with SHA-256. */
bool seal_derive(const uint8_t secret[SEAL_SECRET_BYTES], const char *label, const uint8_t *context,
                 uint32_t context_bytes, uint8_t *out, uint32_t bytes);
/* The secret of the next epoch, in place of this one. */
bool seal_next_epoch(uint8_t secret[SEAL_SECRET_BYTES]);
/* A key of this epoch. direction: 0 is that of the side that connected. */
bool seal_derive_key(const uint8_t secret[SEAL_SECRET_BYTES], uint8_t direction, enum seal_kind kind,
                     uint8_t channel, uint8_t *out, uint32_t bytes);
void seal_wipe(void *secret, size_t bytes);

/* ---- replays --------------------------------------------------------------------------------------- */

/* Which of the newest counts have come (RFC 6479): those of SEAL_WINDOW below the highest are distinguished,
 * older ones are none. */
#define SEAL_WINDOW       8192u
#define SEAL_WINDOW_WORDS (SEAL_WINDOW / 64u + 1u) /* one is filled, while all of the others count */

struct seal_window {
    uint64_t next; /* the highest, plus 1; 0: none has come */
    uint64_t words[SEAL_WINDOW_WORDS];
};

/* Whether it is older than those that are distinguished. */
bool seal_window_is_past(const struct seal_window *window, uint64_t count);
/* Whether it may be new: before the packet is opened. */
bool seal_window_takes(const struct seal_window *window, uint64_t count);
/* The packet was opened. */
void seal_window_add(struct seal_window *window, uint64_t count);

#endif
