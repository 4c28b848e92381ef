/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/xdp/xdp_program.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "fabric/udp/udp_address.h"
#include "fabric/xdp/xdp_frame.h"

/* ---- the program ------------------------------------------------------------------------------------- */

/* Offsets in a frame. */
#define AT_ETHERTYPE   12
#define AT_IP          14
#define V4_AT_FRAGMENT (AT_IP + 6)
#define V4_AT_PROTOCOL (AT_IP + 9)
#define V4_AT_TO       (AT_IP + 16)
#define V4_AT_PORT     (AT_IP + 20 + 2)
#define V4_END         (AT_IP + 20 + 8)
#define V6_AT_PROTOCOL (AT_IP + 6)
#define V6_AT_TO       (AT_IP + 24)
#define V6_AT_PORT     (AT_IP + 40 + 2)
#define V6_END         (AT_IP + 40 + 8)

#define V4_WITHOUT_OPTIONS 0x45
#define V4_FRAGMENT_MASK   0x3FFF /* more fragments, and the offset */

/* The key is on the stack, below the frame pointer. */
#define KEY_AT       (-(int16_t)sizeof(struct xdp_port_key))
#define KEY_AT_PORT  (KEY_AT + (int16_t)offsetof(struct xdp_port_key, port))
#define KEY_AT_ETHER (KEY_AT + (int16_t)offsetof(struct xdp_port_key, ethertype))

/* Registers. */
enum {
    RESULT = BPF_REG_0,
    ARG_1 = BPF_REG_1,
    ARG_2 = BPF_REG_2,
    ARG_3 = BPF_REG_3,
    DATA = BPF_REG_2,
    END = BPF_REG_3,
    BOUND = BPF_REG_4,
    VALUE = BPF_REG_5,
    CONTEXT = BPF_REG_6, /* kept over calls */
    STACK = BPF_REG_10,
};

/* Jumps whose distance is known last. */
#define TO_PASS   INT16_MAX
#define TO_LOOKUP (INT16_MAX - 1)
#define TO_V6     (INT16_MAX - 2)

struct writer {
    struct bpf_insn *steps;
    uint32_t count;
};

static void add(struct writer *writer, int code, int to, int from, int offset, int32_t value)
{
    assert(writer->count < XDP_PROGRAM_STEPS_MAX);
    writer->steps[writer->count++] = (struct bpf_insn){
        .code = (uint8_t)code,
        .dst_reg = (uint8_t)(to & 15),
        .src_reg = (uint8_t)(from & 15),
        .off = (int16_t)offset,
        .imm = value,
    };
}

/* VALUE = bytes of the frame there, as they lie in memory. */
static void load(struct writer *writer, int size, int offset)
{
    add(writer, BPF_LDX | BPF_MEM | size, VALUE, DATA, offset, 0);
}

/* The frame is shorter than that: pass. The verifier wants this before each load. */
static void require_bytes(struct writer *writer, int32_t bytes)
{
    add(writer, BPF_ALU64 | BPF_MOV | BPF_X, BOUND, DATA, 0, 0);    /* BOUND = DATA */
    add(writer, BPF_ALU64 | BPF_ADD | BPF_K, BOUND, 0, 0, bytes);   /* BOUND += bytes */
    add(writer, BPF_JMP | BPF_JGT | BPF_X, BOUND, END, TO_PASS, 0); /* BOUND > END: pass */
}

/* VALUE is another: pass. */
static void require(struct writer *writer, int32_t value)
{
    add(writer, BPF_JMP | BPF_JNE | BPF_K, VALUE, 0, TO_PASS, value);
}

/* The key's word, and half word, from the frame. */
static void copy_word(struct writer *writer, int to, int from)
{
    load(writer, BPF_W, from);
    add(writer, BPF_STX | BPF_MEM | BPF_W, STACK, VALUE, to, 0);
}

static void copy_half(struct writer *writer, int to, int from)
{
    load(writer, BPF_H, from);
    add(writer, BPF_STX | BPF_MEM | BPF_H, STACK, VALUE, to, 0);
}

/* A map's descriptor becomes its address: an instruction of two places. */
static void load_map(struct writer *writer, int to, int fd)
{
    add(writer, BPF_LD | BPF_IMM | BPF_DW, to, BPF_PSEUDO_MAP_FD, 0, fd);
    add(writer, 0, 0, 0, 0, 0);
}

static void call(struct writer *writer, int32_t function)
{
    add(writer, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* An IPv4 datagram without options that is no fragment; its key. */
static void read_v4(struct writer *writer)
{
    load(writer, BPF_B, AT_IP);
    require(writer, V4_WITHOUT_OPTIONS);
    load(writer, BPF_B, V4_AT_PROTOCOL);
    require(writer, (int32_t)XDP_PROTOCOL_UDP);
    load(writer, BPF_H, V4_AT_FRAGMENT);
    add(writer, BPF_ALU64 | BPF_AND | BPF_K, VALUE, 0, 0, htons(V4_FRAGMENT_MASK));
    require(writer, 0);
    copy_word(writer, KEY_AT, V4_AT_TO);
    copy_half(writer, KEY_AT_PORT, V4_AT_PORT);
}

/* An IPv6 datagram without extension headers; its key. */
static void read_v6(struct writer *writer)
{
    require_bytes(writer, V6_END);
    load(writer, BPF_B, V6_AT_PROTOCOL);
    require(writer, (int32_t)XDP_PROTOCOL_UDP);
    for (int word = 0; word < 4; word++)
        copy_word(writer, KEY_AT + 4 * word, V6_AT_TO + 4 * word);
    copy_half(writer, KEY_AT_PORT, V6_AT_PORT);
}

static void find_socket(struct writer *writer, int ports_fd, int sockets_fd, uint32_t queues)
{
    load_map(writer, ARG_1, ports_fd);
    add(writer, BPF_ALU64 | BPF_MOV | BPF_X, ARG_2, STACK, 0, 0);  /* ARG_2 = STACK */
    add(writer, BPF_ALU64 | BPF_ADD | BPF_K, ARG_2, 0, 0, KEY_AT); /* ARG_2 = the key's address */
    call(writer, BPF_FUNC_map_lookup_elem);
    add(writer, BPF_JMP | BPF_JEQ | BPF_K, RESULT, 0, TO_PASS, 0); /* the port is not open: pass */
    add(writer, BPF_LDX | BPF_MEM | BPF_W, ARG_2, RESULT, 0, 0);   /* ARG_2 = place x queues */
    add(writer, BPF_LDX | BPF_MEM | BPF_W, VALUE, CONTEXT, offsetof(struct xdp_md, rx_queue_index), 0);
    add(writer, BPF_JMP | BPF_JGE | BPF_K, VALUE, 0, TO_PASS, (int32_t)queues); /* without a socket: pass */
    add(writer, BPF_ALU64 | BPF_ADD | BPF_X, ARG_2, VALUE, 0, 0);               /* ARG_2 += the queue */
    load_map(writer, ARG_1, sockets_fd);
    add(writer, BPF_ALU64 | BPF_MOV | BPF_K, ARG_3, 0, 0, XDP_PASS); /* the result without a socket */
    call(writer, BPF_FUNC_redirect_map);
    add(writer, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static void resolve(struct writer *writer, int16_t label, uint32_t at)
{
    for (uint32_t i = 0; i < writer->count; i++)
        if (BPF_CLASS(writer->steps[i].code) == BPF_JMP && writer->steps[i].off == label)
            writer->steps[i].off = (int16_t)(at - i - 1);
}

uint32_t xdp_program_make(int ports_fd, int sockets_fd, uint32_t queues,
                          struct bpf_insn steps[XDP_PROGRAM_STEPS_MAX])
{
    struct writer writer = {steps, 0};
    add(&writer, BPF_ALU64 | BPF_MOV | BPF_X, CONTEXT, ARG_1, 0, 0); /* CONTEXT = the argument */
    add(&writer, BPF_LDX | BPF_MEM | BPF_W, DATA, CONTEXT, offsetof(struct xdp_md, data), 0);
    add(&writer, BPF_LDX | BPF_MEM | BPF_W, END, CONTEXT, offsetof(struct xdp_md, data_end), 0);
    require_bytes(&writer, V4_END); /* no UDP datagram is shorter */
    for (int word = 0; word < 4; word++)
        add(&writer, BPF_ST | BPF_MEM | BPF_W, STACK, 0, KEY_AT + 4 * word, 0); /* the key's address = 0 */
    copy_half(&writer, KEY_AT_ETHER, AT_ETHERTYPE); /* VALUE is the EtherType, too */
    add(&writer, BPF_JMP | BPF_JEQ | BPF_K, VALUE, 0, TO_V6, htons(XDP_ETHERTYPE_IPV6));
    require(&writer, htons(XDP_ETHERTYPE_IPV4));
    read_v4(&writer);
    add(&writer, BPF_JMP | BPF_JA, 0, 0, TO_LOOKUP, 0);
    resolve(&writer, TO_V6, writer.count);
    read_v6(&writer);
    resolve(&writer, TO_LOOKUP, writer.count);
    find_socket(&writer, ports_fd, sockets_fd, queues);
    resolve(&writer, TO_PASS, writer.count);
    add(&writer, BPF_ALU64 | BPF_MOV | BPF_K, RESULT, 0, 0, XDP_PASS);
    add(&writer, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    return writer.count;
}

/* ---- bpf(2) ------------------------------------------------------------------------------------------ */

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int make_map(enum bpf_map_type type, uint32_t key_bytes, uint32_t entries)
{
    union bpf_attr attr = {0};
    attr.map_type = type;
    attr.key_size = key_bytes;
    attr.value_size = sizeof(uint32_t);
    attr.max_entries = entries;
    snprintf(attr.map_name, sizeof attr.map_name, XDP_PROGRAM_NAME);
    return bpf(BPF_MAP_CREATE, &attr);
}

static int set_entry(int map, const void *key, uint32_t value)
{
    union bpf_attr attr = {0};
    attr.map_fd = (uint32_t)map;
    attr.key = (uintptr_t)key;
    attr.value = (uintptr_t)&value;
    return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

static int load_program(const struct xdp_program *program)
{
    struct bpf_insn steps[XDP_PROGRAM_STEPS_MAX];
    static const char license[] = "Dual BSD/GPL";
    union bpf_attr attr = {0};
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.expected_attach_type = BPF_XDP;
    attr.insns = (uintptr_t)steps;
    attr.insn_cnt = xdp_program_make(program->ports, program->sockets, program->queues, steps);
    attr.license = (uintptr_t)license;
    snprintf(attr.prog_name, sizeof attr.prog_name, XDP_PROGRAM_NAME);
    return bpf(BPF_PROG_LOAD, &attr);
}

static int link_program(int program_fd, uint32_t ifindex, uint32_t mode)
{
    union bpf_attr attr = {0};
    attr.link_create.prog_fd = (uint32_t)program_fd;
    attr.link_create.target_ifindex = ifindex;
    attr.link_create.attach_type = BPF_XDP;
    attr.link_create.flags = mode;
    return bpf(BPF_LINK_CREATE, &attr);
}

static int close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- attaching --------------------------------------------------------------------------------------- */

static int load_failed(const char *interface, const char *what, int error)
{
    if (error == EPERM || error == EACCES)
        return lh_fail(
            LH_EDEVICE,
            "device xdp:%s: %s needs CAP_BPF and CAP_NET_ADMIN (run as root, or use udp:ADDRESS)",
            interface, what);
    if (error == ENOSYS)
        return lh_fail(LH_EDEVICE, "device xdp:%s: kernel without bpf(2) (use udp:ADDRESS)", interface);
    return lh_fail(LH_ESYSTEM, "device xdp:%s: %s: %s (use udp:ADDRESS)", interface, what, strerror(error));
}

static int attach_failed(const char *interface, int error)
{
    if (error == EBUSY || error == EEXIST)
        return lh_fail(LH_EDEVICE,
                       "device xdp:%s: the interface has an XDP program already, of another process "
                       "(see \"ip link show %s\"; end its owner, or use udp:ADDRESS)",
                       interface, interface);
    return load_failed(interface, "attaching the XDP program", error);
}

/* In the driver, else behind it. A driver refuses for many reasons: none of its own, an MTU or queues that do
 * not suit it. */
static int attach(const char *interface, uint32_t ifindex, int program_fd, struct xdp_program *program)
{
    program->native = true;
    program->link = link_program(program_fd, ifindex, XDP_FLAGS_DRV_MODE);
    if (program->link < 0 && errno != EBUSY && errno != EEXIST && errno != EPERM) {
        program->native = false;
        program->link = link_program(program_fd, ifindex, XDP_FLAGS_SKB_MODE);
    }
    return program->link >= 0 ? 0 : attach_failed(interface, errno);
}

int xdp_program_attach(const char *interface, uint32_t ifindex, uint32_t queues,
                       struct xdp_program *program)
{
    *program = (struct xdp_program){.ports = -1, .sockets = -1, .link = -1, .queues = queues};
    int error = 0;
    program->ports = make_map(BPF_MAP_TYPE_HASH, sizeof(struct xdp_port_key), XDP_PORTS_MAX);
    if (program->ports >= 0)
        program->sockets = make_map(BPF_MAP_TYPE_XSKMAP, sizeof(uint32_t), XDP_PLACES_MAX * queues);
    if (program->sockets < 0) {
        error = load_failed(interface, "making BPF maps", errno);
        goto close_program;
    }
    int program_fd = load_program(program);
    error = program_fd < 0 ? load_failed(interface, "loading the XDP program", errno)
                           : attach(interface, ifindex, program_fd, program);
    close_fd(program_fd); /* the link holds it */
    if (error == 0)
        return 0;

close_program:
    xdp_program_close(program);
    return error;
}

/* A child of fork() may still have the link open, so that closing it here would not end it. */
static void detach(int link)
{
    union bpf_attr attr = {0};
    attr.link_detach.link_fd = (uint32_t)link;
    (void)bpf(BPF_LINK_DETACH, &attr);
}

void xdp_program_close(struct xdp_program *program)
{
    if (program->link >= 0)
        detach(program->link);
    program->link = close_fd(program->link);
    program->sockets = close_fd(program->sockets);
    program->ports = close_fd(program->ports);
}

static struct xdp_port_key key_of(const union udp_address *address)
{
    struct xdp_port_key key = {
        .port = htons(udp_address_port(address)),
        .ethertype = htons(udp_address_is_ipv4(address) ? XDP_ETHERTYPE_IPV4 : XDP_ETHERTYPE_IPV6),
    };
    udp_address_bytes(address, key.address);
    return key;
}

int xdp_program_open_port(const struct xdp_program *program, const union udp_address *address,
                          uint32_t place)
{
    const struct xdp_port_key key = key_of(address);
    assert(place < XDP_PLACES_MAX);
    if (set_entry(program->ports, &key, place * program->queues) == 0)
        return 0;
    return lh_fail(LH_ESYSTEM, "UDP port %u: not added to the XDP program: %s", udp_address_port(address),
                   strerror(errno));
}

void xdp_program_close_port(const struct xdp_program *program, const union udp_address *address)
{
    const struct xdp_port_key key = key_of(address);
    union bpf_attr attr = {0};
    attr.map_fd = (uint32_t)program->ports;
    attr.key = (uintptr_t)&key;
    (void)bpf(BPF_MAP_DELETE_ELEM, &attr);
}

int xdp_program_set_socket(const struct xdp_program *program, uint32_t place, uint32_t queue, int fd)
{
    const uint32_t at = place * program->queues + queue;
    assert(place < XDP_PLACES_MAX && queue < program->queues);
    if (set_entry(program->sockets, &at, (uint32_t)fd) == 0)
        return 0;
    return lh_fail(LH_ESYSTEM, "receive queue %u: not added to the XDP program: %s", queue,
                   strerror(errno));
}
