/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/filter.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/big_endian.h"
#include "base/error.h"
#include "wire/roce.h"

/* Offsets of a data packet from its UDP header, where the kernel starts to count, and of the source address
 * in IP headers. See docs/wire.md. */
#define UDP_HEADER     8u
#define AT_SOURCE_PORT 0u
#define AT_OPCODE      (UDP_HEADER + 0u)
#define AT_QPN         (UDP_HEADER + ROCE_QPN_OFFSET - 1u) /* a reserved byte, then 24 bits */
#define AT_LENGTH      (UDP_HEADER + 24u)
#define AT_SOURCE_V4   12u
#define AT_SOURCE_V6   8u

#define CUT_BYTES (UDP_HEADER + ROCE_WRITE_IMM_HEADER_BYTES)
#define EMPTY     (UDP_HEADER + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)

/* A jump to the end of the program, where packets are cut; its distance is known last. */
#define TO_CUT 255u

/* NOLINTBEGIN(misc-redundant-expression): some of the kernel's flags are 0 */
static const uint16_t load_word = BPF_LD | BPF_ABS | BPF_W;
static const uint16_t load_half = BPF_LD | BPF_ABS | BPF_H;
static const uint16_t load_byte = BPF_LD | BPF_ABS | BPF_B;
static const uint16_t load_length = BPF_LD | BPF_W | BPF_LEN; /* of the message, from the UDP header on */
static const uint16_t add_constant = BPF_ALU | BPF_ADD | BPF_K;
/* NOLINTEND(misc-redundant-expression) */

struct program {
    struct sock_filter *steps;
    uint16_t count;
    uint32_t room;
};

static void add(struct program *program, uint16_t code, uint32_t k, uint32_t if_true, uint32_t if_false)
{
    assert(program->count < program->room);
    program->steps[program->count++] = (struct sock_filter){code, (uint8_t)if_true, (uint8_t)if_false, k};
}

/* Cuts the packet unless what lies there is this. */
static void require(struct program *program, uint16_t load, uint32_t offset, uint32_t value)
{
    add(program, load, offset, 0, 0);
    add(program, BPF_JMP | BPF_JEQ | BPF_K, value, 0, TO_CUT);
}

static void require_source(struct program *program, const union udp_address *address)
{
    bool ipv4 = udp_address_is_ipv4(address);
    uint32_t offset = (uint32_t)SKF_NET_OFF + (ipv4 ? AT_SOURCE_V4 : AT_SOURCE_V6);
    uint8_t bytes[16];
    udp_address_bytes(address, bytes);
    for (uint32_t i = 0; i < (ipv4 ? 4u : 16u); i += 4)
        require(program, load_word, offset + i, lh_get_be32(bytes + i));
    require(program, load_half, AT_SOURCE_PORT, udp_address_port(address));
}

/* From this host or that; ports do not count. The first word that differs from this one's leads to that. */
static void require_either(struct program *program, const union udp_address *this_one,
                           const union udp_address *that)
{
    const bool ipv4 = udp_address_is_ipv4(this_one);
    const uint32_t offset = (uint32_t)SKF_NET_OFF + (ipv4 ? AT_SOURCE_V4 : AT_SOURCE_V6);
    const uint32_t words = ipv4 ? 1 : 4;
    uint8_t bytes[16];
    udp_address_bytes(this_one, bytes);
    for (uint32_t i = 0; i < words; i++) {
        bool last = i == words - 1;
        uint32_t left = 2 * (words - 1 - i); /* steps of this host's other words */
        add(program, load_word, offset + 4 * i, 0, 0);
        add(program, BPF_JMP | BPF_JEQ | BPF_K, lh_get_be32(bytes + 4 * i), last ? 2 * words : 0, left);
    }
    udp_address_bytes(that, bytes);
    for (uint32_t i = 0; i < words; i++)
        require(program, load_word, offset + 4 * i, lh_get_be32(bytes + 4 * i));
}

static void require_qpn(struct program *program, const struct udp_filter_peer *peer)
{
    assert(peer->generations > 0 && peer->generations <= QP_INFO_GENERATIONS_MAX);
    add(program, load_word, AT_QPN, 0, 0);
    add(program, BPF_ALU | BPF_AND | BPF_K, ROCE_QPN_MASK, 0, 0);
    for (uint32_t left = peer->generations; left > 0; left--) /* the last one decides */
        add(program, BPF_JMP | BPF_JEQ | BPF_K, peer->qpn[left - 1], left - 1, left == 1 ? TO_CUT : 0);
}

/* The payload fits the MTU, and the message holds it. */
static void require_length(struct program *program, uint32_t mtu_bytes)
{
    add(program, load_word, AT_LENGTH, 0, 0);
    add(program, BPF_JMP | BPF_JGT | BPF_K, mtu_bytes, TO_CUT, 0);
    add(program, add_constant, EMPTY, 0, 0);
    add(program, BPF_MISC | BPF_TAX, 0, 0, 0);
    add(program, load_length, 0, 0, 0);
    add(program, BPF_JMP | BPF_JGE | BPF_X, 0, 0, TO_CUT);
}

static void resolve_cuts(const struct program *program, uint32_t end)
{
    for (uint32_t i = 0; i < end; i++) {
        struct sock_filter *step = &program->steps[i];
        if (BPF_CLASS(step->code) != BPF_JMP)
            continue;
        if (step->jt == TO_CUT)
            step->jt = (uint8_t)(end - i - 1);
        if (step->jf == TO_CUT)
            step->jf = (uint8_t)(end - i - 1);
    }
}

uint16_t udp_filter_make(const struct udp_filter_peer *peer, struct sock_filter steps[UDP_FILTER_STEPS_MAX])
{
    struct program program = {steps, 0, UDP_FILTER_STEPS_MAX};
    if (peer != NULL) {
        add(&program, load_length, 0, 0, 0);
        add(&program, BPF_JMP | BPF_JGE | BPF_K, EMPTY, 0, TO_CUT); /* or loading would drop it */
        if (peer->translated)
            require_either(&program, &peer->address, &peer->seen_address);
        else
            require_source(&program, &peer->address);
        require(&program, load_byte, AT_OPCODE, ROCE_UC_WRITE_ONLY_IMM);
        require_qpn(&program, peer);
        require_length(&program, peer->mtu_bytes);
        add(&program, BPF_RET | BPF_K, UINT32_MAX, 0, 0);
    }
    resolve_cuts(&program, program.count);
    add(&program, BPF_RET | BPF_K, CUT_BYTES, 0, 0);
    return program.count;
}

int udp_filter_attach(int fd, const struct udp_filter_peer *peer)
{
    struct sock_filter steps[UDP_FILTER_STEPS_MAX];
    struct sock_fprog program = {.filter = steps};
    program.len = udp_filter_make(peer, steps);
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        return lh_fail(LH_ESYSTEM, "cannot attach a packet filter to a UDP socket: %s", strerror(errno));
    return 0;
}

/* The QPs of one bucket. A match returns at once, so jumps are short whatever the number of entries. */
static void add_bucket(struct program *program, uint32_t bucket, const struct udp_steer *entries,
                       uint32_t count)
{
    add(program, BPF_MISC | BPF_TXA, 0, 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < entries[i].qpns; k++) {
            if (entries[i].qpn[k] % UDP_STEER_BUCKETS != bucket)
                continue;
            add(program, BPF_JMP | BPF_JEQ | BPF_K, entries[i].qpn[k], 0, 1);
            add(program, BPF_RET | BPF_K, entries[i].place, 0, 0);
        }
    }
    add(program, BPF_RET | BPF_K, 0, 0, 0);
}

/* Sixteen short searches in the place of a long one. Here the kernel counts from behind the UDP header. */
uint16_t udp_steer_make(const struct udp_steer *entries, uint32_t count, struct sock_filter *steps)
{
    struct program program = {steps, 0, UDP_STEER_STEPS(count)};
    if (count > 0) {
        add(&program, load_word, AT_QPN - UDP_HEADER, 0, 0);
        add(&program, BPF_ALU | BPF_AND | BPF_K, ROCE_QPN_MASK, 0, 0);
        add(&program, BPF_MISC | BPF_TAX, 0, 0, 0);
        add(&program, BPF_ALU | BPF_AND | BPF_K, UDP_STEER_BUCKETS - 1, 0, 0);
    }
    for (uint32_t bucket = 0; count > 0 && bucket < UDP_STEER_BUCKETS; bucket++) {
        add(&program, BPF_JMP | BPF_JEQ | BPF_K, bucket, 1, 0);
        uint16_t over = program.count;
        add(&program, BPF_JMP | BPF_JA, 0, 0, 0);
        add_bucket(&program, bucket, entries, count);
        steps[over].k = (uint32_t)program.count - over - 1;
    }
    add(&program, BPF_RET | BPF_K, 0, 0, 0);
    return program.count;
}

int udp_steer_attach(int fd, const struct udp_steer *entries, uint32_t count)
{
    struct sock_filter *steps = calloc(UDP_STEER_STEPS(count), sizeof *steps);
    if (steps == NULL)
        return lh_fail(LH_ENOMEM, "no memory to steer packets of %u channels", count);
    struct sock_fprog program = {.filter = steps};
    program.len = udp_steer_make(entries, count, steps);
    int failed = setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
    int error = errno;
    free(steps);
    return failed == 0 ? 0
                       : lh_fail(LH_ESYSTEM, "cannot steer packets among UDP sockets: %s", strerror(error));
}
