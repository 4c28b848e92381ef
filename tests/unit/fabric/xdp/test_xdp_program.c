/*
 * test_xdp_program.c - the XDP program: which frames go to which socket. The kernel's machine is replaced by
 * one of the instructions that the program uses, so the test needs no privilege.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/udp/udp_address.h"
#include "fabric/xdp/xdp_frame.h"
#include "fabric/xdp/xdp_program.h"

#define PORTS_FD         5
#define SOCKETS_FD       6
#define QUEUES           4u
#define PLACE            3u
#define SOCKET_OF(queue) (1000 + (int)(PLACE * QUEUES + (queue)))
#define PASS             ((int)XDP_PASS)

/* ---- machine ----------------------------------------------------------------------------------------- */

struct machine {
    uint64_t registers[11];
    uint8_t stack[512];
    const uint8_t *data, *end;
    uint32_t queue;
    struct xdp_port_key open; /* the entry of the map of ports */
    uint32_t value;           /* what it holds */
    bool without_socket;      /* the map of sockets is empty */
};

/* The program's argument: loads from it are replaced, as they are in the kernel. */
static const uint8_t context_marker;

static uint64_t load(const struct machine *machine, uint64_t from, int16_t offset, uint32_t bytes)
{
    uint64_t value = 0;
    if (from == (uintptr_t)&context_marker) {
        if (offset == offsetof(struct xdp_md, data))
            return (uintptr_t)machine->data;
        return offset == offsetof(struct xdp_md, data_end) ? (uintptr_t)machine->end : machine->queue;
    }
    const uint8_t *at = (const uint8_t *)(uintptr_t)from + offset;
    bool in_frame = at >= machine->data && at + bytes <= machine->end;
    bool in_map = at == (const uint8_t *)&machine->value && bytes == 4;
    assert_true(in_frame || in_map); /* the verifier would refuse it */
    memcpy(&value, at, bytes);
    return value;
}

static void store(struct machine *machine, int16_t offset, uint64_t value, uint32_t bytes)
{
    assert_in_range(-offset, bytes, sizeof machine->stack);
    memcpy(machine->stack + sizeof machine->stack + offset, &value, bytes);
}

static uint64_t call(struct machine *machine, int32_t function)
{
    const uint64_t *r = machine->registers;
    if (function == BPF_FUNC_map_lookup_elem) {
        assert_int_equal(r[1], PORTS_FD);
        bool same = memcmp((const void *)(uintptr_t)r[2], &machine->open, sizeof machine->open) == 0;
        return same ? (uintptr_t)&machine->value : 0;
    }
    assert_int_equal(function, BPF_FUNC_redirect_map);
    assert_int_equal(r[1], SOCKETS_FD);
    return machine->without_socket ? r[3] : 1000 + r[2];
}

static bool jumps(uint8_t code, uint64_t a, uint64_t b)
{
    switch (BPF_OP(code)) {
    case BPF_JA:
        return true;
    case BPF_JEQ:
        return a == b;
    case BPF_JNE:
        return a != b;
    case BPF_JGT:
        return a > b;
    case BPF_JGE:
        return a >= b;
    default:
        fail_msg("jump %x", code);
        return false;
    }
}

static uint64_t compute(uint8_t code, uint64_t a, uint64_t b)
{
    switch (BPF_OP(code)) {
    case BPF_MOV:
        return b;
    case BPF_ADD:
        return a + b;
    case BPF_AND:
        return a & b;
    default:
        fail_msg("operation %x", code);
        return 0;
    }
}

static uint32_t size_of(uint8_t code)
{
    return BPF_SIZE(code) == BPF_W ? 4 : BPF_SIZE(code) == BPF_H ? 2 : 1;
}

/* Runs the program; returns its result. */
static int run(struct machine *machine)
{
    struct bpf_insn steps[XDP_PROGRAM_STEPS_MAX];
    uint32_t count = xdp_program_make(PORTS_FD, SOCKETS_FD, QUEUES, steps);
    uint64_t *r = machine->registers;
    r[1] = (uintptr_t)&context_marker;
    r[10] = (uintptr_t)(machine->stack + sizeof machine->stack);
    memset(machine->stack, 0xEE, sizeof machine->stack); /* what is not written is garbage */
    for (uint32_t at = 0; at < count; at++) {
        const struct bpf_insn *step = &steps[at];
        uint64_t *to = &r[step->dst_reg];
        uint64_t operand = BPF_SRC(step->code) == BPF_X ? r[step->src_reg] : (uint64_t)(int64_t)step->imm;
        switch (BPF_CLASS(step->code)) {
        case BPF_LDX:
            *to = load(machine, r[step->src_reg], step->off, size_of(step->code));
            break;
        case BPF_ST:
            store(machine, step->off, (uint64_t)(int64_t)step->imm, size_of(step->code));
            break;
        case BPF_STX:
            store(machine, step->off, r[step->src_reg], size_of(step->code));
            break;
        case BPF_LD: /* a map, in two places */
            *to = (uint32_t)step->imm;
            at++;
            break;
        case BPF_ALU64:
            *to = compute(step->code, *to, operand);
            break;
        default:
            assert_int_equal(BPF_CLASS(step->code), BPF_JMP);
            if (BPF_OP(step->code) == BPF_EXIT)
                return (int)r[0];
            if (BPF_OP(step->code) == BPF_CALL)
                r[0] = call(machine, step->imm);
            else if (jumps(step->code, *to, operand))
                at = (uint32_t)((int32_t)at + step->off);
        }
    }
    fail_msg("the program has no end");
    return 0;
}

/* ---- frames ------------------------------------------------------------------------------------------ */

struct frame {
    uint8_t bytes[256];
    uint32_t length;
    uint32_t ip_bytes;
};

static union udp_address address_of(bool ipv4, uint8_t last, uint16_t port)
{
    union udp_address address = {0};
    if (ipv4) {
        address.v4 =
            (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0A000000u | last)};
    } else {
        address.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
        address.v6.sin6_addr.s6_addr[0] = 0xFD;
        address.v6.sin6_addr.s6_addr[15] = last;
    }
    udp_address_set_port(&address, port);
    return address;
}

static struct frame make_frame(bool ipv4)
{
    static const uint8_t here[6] = {2, 0, 0, 0, 0, 1}, there[6] = {2, 0, 0, 0, 0, 2};
    const union udp_address from = address_of(ipv4, 1, 50000), to = address_of(ipv4, 2, 60000);
    struct frame frame = {.ip_bytes = ipv4 ? XDP_IPV4_BYTES : XDP_IPV6_BYTES};
    struct xdp_flow flow;
    xdp_flow_make(&flow, here, there, &from, &to, false);
    frame.length = xdp_frame_finish(&flow, frame.bytes, 40, 7);
    return frame;
}

/* The result for a frame where 10.0.0.2 or fd00::2, port 60000, is open. */
static int result_of(const struct frame *frame, bool ipv4, uint32_t queue, bool without_socket)
{
    const union udp_address open = address_of(ipv4, 2, 60000);
    uint8_t exact[256]; /* at the end of a buffer that is as long */
    uint8_t *data = exact + sizeof exact - frame->length;
    memcpy(data, frame->bytes, frame->length);
    struct machine machine = {
        .data = data,
        .end = data + frame->length,
        .queue = queue,
        .open = {.port = htons(60000), .ethertype = htons(ipv4 ? XDP_ETHERTYPE_IPV4 : XDP_ETHERTYPE_IPV6)},
        .value = PLACE * QUEUES,
        .without_socket = without_socket,
    };
    udp_address_bytes(&open, machine.open.address);
    return run(&machine);
}

static void test_datagrams_to_open_ports(void **state)
{
    (void)state;
    for (int ipv4 = 0; ipv4 < 2; ipv4++) {
        const struct frame frame = make_frame(ipv4);
        for (uint32_t queue = 0; queue < QUEUES; queue++)
            assert_int_equal(result_of(&frame, ipv4, queue, false), SOCKET_OF(queue));
        assert_int_equal(result_of(&frame, ipv4, QUEUES, false), PASS); /* the next place's */
        assert_int_equal(result_of(&frame, ipv4, 0, true), PASS);
        assert_int_equal(result_of(&frame, !ipv4, 0, false), PASS);
    }
}

/* A byte of the frame that is another one: the kernel's. */
static void expect_pass(bool ipv4, uint32_t at, uint8_t value)
{
    struct frame frame = make_frame(ipv4);
    frame.bytes[at] = value;
    assert_int_equal(result_of(&frame, ipv4, 0, false), PASS);
}

static void test_all_else_is_the_kernels(void **state)
{
    (void)state;
    const uint32_t ip = XDP_ETHERNET_BYTES;
    expect_pass(true, 13, 0x06);       /* ARP */
    expect_pass(true, 12, 0x81);       /* VLAN */
    expect_pass(true, ip, 0x46);       /* options */
    expect_pass(true, ip + 6, 0x20);   /* more fragments */
    expect_pass(true, ip + 7, 1);      /* a fragment */
    expect_pass(true, ip + 9, 6);      /* TCP */
    expect_pass(true, ip + 19, 3);     /* another host */
    expect_pass(true, ip + 20 + 3, 1); /* another port */
    expect_pass(false, ip + 6, 6);     /* TCP */
    for (uint32_t i = 0; i < 16; i++)
        expect_pass(false, ip + 24 + i, 0x55);
    expect_pass(false, ip + 40 + 2, 1);
}

/* No load reaches beyond the frame: the machine verifies it. */
static void test_short_frames(void **state)
{
    (void)state;
    for (int ipv4 = 0; ipv4 < 2; ipv4++) {
        struct frame frame = make_frame(ipv4);
        uint32_t whole = XDP_ETHERNET_BYTES + frame.ip_bytes + XDP_UDP_BYTES;
        for (frame.length = 0; frame.length < whole; frame.length++)
            assert_int_equal(result_of(&frame, ipv4, 0, false), PASS);
        assert_int_equal(result_of(&frame, ipv4, 0, false), SOCKET_OF(0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datagrams_to_open_ports),
        cmocka_unit_test(test_all_else_is_the_kernels),
        cmocka_unit_test(test_short_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
