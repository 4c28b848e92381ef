/* Key files: what is a key, who may have it, what is made of it. SPDX-License-Identifier: BSD-3-Clause */
#include "keys/key_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>

#define HEX    "00112233445566778899aabbccddeeff0123456789abcdefFEDCBA9876543210"
#define BASE64 "ABEiM0RVZneImaq7zN3u/wEjRWeJq83v/ty6mHZUMhA="

static const uint8_t bytes_of_both[KEY_BYTES] = {
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
    0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};

static bool parses(const char *text, uint8_t key[KEY_BYTES])
{
    return key_parse(text, strlen(text), key);
}

static void test_texts(void **state)
{
    static const char *const right[] = {HEX, HEX "\n", BASE64, BASE64 "\r\n", "  " HEX "\t"};
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        uint8_t key[KEY_BYTES] = {0};
        assert_true(parses(right[i], key));
        assert_memory_equal(key, bytes_of_both, KEY_BYTES);
    }
}

static void test_texts_that_are_none(void **state)
{
    static const char *const wrong[] = {
        "",
        "\n",
        "secret",
        HEX "0",
        HEX HEX,
        "0x" HEX,
        BASE64 "=",
        "0g112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef", /* g */
        "ABEiM0RVZneImaq7zN3u/wEjRWeJq83v/ty6mHZUMhB=",                     /* bits beyond the last byte */
        "ABEiM0RVZneImaq7zN3u_wEjRWeJq83v_ty6mHZUMhA=",                     /* another alphabet */
        "ABEiM0RVZneImaq7zN3u/wEjRWeJq83v/ty6mHZUMhAA",                     /* 33 bytes */
    };
    uint8_t key[KEY_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(parses(wrong[i], key));
    for (size_t length = 0; length < strlen(HEX); length++)
        assert_false(length != 43 && key_parse(HEX, length, key));
    assert_false(key_parse("\0", 1, key));
}

/* OpenSSL's own HKDF, with the same salt and purpose. */
static void hkdf_of(const char *salt, const void *key, size_t key_bytes, const char *purpose,
                    uint8_t out[KEY_SECRET_BYTES])
{
    size_t bytes = KEY_SECRET_BYTES;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
    assert_true(EVP_PKEY_derive_init(context) > 0);
    assert_true(EVP_PKEY_CTX_set_hkdf_md(context, EVP_sha384()) > 0);
    assert_true(EVP_PKEY_CTX_set1_hkdf_salt(context, (const uint8_t *)salt, (int)strlen(salt)) > 0);
    assert_true(EVP_PKEY_CTX_set1_hkdf_key(context, key, (int)key_bytes) > 0);
    assert_true(EVP_PKEY_CTX_add1_hkdf_info(context, (const uint8_t *)purpose, (int)strlen(purpose)) > 0);
    assert_true(EVP_PKEY_derive(context, out, &bytes) > 0);
    EVP_PKEY_CTX_free(context);
}

static void hkdf(const char *purpose, uint8_t out[KEY_SECRET_BYTES])
{
    hkdf_of("longhaul key 1", bytes_of_both, KEY_BYTES, purpose, out);
}

static void check_group(const struct key_group *group, const char *salt, const void *key, size_t bytes)
{
    uint8_t expected[KEY_SECRET_BYTES];
    char identity[KEY_IDENTITY_MAX];
    hkdf_of(salt, key, bytes, "tls psk of a group", expected);
    assert_memory_equal(group->rendezvous.psk, expected, sizeof expected);
    hkdf_of(salt, key, bytes, "identity of a group", expected);
    snprintf(identity, sizeof identity, "longhaul 1 group %02x%02x", expected[0], expected[1]);
    assert_memory_equal(group->rendezvous.identity, identity, strlen(identity));
    hkdf_of(salt, key, bytes, "pairs of a group", expected);
    assert_memory_equal(group->pairs, expected, sizeof expected);
    hkdf_of(salt, key, bytes, "name of a group's pairs", expected);
    assert_memory_equal(group->name, expected, sizeof group->name);
}

/* A launcher's text: long enough that nobody finds it by trying. */
static void test_group_of_text(void **state)
{
    static const char text[] = "0123456789abcdef";
    struct key_group group;
    (void)state;
    assert_int_equal(key_group_of_text("LONGHAUL_SECRET", text, &group), 0);
    check_group(&group, "longhaul text 1", text, strlen(text));
    assert_int_equal(key_group_of_text("LONGHAUL_SECRET", text + 1, &group), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "LONGHAUL_SECRET: 15 characters are too few to encrypt with"));
    key_group_wipe(&group);
    const struct key_group wiped = {0};
    assert_memory_equal(&group, &wiped, sizeof wiped);
}

static void test_secret_is_hkdf(void **state)
{
    struct key_secret secret, other;
    uint8_t expected[KEY_SECRET_BYTES], another_key[KEY_BYTES];
    char identity[KEY_IDENTITY_MAX];
    (void)state;
    assert_int_equal(key_derive(bytes_of_both, &secret), 0);
    hkdf("tls psk of the rendezvous", expected);
    assert_memory_equal(secret.psk, expected, sizeof expected);
    hkdf("identity of the rendezvous", expected);
    snprintf(identity, sizeof identity, "longhaul 1 rendezvous %02x%02x", expected[0], expected[1]);
    assert_memory_equal(secret.identity, identity, strlen(identity));
    assert_int_equal(strlen(secret.identity), strlen("longhaul 1 rendezvous ") + 32);

    memcpy(another_key, bytes_of_both, sizeof another_key);
    another_key[31] ^= 1;
    assert_int_equal(key_derive(another_key, &other), 0);
    assert_string_not_equal(secret.identity, other.identity);
    assert_memory_not_equal(secret.psk, other.psk, sizeof other.psk);
    key_wipe(&secret);
    const struct key_secret wiped = {0};
    assert_memory_equal(&secret, &wiped, sizeof wiped);
}

/* ---- files ------------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/longhaul-key-XXXXXX";
static char file[64];

static void write_file(const char *text, mode_t mode)
{
    unlink(file);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void expect_refused(const char *part)
{
    struct key_secret secret;
    assert_int_equal(key_file_read(file, &secret), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), part));
    assert_non_null(strstr(lh_last_error(), file));
}

static void test_files(void **state)
{
    struct key_secret secret, expected;
    (void)state;
    assert_int_equal(key_derive(bytes_of_both, &expected), 0);
    for (mode_t mode = 0400; mode <= 0700; mode += 0100) {
        write_file(HEX "\n", mode);
        assert_int_equal(key_file_read(file, &secret), 0);
        assert_string_equal(secret.identity, expected.identity);
        assert_memory_equal(secret.psk, expected.psk, sizeof expected.psk);
        struct key_group group;
        assert_int_equal(key_group_read(file, &group), 0);
        check_group(&group, "longhaul key 1", bytes_of_both, KEY_BYTES);
        assert_memory_not_equal(group.rendezvous.psk, secret.psk, sizeof secret.psk);
    }
}

/* For this user alone, whatever the umask; and in place of no file. */
static void test_new_files(void **state)
{
    char fingerprint[LH_KEY_FINGERPRINT_MAX], again[LH_KEY_FINGERPRINT_MAX];
    struct key_secret secret;
    struct stat status;
    mode_t mask = umask(0);
    (void)state;
    unlink(file);
    assert_int_equal(lh_key_create(file), 0);
    umask(mask);
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(lh_key_fingerprint(file, fingerprint), 0);
    assert_int_equal(key_file_read(file, &secret), 0);
    assert_string_equal(strrchr(secret.identity, ' ') + 1, fingerprint);
    assert_int_equal(lh_key_create(file), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "there is a file already"));
    assert_int_equal(lh_key_fingerprint(file, again), 0);
    assert_string_equal(fingerprint, again);
    unlink(file);
    assert_int_equal(lh_key_create(file), 0);
    assert_int_equal(lh_key_fingerprint(file, again), 0);
    assert_string_not_equal(fingerprint, again);
    assert_int_equal(lh_key_create(NULL), -LH_EINVAL);
    assert_int_equal(lh_key_fingerprint(file, NULL), -LH_EINVAL);
    assert_int_equal(lh_key_create("/nowhere/key"), -LH_ESYSTEM);
}

static void test_files_that_are_refused(void **state)
{
    char large[300];
    (void)state;
    for (mode_t bit = 01; bit <= 040; bit <<= 1) { /* each right of each other user */
        write_file(HEX, 0600 | bit);
        expect_refused("lets other users use it (chmod 600");
    }
    write_file("password", 0600);
    expect_refused("not a key of 32 bytes");
    write_file("", 0600);
    expect_refused("longhaul key new FILE");
    memset(large, ' ', sizeof large); /* a key, and more than is read */
    memcpy(large, HEX, strlen(HEX));
    large[sizeof large - 1] = 0;
    write_file(large, 0600);
    expect_refused("not a key of 32 bytes");
    unlink(file);
    expect_refused("longhaul key new FILE");
    assert_int_equal(mkfifo(file, 0600), 0); /* without a writer: no wait */
    expect_refused("not a regular file");
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
    expect_refused("not a regular file");
    rmdir(file);
}

static void test_file_of_another_user(void **state)
{
    (void)state;
    write_file(HEX, 0600);
    if (chown(file, 12345, (gid_t)-1) != 0)
        skip(); /* not root */
    expect_refused("belongs to another user");
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/key", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

/* ---- codes ------------------------------------------------------------------------------------------- */

/* 127.0.0.1 and 63.84.220.193 are the examples of the paper: "lusab-babad", "gutih-tugad". */
#define CODE "lusab-babad-gutih-tugad-zuzuz-babab"

static void derived_of(const uint8_t random[KEY_CODE_BYTES], uint8_t psk[KEY_SECRET_BYTES])
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    char digest[] = "SHA384", salt[] = "longhaul code 1", info[] = "tls psk of the rendezvous";
    OSSL_PARAM settings[] = {
        OSSL_PARAM_construct_utf8_string("digest", digest, 0),
        OSSL_PARAM_construct_octet_string("key", (void *)(uintptr_t)random, KEY_CODE_BYTES),
        OSSL_PARAM_construct_octet_string("salt", salt, strlen(salt)),
        OSSL_PARAM_construct_octet_string("info", info, strlen(info)),
        OSSL_PARAM_construct_end(),
    };
    assert_int_equal(EVP_KDF_derive(context, psk, KEY_SECRET_BYTES, settings), 1);
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
}

static void test_codes(void **state)
{
    static const char *const same[] = {CODE, "LUSAB-Babad-gutih-tugad-zuzuz-babab",
                                       "lusab babad gutih tugad zuzuz babab"};
    static const uint8_t random[KEY_CODE_BYTES] = {127, 0, 0, 1, 63, 84, 220, 193, 255, 255, 0, 0};
    uint8_t psk[KEY_SECRET_BYTES];
    struct key_secret first, secret;
    (void)state;
    derived_of(random, psk);
    assert_int_equal(key_code_read(CODE, &first), 0);
    assert_memory_equal(first.psk, psk, sizeof psk);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(key_code_read(same[i], &secret), 0);
        assert_memory_equal(secret.psk, first.psk, sizeof first.psk);
        assert_string_equal(secret.identity, first.identity);
    }
}

/* Each letter counts; and what is none. */
static void test_codes_that_differ(void **state)
{
    static const char *const wrong[] = {"",
                                        "new",
                                        "lusab-babad-gutih-tugad-zuzuz",
                                        CODE "-",
                                        CODE "x",
                                        "lusab-babad-gutih-tugad-zuzuz_babab",
                                        "lusabxbabad-gutih-tugad-zuzuz-babab",
                                        "lusab-babad-gutih-tugad-zuzuz-babac",
                                        "lusab-babad-gutih-tugad-zuzuz-babeb"};
    struct key_secret first, secret;
    (void)state;
    assert_int_equal(key_code_read(CODE, &first), 0);
    for (size_t i = 0; i < strlen(CODE); i++) {
        char other[] = CODE;
        if (i % 6 == 5)
            continue;
        other[i] = i % 6 % 2 ? (other[i] == 'a' ? 'o' : 'a') : (other[i] == 'b' ? 'd' : 'b');
        assert_int_equal(key_code_read(other, &secret), 0);
        assert_memory_not_equal(secret.psk, first.psk, sizeof first.psk);
        assert_string_not_equal(secret.identity, first.identity);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(key_code_read(wrong[i], &secret), -LH_EINVAL);
        assert_non_null(strstr(lh_last_error(), "6 words of 5 letters"));
    }
}

/* Each is one, and each bit of a random byte comes and goes. */
static void test_new_codes(void **state)
{
    char code[LH_KEY_CODE_MAX], all = 0;
    uint8_t ones[KEY_SECRET_BYTES] = {0}, zeros[KEY_SECRET_BYTES] = {0};
    struct key_secret secret;
    (void)state;
    assert_int_equal(lh_key_code(NULL), -LH_EINVAL);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(lh_key_code(code), 0);
        assert_int_equal(strlen(code), LH_KEY_CODE_MAX - 1);
        assert_int_equal(key_code_read(code, &secret), 0);
        for (size_t at = 0; at < LH_KEY_CODE_MAX - 1; at++) {
            ones[at] |= (uint8_t)code[at];
            zeros[at] |= (uint8_t)~code[at];
        }
    }
    for (size_t at = 0; at < LH_KEY_CODE_MAX - 1; at++)
        all |= at % 6 != 5 && (ones[at] & zeros[at] & 0x1f) == 0; /* a place that is always the same */
    assert_false(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_texts_that_are_none),
        cmocka_unit_test(test_secret_is_hkdf),
        cmocka_unit_test(test_group_of_text),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_new_files),
        cmocka_unit_test(test_files_that_are_refused),
        cmocka_unit_test(test_file_of_another_user),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_codes_that_differ),
        cmocka_unit_test(test_new_codes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
