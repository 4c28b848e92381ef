/* SPDX-License-Identifier: BSD-3-Clause */
#include "keys/key_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <longhaul/connection.h>

#include "base/error.h"

#define FILE_MAX      256u /* of a key's text, with white space around it */
#define HEX_DIGITS    (2 * KEY_BYTES)
#define BASE64_DIGITS 43u /* of 32 bytes, and one "=" */
#define ID_BYTES      16u
#define MODE_OTHERS   077
#define SALT          "longhaul key 1"
#define TEXT_SALT     "longhaul text 1"
#define CODE_SALT     "longhaul code 1"
#define CODE_WORD     5u /* letters */
#define MAKE_ONE      "make one: longhaul key new FILE"

/* ---- text -------------------------------------------------------------------------------------------- */

/* Of a digit; -1: it is none. */
static int value_of(char digit, const char *digits)
{
    const char *at = digit ? strchr(digits, digit) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* bits: of each digit. Bits beyond the last whole byte must be 0. */
static bool decode(const char *text, size_t count, const char *digits, unsigned bits,
                   uint8_t key[KEY_BYTES])
{
    uint32_t held = 0, held_bits = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        char digit = bits == 4 && text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] - 'A' + 'a') : text[i];
        int value = value_of(digit, digits);
        if (value < 0)
            return false;
        held = held << bits | (uint32_t)value;
        held_bits += bits;
        if (held_bits < 8)
            continue;
        held_bits -= 8;
        key[bytes++] = (uint8_t)(held >> held_bits);
        held &= (1u << held_bits) - 1;
    }
    return held == 0 && bytes == KEY_BYTES;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool key_parse(const char *text, size_t bytes, uint8_t key[KEY_BYTES])
{
    while (bytes > 0 && is_space(*text)) {
        text++;
        bytes--;
    }
    while (bytes > 0 && is_space(text[bytes - 1]))
        bytes--;
    if (bytes == HEX_DIGITS)
        return decode(text, bytes, "0123456789abcdef", 4, key);
    if (bytes == BASE64_DIGITS + 1 && text[BASE64_DIGITS] == '=')
        bytes--;
    return bytes == BASE64_DIGITS &&
           decode(text, bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, key);
}

/* ---- secrets ----------------------------------------------------------------------------------------- */

static bool mac(const void *key, size_t key_bytes, const void *data, size_t bytes,
                uint8_t out[KEY_SECRET_BYTES])
{
    unsigned length = 0;
    return HMAC(EVP_sha384(), key, (int)key_bytes, data, bytes, out, &length) && length == KEY_SECRET_BYTES;
}

/* HKDF-Expand of one block: the purpose, and its number. */
static bool expand(const uint8_t prk[KEY_SECRET_BYTES], const char *purpose, uint8_t out[KEY_SECRET_BYTES])
{
    uint8_t info[64];
    size_t length = strlen(purpose);
    memcpy(info, purpose, length);
    info[length] = 1;
    return mac(prk, KEY_SECRET_BYTES, info, length + 1, out);
}

static int no_hmac(void)
{
    return lh_fail(LH_ESYSTEM, "HMAC-SHA-384: not available in this system's libcrypto");
}

static bool secret_of(const uint8_t prk[KEY_SECRET_BYTES], const char *psk, const char *identity,
                      const char *prefix, struct key_secret *secret)
{
    uint8_t id[KEY_SECRET_BYTES];
    if (!expand(prk, psk, secret->psk) || !expand(prk, identity, id))
        return false;
    int used = snprintf(secret->identity, sizeof secret->identity, "%s ", prefix);
    for (size_t i = 0; i < ID_BYTES; i++)
        used += snprintf(secret->identity + used, sizeof secret->identity - (size_t)used, "%02x", id[i]);
    return true;
}

static int derive(const char *salt, const void *key, size_t bytes, struct key_secret *secret)
{
    uint8_t prk[KEY_SECRET_BYTES];
    bool derived = mac(salt, strlen(salt), key, bytes, prk) &&
                   secret_of(prk, "tls psk of the rendezvous", "identity of the rendezvous",
                             "longhaul 1 rendezvous", secret);
    OPENSSL_cleanse(prk, sizeof prk);
    return derived ? 0 : no_hmac();
}

int key_derive(const uint8_t key[KEY_BYTES], struct key_secret *secret)
{
    return derive(SALT, key, KEY_BYTES, secret);
}

void key_wipe(struct key_secret *secret)
{
    OPENSSL_cleanse(secret, sizeof *secret);
}

static int derive_group(const char *salt, const void *key, size_t bytes, struct key_group *group)
{
    uint8_t prk[KEY_SECRET_BYTES], name[KEY_SECRET_BYTES];
    bool derived = mac(salt, strlen(salt), key, bytes, prk) &&
                   secret_of(prk, "tls psk of a group", "identity of a group", "longhaul 1 group",
                             &group->rendezvous) &&
                   expand(prk, "pairs of a group", group->pairs) &&
                   expand(prk, "name of a group's pairs", name);
    OPENSSL_cleanse(prk, sizeof prk);
    if (!derived)
        return no_hmac();
    memcpy(group->name, name, sizeof group->name);
    return 0;
}

static int check_text(const char *name, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes >= KEY_TEXT_MIN)
        return 0;
    return lh_fail(LH_EINVAL,
                   "%s: %zu characters are too few to encrypt with (use %u random ones or more, as of "
                   "\"openssl rand -hex 16\"; or --encryption off)",
                   name, bytes, KEY_TEXT_MIN);
}

int key_text_read(const char *text, struct key_secret *secret)
{
    int error = check_text("security.secret", text);
    return error ? error : derive(TEXT_SALT, text, strlen(text), secret);
}

int key_group_of_text(const char *variable, const char *text, struct key_group *group)
{
    int error = check_text(variable, text);
    return error ? error : derive_group(TEXT_SALT, text, strlen(text), group);
}

void key_group_wipe(struct key_group *group)
{
    OPENSSL_cleanse(group, sizeof *group);
}

/* ---- codes ------------------------------------------------------------------------------------------- */

/* Proquints (Wilkerson, arXiv:0901.4016): 16 bits are a word of consonant, vowel, consonant, vowel, consonant
 * of 4, 2, 4, 2, 4 bits, which can be read aloud and typed. */

static const char consonants[] = "bdfghjklmnprstvz", vowels[] = "aiou";

static unsigned bits_at(unsigned place)
{
    return place % 2 ? 2 : 4;
}

static const char *letters_at(unsigned place)
{
    return place % 2 ? vowels : consonants;
}

static void write_word(unsigned value, char word[CODE_WORD])
{
    for (unsigned place = CODE_WORD; place-- > 0; value >>= bits_at(place))
        word[place] = letters_at(place)[value & ((1u << bits_at(place)) - 1)];
}

/* -1: it is none. */
static int read_word(const char *word)
{
    int value = 0;
    for (unsigned place = 0; place < CODE_WORD; place++) {
        bool capital = word[place] >= 'A' && word[place] <= 'Z';
        int read = value_of(capital ? (char)(word[place] - 'A' + 'a') : word[place], letters_at(place));
        if (read < 0)
            return -1;
        value = value << bits_at(place) | read;
    }
    return value;
}

static bool parse_code(const char *code, uint8_t random[KEY_CODE_BYTES])
{
    if (strlen(code) != LH_KEY_CODE_MAX - 1)
        return false;
    for (size_t i = 0; i < KEY_CODE_BYTES / 2; i++) {
        const char *word = code + i * (CODE_WORD + 1);
        int value = read_word(word);
        char after = i + 1 < KEY_CODE_BYTES / 2 ? word[CODE_WORD] : '-';
        if (value < 0 || (after != '-' && after != ' '))
            return false;
        random[2 * i] = (uint8_t)(value >> 8);
        random[2 * i + 1] = (uint8_t)value;
    }
    return true;
}

int key_code_read(const char *code, struct key_secret *secret)
{
    uint8_t random[KEY_CODE_BYTES];
    static_assert(LH_KEY_CODE_MAX == KEY_CODE_BYTES / 2 * (CODE_WORD + 1), "words, with one behind each");
    int error = parse_code(code, random)
                    ? derive(CODE_SALT, random, sizeof random, secret)
                    : lh_fail(LH_EINVAL,
                              "code: not %u words of %u letters with \"-\" between them (copy the "
                              "one that the peer printed)",
                              KEY_CODE_BYTES / 2, CODE_WORD);
    OPENSSL_cleanse(random, sizeof random);
    return error;
}

int lh_key_code(char code[LH_KEY_CODE_MAX])
{
    uint8_t random[KEY_CODE_BYTES];
    if (!code)
        return lh_fail_if_null("lh_key_code", "code", code);
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return lh_fail(LH_ESYSTEM, "getrandom: %s", strerror(errno));
    for (size_t i = 0; i < KEY_CODE_BYTES / 2; i++) {
        char *word = code + i * (CODE_WORD + 1);
        write_word((unsigned)random[2 * i] << 8 | random[2 * i + 1], word);
        word[CODE_WORD] = '-';
    }
    code[LH_KEY_CODE_MAX - 1] = '\0';
    OPENSSL_cleanse(random, sizeof random);
    return 0;
}

/* ---- file -------------------------------------------------------------------------------------------- */

/* Who else could read it may be on the path; who else could write it could be the peer. */
static int check_owner(const char *file, const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return lh_fail(LH_EINVAL, "key file %s: not a regular file", file);
    if (status->st_uid != geteuid() && status->st_uid != 0)
        return lh_fail(LH_EINVAL, "key file %s: belongs to another user (use a copy of your own)", file);
    if (status->st_mode & MODE_OTHERS)
        return lh_fail(LH_EINVAL, "key file %s: mode %04o lets other users use it (chmod 600 %s)", file,
                       (unsigned)(status->st_mode & 07777), file);
    return 0;
}

static int read_text(int fd, const char *file, char text[FILE_MAX], size_t *bytes)
{
    struct stat status;
    int error = fstat(fd, &status) ? lh_fail(LH_ESYSTEM, "key file %s: %s", file, strerror(errno))
                                   : check_owner(file, &status);
    if (error)
        return error;
    ssize_t got = read(fd, text, FILE_MAX);
    if (got < 0)
        return lh_fail(LH_ESYSTEM, "key file %s: %s", file, strerror(errno));
    *bytes = (size_t)got;
    return 0;
}

static int read_key(const char *file, uint8_t key[KEY_BYTES])
{
    char text[FILE_MAX];
    size_t bytes = 0;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return lh_fail(LH_EINVAL, "key file %s: %s (" MAKE_ONE ")", file, strerror(errno));
    int error = read_text(fd, file, text, &bytes);
    close(fd);
    if (!error && (bytes == FILE_MAX || !key_parse(text, bytes, key)))
        error = lh_fail(LH_EINVAL,
                        "key file %s: not a key of 32 bytes in hexadecimal or base64 (" MAKE_ONE ")", file);
    OPENSSL_cleanse(text, sizeof text);
    return error;
}

int key_file_read(const char *file, struct key_secret *secret)
{
    uint8_t key[KEY_BYTES];
    int error = read_key(file, key);
    if (!error)
        error = key_derive(key, secret);
    OPENSSL_cleanse(key, sizeof key);
    return error;
}

int key_group_read(const char *file, struct key_group *group)
{
    uint8_t key[KEY_BYTES];
    int error = read_key(file, key);
    if (!error)
        error = derive_group(SALT, key, KEY_BYTES, group);
    OPENSSL_cleanse(key, sizeof key);
    return error;
}

int key_group_given(const char *secret, const char *file, struct key_group *group)
{
    return secret ? key_group_of_text("security.secret", secret, group) : key_group_read(file, group);
}

/* ---- new keys ---------------------------------------------------------------------------------------- */

static bool write_key(int fd)
{
    uint8_t key[KEY_BYTES];
    char text[HEX_DIGITS + 2];
    bool random = getrandom(key, sizeof key, 0) == sizeof key;
    for (size_t i = 0; i < sizeof key; i++)
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    text[HEX_DIGITS] = '\n';
    bool written = random && write(fd, text, HEX_DIGITS + 1) == (ssize_t)(HEX_DIGITS + 1) && !fsync(fd);
    OPENSSL_cleanse(key, sizeof key);
    OPENSSL_cleanse(text, sizeof text);
    return written;
}

int lh_key_create(const char *file)
{
    if (!file)
        return lh_fail_if_null("lh_key_create", "file", file);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return lh_fail(LH_EINVAL, "key file %s: there is a file already (use another name, or remove it)",
                       file);
    if (fd < 0)
        return lh_fail(LH_ESYSTEM, "key file %s: %s", file, strerror(errno));
    bool written = write_key(fd);
    int error = errno;
    close(fd);
    if (written)
        return 0;
    unlink(file);
    return lh_fail(LH_ESYSTEM, "key file %s: %s", file, strerror(error));
}

int lh_key_fingerprint(const char *file, char fingerprint[LH_KEY_FINGERPRINT_MAX])
{
    struct key_secret secret;
    if (!file || !fingerprint)
        return lh_fail_if_null("lh_key_fingerprint", file ? "fingerprint" : "file", NULL);
    int error = key_file_read(file, &secret);
    if (error)
        return error;
    static_assert(LH_KEY_FINGERPRINT_MAX == 2 * ID_BYTES + 1, "the digits of the identity");
    snprintf(fingerprint, LH_KEY_FINGERPRINT_MAX, "%s", strrchr(secret.identity, ' ') + 1);
    key_wipe(&secret);
    return 0;
}
