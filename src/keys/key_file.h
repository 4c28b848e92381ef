/*
 * key_file.h - the key that both sides of a connection have, or all ranks of a group, read from a file, and
 * what is derived from it.
 *
 * The file has 32 random bytes, as 64 hexadecimal digits or in base64. They are never used themselves: HKDF
 * (RFC 5869) with SHA-384 makes a secret for each purpose of them, so that one file may serve several. Ranks
 * may have a text in place of it, the secret of their launcher; two people a code.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_KEYS_KEY_FILE_H
#define LH_KEYS_KEY_FILE_H

#include <longhaul/types.h>

#define KEY_BYTES        32u
#define KEY_SECRET_BYTES 48u /* of SHA-384 */
/* "longhaul 1 rendezvous " and 32 digits, which name the key without telling anything of it. */
#define KEY_IDENTITY_MAX 64u
/* Shorter texts are refused: who records a handshake can try all texts that people think of. */
#define KEY_TEXT_MIN 16u

/* For the rendezvous. */
struct key_secret {
    uint8_t psk[KEY_SECRET_BYTES];   /* of TLS */
    char identity[KEY_IDENTITY_MAX]; /* of that, sent in clear text; another key has another one */
};

/* The key of a file's text. False: it is none. */
bool key_parse(const char *text, size_t bytes, uint8_t key[KEY_BYTES]);
/* -LH_ESYSTEM: no HMAC with SHA-384 in this system's libcrypto. */
int key_derive(const uint8_t key[KEY_BYTES], struct key_secret *secret);
/* Both, of a file that belongs to this user or to root, and that others can neither read nor write.
 * -LH_EINVAL: no such file, or no key; the message has the remedy. -LH_ESYSTEM. */
int key_file_read(const char *file, struct key_secret *secret);
/* Of a text in place of a file. -LH_EINVAL: shorter than KEY_TEXT_MIN; -LH_ESYSTEM. */
int key_text_read(const char *text, struct key_secret *secret);
void key_wipe(struct key_secret *secret);

/* ---- codes ------------------------------------------------------------------------------------------- */

/* Random bytes of a code, two for each word. Who records a handshake can try codes until one fits: they are
 * too many for that. */
#define KEY_CODE_BYTES 12u

/* The secret of a code as lh_key_code() makes them; capital letters are fine, and spaces in place of "-".
 * -LH_EINVAL: it is none; -LH_ESYSTEM. */
int key_code_read(const char *code, struct key_secret *secret);

/* ---- groups ------------------------------------------------------------------------------------------ */

#define KEY_NAME_BYTES 16u

/* For a group of ranks. */
struct key_group {
    struct key_secret rendezvous;    /* of ranks and rank 0 */
    uint8_t pairs[KEY_SECRET_BYTES]; /* part of the secret of each pair (pair_keys.h) */
    uint8_t name[KEY_NAME_BYTES];    /* of the key, public */
};

/* Errors as of key_file_read(). */
int key_group_read(const char *file, struct key_group *group);
/* Of a text, lh_security.secret; NULL: of the file. */
int key_group_given(const char *secret, const char *file, struct key_group *group);
/* Of a text. variable: its name, for messages. -LH_EINVAL: shorter than KEY_TEXT_MIN; -LH_ESYSTEM. */
int key_group_of_text(const char *variable, const char *text, struct key_group *group);
void key_group_wipe(struct key_group *group);

#endif
