/*
 * test_seal.c - AES-GCM against published vectors and both backends against each other; sealed packets, what
 * is not one of them, keys, and the window of counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

static uint32_t hex(const char *text, uint8_t *out)
{
    uint32_t bytes = 0;
    for (; text[0] && text[1]; text += 2) {
        uint8_t value = 0;
        for (int i = 0; i < 2; i++) {
            char c = text[i];
            value = (uint8_t)(value * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10));
        }
        out[bytes++] = value;
    }
    return bytes;
}

/* A text that fills nothing else: in one piece, or two, cut there. */
static struct seal_text text_of(const uint8_t *bytes, uint32_t count, uint32_t cut)
{
    return (struct seal_text){bytes, cut, bytes + cut, count - cut};
}

/* ---- published vectors ------------------------------------------------------------------------------- */

struct vector {
    const char *key, *nonce, *associated, *plain, *secret, *icv;
};

/* McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, cases 4 and 16; then the packet of
 * scapy's page of scapy.contrib.psp, of which 20 bytes behind the header are in clear text. */
static const struct vector vectors[] = {
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16ae"
     "d"
     "f5aa0de657ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30"
     "b"
     "396a0aac973d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16ae"
     "d"
     "f5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61"
     "e"
     "6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    {"ffeeddccbbaa99887766554433221100", "112233440102030405060708",
     "0401050111223344010203040506070845000025000100004011"
     "7cc57f0000017f000001",
     "04d2162e0011a0c4414141414141414141", "8e3e2b1345c76bf95cdac39b861762a0cf",
     "dffbbebbc6313a2b9de064759cdd71c9"},
};

static void check_vector(const struct vector *vector, enum seal_backend backend)
{
    uint8_t key[32], nonce[12], associated[64], plain[64], secret[64], icv[16], out[64], found[16];
    uint32_t key_bytes = hex(vector->key, key), associated_bytes = hex(vector->associated, associated);
    uint32_t bytes = hex(vector->plain, plain);
    hex(vector->nonce, nonce);
    assert_int_equal(hex(vector->secret, secret), bytes);
    hex(vector->icv, icv);
    struct seal_key seals = {0}, opens = {0};
    assert_int_equal(seal_key_set(&seals, backend, key, key_bytes, false), 0);
    assert_int_equal(seal_key_set(&opens, backend, key, key_bytes, true), 0);
    for (uint32_t cut = 0; cut <= bytes; cut++) {
        const struct seal_text text = text_of(plain, bytes, cut);
        seal_encrypt(&seals, nonce, associated, associated_bytes, &text, out, found);
        assert_memory_equal(out, secret, bytes);
        assert_memory_equal(found, icv, sizeof icv);
    }
    assert_true(seal_decrypt(&opens, nonce, associated, associated_bytes, secret, bytes, icv, out));
    assert_memory_equal(out, plain, bytes);
    icv[15] ^= 1;
    assert_false(seal_decrypt(&opens, nonce, associated, associated_bytes, secret, bytes, icv, out));
    seal_key_wipe(&seals);
    seal_key_wipe(&opens);
}

static void test_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        check_vector(&vectors[i], SEAL_FASTEST);
        check_vector(&vectors[i], SEAL_LIBCRYPTO);
        if (seal_has_backend(SEAL_IPSEC_MB))
            check_vector(&vectors[i], SEAL_IPSEC_MB);
    }
}

/* RFC 9001, appendix A.1: the keys of a client's first packets. */
static void test_derivation(void **state)
{
    uint8_t secret[32], wanted[32], found[32];
    (void)state;
    hex("c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea", secret);
    hex("1f369613dd76d5467730efcbe3b1a22d", wanted);
    assert_true(seal_derive(secret, "quic key", NULL, 0, found, 16));
    assert_memory_equal(found, wanted, 16);
    hex("9f50449e04a0e810283a1e9933adedd2", wanted);
    assert_true(seal_derive(secret, "quic hp", NULL, 0, found, 16));
    assert_memory_equal(found, wanted, 16);
}

/* ---- backends ---------------------------------------------------------------------------------------- */

static void test_backends_agree(void **state)
{
    static uint8_t plain[9000], out[2][9000], back[9000];
    struct lh_prng prng;
    (void)state;
    if (!seal_has_backend(SEAL_IPSEC_MB))
        skip();
    lh_prng_seed(&prng, 41);
    for (uint32_t i = 0; i < 2000; i++) {
        uint8_t key[32], nonce[12], associated[48], icv[2][16];
        uint32_t key_bytes = i % 2 ? 16 : 32, bytes = (uint32_t)(lh_prng_next(&prng) % sizeof plain);
        uint32_t associated_bytes = (uint32_t)(lh_prng_next(&prng) % sizeof associated);
        uint32_t cut = bytes ? (uint32_t)(lh_prng_next(&prng) % bytes) : 0;
        bytes = i % 4 ? bytes % 200 : bytes;
        cut = cut < bytes ? cut : bytes;
        for (uint32_t k = 0; k < bytes; k++)
            plain[k] = (uint8_t)lh_prng_next(&prng);
        for (uint32_t k = 0; k < 32; k++)
            key[k] = (uint8_t)lh_prng_next(&prng);
        for (uint32_t k = 0; k < 12; k++)
            nonce[k] = (uint8_t)lh_prng_next(&prng);
        memset(associated, (int)i, sizeof associated);
        for (int b = 0; b < 2; b++) {
            struct seal_key seals = {0};
            const struct seal_text text = text_of(plain, bytes, b ? cut : bytes);
            assert_int_equal(
                seal_key_set(&seals, b ? SEAL_IPSEC_MB : SEAL_LIBCRYPTO, key, key_bytes, false), 0);
            seal_encrypt(&seals, nonce, associated, associated_bytes, &text, out[b], icv[b]);
            seal_key_wipe(&seals);
        }
        assert_memory_equal(out[0], out[1], bytes);
        assert_memory_equal(icv[0], icv[1], 16);
        for (int b = 0; b < 2; b++) {
            struct seal_key opens = {0};
            assert_int_equal(seal_key_set(&opens, b ? SEAL_LIBCRYPTO : SEAL_IPSEC_MB, key, key_bytes, true),
                             0);
            assert_true(
                seal_decrypt(&opens, nonce, associated, associated_bytes, out[b], bytes, icv[b], back));
            assert_memory_equal(back, plain, bytes);
            seal_key_wipe(&opens);
        }
    }
}

/* Nothing of a key stays behind. */
static void test_wipe(void **state)
{
    static const uint8_t zeros[sizeof(struct seal_key)];
    uint8_t bytes[32] = {1, 2, 3};
    struct seal_key key = {0};
    (void)state;
    assert_int_equal(seal_key_set(&key, SEAL_FASTEST, bytes, 32, false), 0);
    seal_key_wipe(&key);
    assert_memory_equal(&key, zeros, sizeof key);
    seal_key_wipe(&key);
}

/* ---- packets ----------------------------------------------------------------------------------------- */

static struct seal_key seals, opens;

static int make_keys(void **state)
{
    uint8_t secret[32] = {7}, key[32];
    (void)state;
    assert_true(seal_derive_key(secret, 0, SEAL_DATA, 3, key, 32));
    assert_int_equal(seal_key_set(&seals, SEAL_FASTEST, key, 32, false), 0);
    assert_int_equal(seal_key_set(&opens, SEAL_FASTEST, key, 32, true), 0);
    return 0;
}

static int drop_keys(void **state)
{
    (void)state;
    seal_key_wipe(&seals);
    seal_key_wipe(&opens);
    return 0;
}

static const uint8_t message[] = "a header of some bytes and what follows it";

static uint32_t make_packet(uint8_t out[128])
{
    const struct seal_text text = text_of(message, sizeof message, 9);
    const struct seal_header header = {.spi = 0xAB123456, .kind = SEAL_PUNCH, .count = 0x0102030405};
    return seal_packet(&seals, &header, &text, out);
}

static void test_packet(void **state)
{
    static const uint8_t wanted[] = {0xFE, 1, 0, 5, 0xAB, 0x12, 0x34, 0x56, 2, 0, 0, 1, 2, 3, 4, 5};
    uint8_t packet[128], plain[128];
    struct seal_header header;
    (void)state;
    uint32_t bytes = make_packet(packet);
    assert_int_equal(bytes, sizeof message + SEAL_BYTES);
    assert_memory_equal(packet, wanted, sizeof wanted);
    assert_true(seal_read(packet, bytes, 32, &header));
    assert_int_equal(header.spi, 0xAB123456);
    assert_int_equal(header.kind, SEAL_PUNCH);
    assert_int_equal(header.count, 0x0102030405);
    assert_true(seal_open(&opens, packet, bytes, plain));
    assert_memory_equal(plain, message, sizeof message);
    assert_false(seal_read(packet, bytes, 16, &header));
    assert_false(seal_read(packet, SEAL_BYTES, 32, &header));
}

/* Each bit of it, and each length. */
static void test_changed_packets(void **state)
{
    uint8_t packet[128], plain[128];
    struct seal_header header;
    (void)state;
    uint32_t bytes = make_packet(packet);
    for (uint32_t bit = 0; bit < 8 * bytes; bit++) {
        packet[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        if (seal_read(packet, bytes, 32, &header))
            assert_false(seal_open(&opens, packet, bytes, plain));
        packet[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    for (uint32_t less = 0; less < bytes; less++)
        if (seal_read(packet, less, 32, &header))
            assert_false(seal_open(&opens, packet, less, plain));
    packet[bytes] = 0;
    assert_false(seal_open(&opens, packet, bytes + 1, plain));
    assert_true(seal_open(&opens, packet, bytes, plain));
}

/* Direction, kind, channel and epoch: each has a key of its own. */
static void test_keys_differ(void **state)
{
    uint8_t keys[200][32], secret[32] = {1};
    uint32_t count = 0;
    (void)state;
    for (int epoch = 0; epoch < 3; epoch++) {
        for (uint8_t direction = 0; direction < 2; direction++)
            for (uint8_t kind = 0; kind < SEAL_KINDS; kind++)
                for (uint8_t channel = 0; channel < 5; channel++)
                    assert_true(seal_derive_key(secret, direction, (enum seal_kind)kind, channel,
                                                keys[count++], 32));
        memcpy(keys[count++], secret, 32);
        assert_true(seal_next_epoch(secret));
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_memory_not_equal(keys[i], keys[k], 32);
}

/* ---- window ------------------------------------------------------------------------------------------ */

#define COUNTS (6 * SEAL_WINDOW)

static uint8_t came[COUNTS];

/* Against a list of all that came: nothing is taken twice, and nothing new inside the window is refused. */
static void check_window(uint32_t seed, uint32_t spread)
{
    struct seal_window window = {0};
    struct lh_prng prng;
    uint64_t highest = 0;
    bool any = false;
    lh_prng_seed(&prng, seed);
    memset(came, 0, sizeof came);
    for (uint32_t i = 0; i < 40000; i++) {
        uint64_t low = any && highest > spread / 2 ? highest - spread / 2 : 0;
        uint64_t count = low + lh_prng_next(&prng) % spread;
        if (count >= COUNTS)
            break;
        bool old = any && highest >= count && highest - count >= SEAL_WINDOW;
        assert_int_equal(seal_window_takes(&window, count), !old && !came[count]);
        if (lh_prng_next(&prng) % 4 == 0 || old || came[count])
            continue; /* it was forged */
        seal_window_add(&window, count);
        came[count] = 1;
        highest = !any || count > highest ? count : highest;
        any = true;
    }
}

static void test_window(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++) {
        check_window(seed, 3);
        check_window(seed, 300);
        check_window(seed, 3 * SEAL_WINDOW);
    }
}

static void test_window_jumps(void **state)
{
    struct seal_window window = {0};
    const uint64_t far = UINT64_C(1) << 55;
    (void)state;
    seal_window_add(&window, 5);
    seal_window_add(&window, far);
    assert_false(seal_window_takes(&window, 5));
    assert_false(seal_window_takes(&window, far));
    assert_false(seal_window_takes(&window, far - SEAL_WINDOW));
    assert_true(seal_window_takes(&window, far - SEAL_WINDOW + 1));
    assert_true(seal_window_takes(&window, far + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_derivation),
        cmocka_unit_test(test_backends_agree),
        cmocka_unit_test(test_wipe),
        cmocka_unit_test_setup_teardown(test_packet, make_keys, drop_keys),
        cmocka_unit_test_setup_teardown(test_changed_packets, make_keys, drop_keys),
        cmocka_unit_test(test_keys_differ),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_window_jumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
