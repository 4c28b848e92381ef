/*
 * The socket filter as the kernel's checker sees it, and as a plain interpreter runs it: every jump stays
 * inside, each field decides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "wire/roce_packet.h"

#define CUT (8u + ROCE_WRITE_IMM_HEADER_BYTES)

struct packet {
    uint8_t ip[40];
    uint8_t udp[8 + 32 + 1024 + 4];
    uint32_t bytes; /* from the UDP header on */
};

static uint32_t load(const struct packet *packet, uint32_t offset, uint32_t size)
{
    const uint8_t *from = offset >= (uint32_t)SKF_NET_OFF ? packet->ip + (offset - (uint32_t)SKF_NET_OFF)
                                                          : packet->udp + offset;
    assert_true(offset >= (uint32_t)SKF_NET_OFF || offset + size <= packet->bytes);
    return size == 4 ? lh_get_be32(from) : size == 2 ? lh_get_be16(from) : from[0];
}

/* NOLINTBEGIN(misc-redundant-expression): some of the kernel's flags are 0 */
static uint32_t run(const struct sock_filter *steps, uint32_t count, const struct packet *packet)
{
    uint32_t a = 0, x = 0;
    for (uint32_t at = 0; at < count; at++) { /* jumps go forward only */
        const struct sock_filter *s = &steps[at];
        switch (s->code) {
        case BPF_LD | BPF_ABS | BPF_W:
            a = load(packet, s->k, 4);
            break;
        case BPF_LD | BPF_ABS | BPF_H:
            a = load(packet, s->k, 2);
            break;
        case BPF_LD | BPF_ABS | BPF_B:
            a = load(packet, s->k, 1);
            break;
        case BPF_LD | BPF_W | BPF_LEN:
            a = packet->bytes;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= s->k;
            break;
        case BPF_ALU | BPF_ADD | BPF_K:
            a += s->k;
            break;
        case BPF_MISC | BPF_TAX:
            x = a;
            break;
        case BPF_MISC | BPF_TXA:
            a = x;
            break;
        case BPF_JMP | BPF_JA:
            at += s->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == s->k ? s->jt : s->jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            at += a > s->k ? s->jt : s->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= s->k ? s->jt : s->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_X:
            at += a >= x ? s->jt : s->jf;
            break;
        case BPF_RET | BPF_K:
            return s->k;
        default:
            fail_msg("step %u has code %u", at, s->code);
        }
    }
    fail_msg("the program has no end");
    return 0;
}
/* NOLINTEND(misc-redundant-expression) */

static struct udp_filter_peer peer_of(const char *address, uint32_t generations)
{
    struct udp_filter_peer peer = {.mtu_bytes = 1024, .generations = generations};
    assert_int_equal(udp_address_parse(address, &peer.address), 0);
    udp_address_set_port(&peer.address, 51234);
    for (uint32_t g = 0; g < generations; g++)
        peer.qpn[g] = 0x123456 + 0x10101 * g;
    return peer;
}

static struct packet packet_of(const struct udp_filter_peer *peer, uint32_t generation, uint32_t payload)
{
    struct packet packet = {.bytes = 8 + 32 + payload + 4};
    uint8_t address[16];
    udp_address_bytes(&peer->address, address);
    if (udp_address_is_ipv4(&peer->address))
        memcpy(packet.ip + 12, address, 4);
    else
        memcpy(packet.ip + 8, address, 16);
    lh_put_be16(packet.udp, udp_address_port(&peer->address));
    struct roce_packet roce = {
        .opcode = ROCE_UC_WRITE_ONLY_IMM, .dest_qpn = peer->qpn[generation], .payload_bytes = payload};
    roce_encode_header(&roce, packet.udp + 8);
    packet.udp[12] = 0xFF; /* reserved: any */
    return packet;
}

static void test_each_field_decides(void **state)
{
    (void)state;
    static const char *const addresses[] = {"[2001:db8::7]", "192.0.2.7"};
    for (uint32_t a = 0; a < 2; a++)
        for (uint32_t generations = 1; generations <= QP_INFO_GENERATIONS_MAX; generations++) {
            struct sock_filter steps[UDP_FILTER_STEPS_MAX];
            const struct udp_filter_peer peer = peer_of(addresses[a], generations);
            uint32_t count = udp_filter_make(&peer, steps);
            for (uint32_t g = 0; g < generations; g++) {
                static const uint32_t payloads[] = {0, 4, 1024};
                for (uint32_t i = 0; i < 3; i++) {
                    struct packet right = packet_of(&peer, g, payloads[i]);
                    assert_int_equal(run(steps, count, &right), UINT32_MAX);
                    right.bytes--;
                    assert_int_equal(run(steps, count, &right), CUT);
                }
            }
            const struct packet right = packet_of(&peer, generations - 1, 1000);
            uint32_t first = a == 0 ? 8 : 12, end = a == 0 ? 24 : 16;
            for (uint32_t i = first; i < end; i++) {
                struct packet wrong = right;
                wrong.ip[i] ^= 1;
                assert_int_equal(run(steps, count, &wrong), CUT);
            }
            static const uint8_t fields[] = {0, 1, 8, 13, 14, 15, 32, 33};
            for (uint32_t i = 0; i < sizeof fields; i++) {
                struct packet wrong = right;
                wrong.udp[fields[i]] ^= 0x40;
                assert_int_equal(run(steps, count, &wrong), CUT);
            }
            for (uint32_t bytes = 0; bytes < 44; bytes++) {
                struct packet wrong = right;
                wrong.bytes = bytes;
                assert_int_equal(run(steps, count, &wrong), CUT);
            }
        }
}

static void set_source(struct packet *packet, const char *text)
{
    union udp_address address;
    uint8_t bytes[16];
    assert_int_equal(udp_address_parse(text, &address), 0);
    udp_address_bytes(&address, bytes);
    memcpy(packet->ip + (udp_address_is_ipv4(&address) ? 12 : 8), bytes,
           udp_address_is_ipv4(&address) ? 4 : 16);
}

/* From its own host or the one that it is seen at, any port; from no third. */
static void test_a_peer_behind_nat(void **state)
{
    (void)state;
    static const char *const own[] = {"[2001:db8::7]", "192.0.2.7"};
    static const char *const seen[] = {"[2001:db8::9]", "203.0.113.9"};
    static const char *const third[] = {"[2001:db9::7]", "192.0.2.8"};
    for (uint32_t a = 0; a < 2; a++) {
        struct sock_filter steps[UDP_FILTER_STEPS_MAX];
        struct udp_filter_peer peer = peer_of(own[a], QP_INFO_GENERATIONS_MAX);
        peer.translated = true;
        assert_int_equal(udp_address_parse(seen[a], &peer.seen_address), 0);
        uint32_t count = udp_filter_make(&peer, steps);
        struct packet packet = packet_of(&peer, 3, 1000);
        lh_put_be16(packet.udp, 9);
        assert_int_equal(run(steps, count, &packet), UINT32_MAX);
        set_source(&packet, seen[a]);
        assert_int_equal(run(steps, count, &packet), UINT32_MAX);
        packet.udp[15] ^= 0x40;
        assert_int_equal(run(steps, count, &packet), CUT);
        packet.udp[15] ^= 0x40;
        set_source(&packet, third[a]);
        assert_int_equal(run(steps, count, &packet), CUT);
        for (uint32_t i = a == 0 ? 8 : 12; i < (a == 0 ? 23 : 15); i++) {
            set_source(&packet, seen[a]);
            packet.ip[i] ^= 1;
            assert_int_equal(run(steps, count, &packet), CUT);
        }
    }
}

static void test_nobody_is_known(void **state)
{
    (void)state;
    struct sock_filter steps[UDP_FILTER_STEPS_MAX];
    const struct udp_filter_peer peer = peer_of("192.0.2.7", 1);
    struct packet packet = packet_of(&peer, 0, 1000);
    assert_int_equal(run(steps, udp_filter_make(NULL, steps), &packet), CUT);
}

/* Every QP of every entry leads to its socket, any other to the first; a packet without a QPN, too: a load
 * behind the end returns 0 in the kernel. */
static void test_steering(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 3, 64};
    static struct udp_steer entries[64];
    static struct sock_filter steps[UDP_STEER_STEPS(64)];
    uint32_t qpn = 7;
    for (uint32_t i = 0; i < 64; i++) {
        entries[i] = (struct udp_steer){.place = i + 1, .qpns = i % QP_INFO_GENERATIONS_MAX + 1};
        for (uint32_t k = 0; k < entries[i].qpns; k++)
            entries[i].qpn[k] = qpn = (qpn * 5 + 1) & ROCE_QPN_MASK; /* all different */
    }
    for (uint32_t c = 0; c < 4; c++) {
        uint32_t length = udp_steer_make(entries, counts[c], steps);
        assert_true(length <= UDP_STEER_STEPS(counts[c]) && length <= BPF_MAXINSNS);
        for (uint32_t i = 0; i < 64; i++) {
            for (uint32_t k = 0; k < entries[i].qpns; k++) {
                struct packet packet = {.bytes = 8};
                lh_put_be32(packet.udp + 4, entries[i].qpn[k] | 0xAB000000); /* a reserved byte: any */
                assert_int_equal(run(steps, length, &packet), i < counts[c] ? entries[i].place : 0);
                lh_put_be32(packet.udp + 4, entries[i].qpn[k] ^ 0x800000);
                assert_int_equal(run(steps, length, &packet), 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_field_decides),
        cmocka_unit_test(test_a_peer_behind_nat),
        cmocka_unit_test(test_nobody_is_known),
        cmocka_unit_test(test_steering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
