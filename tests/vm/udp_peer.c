/*
 * udp_peer.c - tests an endpoint of the udp fabric against peer.c, a verbs program on the kernel's own RoCE.
 *
 * Listens on TCP for one peer, which tells where its queue pairs are and does what it is told (peer.c has
 * the list). Then in both directions: messages in single-packet writes, every byte compared, what was lost
 * on the way sent again; control datagrams; and writes that must not be taken, which have to be counted
 * here or come to nothing there, with the next good one arriving as if nothing had been.
 *
 * usage: udp_peer ADDRESS PORT [lossy]      lossy: only what holds on a network that loses and reorders
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/error.h>

#include "device/device_registry.h"
#include "fabric/udp/udp_address.h"
#include "wire/roce_packet.h"

#define MEMORY_BYTES (1u << 20) /* ours, and one area of the peer's */
#define AREAS        4u
#define BLANK        0xEE
#define GUARD_BYTES  4096u
#define SLOTS        16u
#define WINDOW       64u
#define RECEIVES     256u
#define TRIES        200u
#define QUIET_NS     (200 * LH_NS_PER_MS)
#define WORDS_MAX    256u

struct test {
    struct fabric *fabric;
    struct fabric_endpoint *endpoint;
    struct fabric_endpoint_attr attr;
    struct lh_stats stats;
    FILE *in; /* the peer's answers */
    FILE *out;
    char answer[WORDS_MAX];
    uint32_t there_rkey; /* the peer's memory */
    uint64_t there_va;
    uint8_t *guarded; /* our memory, GUARD_BYTES before and after it */
    uint8_t *memory;
    _Atomic uint64_t received[MEMORY_BYTES / ROCE_MTU_MIN / 64 + 1];
};

static _Noreturn void die(const char *words, ...)
{
    va_list list;
    va_start(list, words);
    printf("FAILED: ");
    vprintf(words, list);
    printf("\n");
    va_end(list);
    exit(1);
}

/* What both sides say that byte i of a message is. */
static uint8_t byte_of(uint32_t seed, uint32_t i)
{
    return (uint8_t)(((i + 1) * 2654435761u ^ seed * 2246822519u) >> 23);
}

/* Tells the peer a line and returns its answer. */
static const char *tell(struct test *test, const char *words, ...)
{
    va_list list;
    va_start(list, words);
    vfprintf(test->out, words, list);
    va_end(list);
    fprintf(test->out, "\n");
    if (fgets(test->answer, sizeof test->answer, test->in) == NULL)
        die("the peer is gone");
    test->answer[strcspn(test->answer, "\n")] = 0;
    return test->answer;
}

static void expect(const char *answer, const char *wanted, const char *what)
{
    if (strcmp(answer, wanted) != 0)
        die("%s: the peer says \"%s\", not \"%s\"", what, answer, wanted);
}

static lh_time now(const struct test *test)
{
    return test->fabric->ops->now(test->fabric);
}

static void open_endpoint(struct test *test, const char *address, uint32_t mtu_bytes)
{
    char device[WORDS_MAX];
    snprintf(device, sizeof device, strchr(address, ':') ? "udp:[%s]" : "udp:%s", address);
    if (fabric_open(device, 0, &test->fabric) != 0)
        die("%s", lh_last_error());
    test->attr = (struct fabric_endpoint_attr){
        .channels = 1,
        .generations = 1,
        .mtu_bytes = mtu_bytes,
        .slots = SLOTS,
        .slot_bytes = MEMORY_BYTES,
        .stripe_packets = 16,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &test->stats,
    };
    if (test->fabric->ops->endpoint_create(test->fabric, &test->attr, &test->endpoint) != 0)
        die("%s", lh_last_error());
    test->guarded = malloc(MEMORY_BYTES + 2 * GUARD_BYTES);
    test->memory = test->guarded + GUARD_BYTES;
}

/* What a verbs peer of ours would have put into its blob, from its own words. */
static void connect_endpoint(struct test *test, const char *address, uint32_t data, uint32_t control)
{
    struct qp_info_endpoint there = {
        .fabric = QP_INFO_VERBS,
        .channels = 1,
        .generations = 1,
        .control_qpn = control,
        .control_port = ROCE_UDP_PORT,
        .channel_port = {ROCE_UDP_PORT},
        .qpn = {{data}},
    };
    there.family = strchr(address, ':') ? 6 : 4;
    if (inet_pton(there.family == 6 ? AF_INET6 : AF_INET, address, there.address) != 1)
        die("%s is no address", address);
    if (test->fabric->ops->endpoint_connect(test->endpoint, &there) != 0)
        die("%s", lh_last_error());
}

static void bind_slot(struct test *test, uint32_t slot, uint32_t bytes, struct fabric_slot_key *key)
{
    memset(test->guarded, BLANK, MEMORY_BYTES + 2 * GUARD_BYTES);
    memset((void *)test->received, 0, sizeof test->received);
    struct fabric_slot what = {.base = test->memory, .length_bytes = bytes, .received = test->received};
    if (test->fabric->ops->slot_bind(test->endpoint, slot, &what, key) != 0)
        die("%s", lh_last_error());
}

/* Takes what comes until nothing has come for a while, or all of `packets` has. Returns how many new ones
 * came. */
static uint32_t take(struct test *test, uint32_t slot, uint32_t packets)
{
    uint32_t fresh = 0;
    for (lh_time last = now(test); fresh < packets && now(test) - last < QUIET_NS;) {
        struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
        int got = test->fabric->ops->poll(test->endpoint, 0, arrivals, FABRIC_BATCH_MAX);
        if (got < 0)
            die("%s", lh_last_error());
        for (int i = 0; i < got; i++) {
            struct immediate_fields fields = immediate_part(test->attr.split, arrivals[i].immediate);
            uint64_t bit = (uint64_t)1 << (fields.packet % 64);
            if (fields.message != slot || fields.fragment != (fields.packet & 15))
                die("an immediate of %08x", arrivals[i].immediate);
            fresh += (atomic_fetch_or(&test->received[fields.packet / 64], bit) & bit) == 0;
            last = now(test);
        }
    }
    return fresh;
}

static void check_memory(const struct test *test, uint32_t bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < MEMORY_BYTES + 2 * GUARD_BYTES; i++) {
        bool inside = i >= GUARD_BYTES && i - GUARD_BYTES < bytes;
        uint8_t wanted = inside ? byte_of(seed, i - GUARD_BYTES) : BLANK;
        if (test->guarded[i] != wanted)
            die("our byte %d is %02x, not %02x", (int)i - (int)GUARD_BYTES, test->guarded[i], wanted);
    }
}

static bool has(const struct test *test, uint32_t packet)
{
    return (test->received[packet / 64] >> (packet % 64)) & 1;
}

/* Lets the peer write up to WINDOW packets of its message, and again what did not come. Returns how many
 * it wrote again. */
static uint32_t fetch(struct test *test, uint32_t slot, uint32_t first, uint32_t count)
{
    uint32_t again = 0;
    tell(test, "write %u %u", first, count);
    uint32_t left = count - take(test, slot, count);
    for (uint32_t tries = 0; left > 0; tries++) {
        if (tries == TRIES)
            die("%u packets never come", left);
        for (uint32_t p = first; p < first + count; p++) {
            if (!has(test, p)) {
                tell(test, "write %u 1", p);
                again++;
            }
        }
        left -= take(test, slot, left);
    }
    return again;
}

/* The peer writes a message into a slot of ours. */
static void receive_message(struct test *test, uint32_t slot, uint32_t bytes, uint32_t seed)
{
    struct fabric_slot_key key;
    bind_slot(test, slot, bytes, &key);
    tell(test, "message %u %" PRIx64 " %" PRIx32 " %u %u", slot, key.base, key.rkey, bytes, seed);
    uint32_t packets = (bytes + test->attr.mtu_bytes - 1) / test->attr.mtu_bytes;
    uint32_t again = 0;
    for (uint32_t first = 0; first < packets; first += WINDOW) {
        uint32_t count = packets - first < WINDOW ? packets - first : WINDOW;
        again += fetch(test, slot, first, count);
    }
    test->fabric->ops->slot_unbind(test->endpoint, slot);
    check_memory(test, bytes, seed);
    printf("from verbs: %u bytes in %u packets, %u sent again: every byte right\n", bytes, packets, again);
}

/* Packet `packet` of a message to an area of the peer. */
static struct fabric_write write_of(const struct test *test, uint32_t area, const uint8_t *message,
                                    uint32_t bytes, uint32_t packet)
{
    uint32_t offset = packet * test->attr.mtu_bytes;
    uint32_t left = bytes - offset;
    return (struct fabric_write){
        .payload = message + offset,
        .bytes = left < test->attr.mtu_bytes ? left : test->attr.mtu_bytes,
        .va = test->there_va + (uint64_t)area * MEMORY_BYTES + offset,
        .rkey = test->there_rkey,
        .immediate = immediate_join(test->attr.split, (struct immediate_fields){area, packet, packet & 15}),
    };
}

static void post(struct test *test, const struct fabric_write *write)
{
    for (int taken = 0; taken == 0;) {
        taken = test->fabric->ops->post_writes(test->endpoint, 0, write, 1);
        if (taken < 0)
            die("%s", lh_last_error());
    }
}

/* How many writes the peer takes until nothing comes any more, `least` in any case. */
static uint32_t there_took(struct test *test, uint32_t minimum)
{
    uint32_t took, errors;
    if (sscanf(tell(test, "poll %u", minimum), "took %u %u", &took, &errors) != 2 || errors != 0)
        die("the peer says \"%s\"", test->answer);
    return took;
}

/* What the peer lacks of up to 64 packets. It posts again what it took. */
static uint64_t lacks(struct test *test, uint32_t first, uint32_t count, uint32_t minimum)
{
    tell(test, "post %u", there_took(test, minimum));
    return strtoull(tell(test, "missing %u %u", first, count), NULL, 16);
}

static uint8_t *make_message(uint32_t bytes, uint32_t seed)
{
    uint8_t *message = malloc(bytes);
    for (uint32_t i = 0; i < bytes; i++)
        message[i] = byte_of(seed, i);
    return message;
}

/* We write a message into an area of the peer's. Each has its own, so that what the network doubled and holds
 * back does no harm to the next one. */
static void send_message(struct test *test, uint32_t area, uint32_t bytes, uint32_t seed)
{
    uint8_t *message = make_message(bytes, seed);
    tell(test, "clear %u", area);
    uint32_t packets = (bytes + test->attr.mtu_bytes - 1) / test->attr.mtu_bytes;
    uint32_t again = 0;
    for (uint32_t first = 0; first < packets; first += WINDOW) {
        uint32_t count = packets - first < WINDOW ? packets - first : WINDOW;
        uint64_t missing = count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1;
        for (uint32_t tries = 0; missing != 0; tries++) {
            if (tries == TRIES)
                die("packets %u + %" PRIx64 " never come", first, missing);
            again += tries == 0 ? 0 : (uint32_t)__builtin_popcountll(missing);
            for (uint32_t i = 0; i < count; i++) {
                struct fabric_write write = write_of(test, area, message, bytes, first + i);
                if ((missing >> i) & 1)
                    post(test, &write);
            }
            missing = lacks(test, first, count, 0);
        }
    }
    expect(tell(test, "check %u %u", bytes, seed), "same", "our message");
    free(message);
    printf("to verbs: %u bytes in %u packets, %u sent again: every byte right\n", bytes, packets, again);
}

/* A control datagram to the peer, until it has heard it. */
static void send_control(struct test *test, const uint8_t *message, uint32_t bytes, uint32_t seed)
{
    struct fabric_datagram datagram = {.data = message, .bytes = bytes};
    const char *heard = "no";
    for (uint32_t tries = 0; strcmp(heard, "no") == 0 && tries < TRIES; tries++) {
        test->fabric->ops->control_send(test->endpoint, &datagram, 1);
        heard = tell(test, "heard %u %u", bytes, seed);
    }
    expect(heard, "yes", "a control datagram");
}

static void exchange_control(struct test *test, uint32_t bytes, uint32_t seed)
{
    uint8_t *message = make_message(bytes, seed);
    send_control(test, message, bytes, seed);
    bool same = false;
    for (uint32_t tries = 0; !same; tries++) {
        if (tries == TRIES)
            die("the peer's control datagram of %u bytes never comes", bytes);
        tell(test, "say %u %u", bytes, seed);
        for (lh_time began = now(test); !same && now(test) - began < QUIET_NS;) {
            /* What is not the one may be an earlier one that the network doubled. */
            struct fabric_control_arrival arrival;
            int got = test->fabric->ops->control_poll(test->endpoint, &arrival, 1);
            same = got == 1 && arrival.bytes == bytes && memcmp(arrival.data, message, bytes) == 0;
        }
    }
    free(message);
    printf("control datagrams of %u bytes, both ways\n", bytes);
}

/* The peer sends one wrong write until it has been counted here. */
static void expect_counted(struct test *test, const char *what, const uint64_t *counter,
                           struct fabric_slot_key key, uint32_t immediate, uint32_t bytes)
{
    uint64_t before = *counter;
    for (uint32_t tries = 0; *counter == before; tries++) {
        if (tries == TRIES)
            die("%s: never counted", what);
        tell(test, "raw %" PRIx32 " %" PRIx64 " %" PRIx32 " %u", immediate, key.base, key.rkey, bytes);
        if (take(test, 2, 1) != 0)
            die("%s: taken", what);
    }
    printf("from verbs, %s: %" PRIu64 " counted\n", what, *counter - before);
}

/* Wrong writes of the peer. Slot 2 is open for 3 packets and 5 bytes. */
static void refuse_wrong_writes(struct test *test)
{
    uint32_t mtu = test->attr.mtu_bytes, bytes = 3 * mtu + 5;
    struct fabric_slot_key key;
    bind_slot(test, 2, bytes, &key);
    tell(test, "message 2 %" PRIx64 " %" PRIx32 " %u 77", key.base, key.rkey, bytes);
    const struct lh_stats *stats = &test->stats;
    uint32_t first = 2u << 22;
    struct fabric_slot_key wrong = {.rkey = key.rkey ^ 0x100, .base = key.base};
    expect_counted(test, "wrong key", &stats->bad_key, wrong, first, mtu);
    wrong = (struct fabric_slot_key){.rkey = key.rkey, .base = key.base + 3 * mtu};
    expect_counted(test, "a last packet that is too long", &stats->bad_range, wrong, first | 3 << 4 | 3, 6);
    wrong.base = key.base + mtu;
    expect_counted(test, "address and immediate that differ", &stats->bad_range, wrong, first | 2 << 4,
                   mtu);
    expect_counted(test, "a write of two packets", &stats->bad_header, key, first, 2 * mtu);
    wrong.base = (uint64_t)SLOTS * MEMORY_BYTES;
    expect_counted(test, "no such slot", &stats->bad_range, wrong, first, mtu);
    wrong.base = key.base + MEMORY_BYTES;
    expect_counted(test, "no receive posted", &stats->rx_late_packets, wrong, 3u << 22, mtu);
    check_memory(test, 0, 0);
    fetch(test, 2, 0, 4);
    test->fabric->ops->slot_unbind(test->endpoint, 2);
    check_memory(test, bytes, 77);
}

/* We send a write that must come to nothing, and behind it on the same way one that arrives. */
static void expect_nothing(struct test *test, const char *what, const struct fabric_write *wrong,
                           const struct fabric_write *right, uint32_t bytes, uint32_t seed)
{
    tell(test, "clear 0");
    post(test, wrong);
    post(test, right);
    if (lacks(test, 0, 64, 1) != ~(uint64_t)1)
        die("%s: what came is not packet 0 alone", what);
    expect(tell(test, "check-all %u %u", bytes, seed), "same", what);
    printf("to verbs, %s: nothing, and the next arrives\n", what);
}

/* A write that finds no receive posted. */
static void find_no_receive(struct test *test, const struct fabric_write *right, struct fabric_write wrong,
                            uint32_t bytes, uint32_t seed)
{
    tell(test, "clear 0");
    for (uint32_t left = RECEIVES; left > 0; left = (uint32_t)strtoul(tell(test, "left"), NULL, 10)) {
        uint32_t count = left < WINDOW ? left : WINDOW;
        for (uint32_t i = 0; i < count; i++)
            post(test, right);
        there_took(test, 0);
    }
    wrong.va = right->va + bytes;
    post(test, &wrong);
    /* What comes behind it on the same way, for the other queue pair, is heard once it has passed. */
    send_control(test, right->payload, 100, seed);
    expect(tell(test, "poll 0"), "took 0 0", "no receive posted");
    expect(tell(test, "missing 0 2"), "2", "no receive posted");
    tell(test, "post %u", RECEIVES);
    post(test, right);
    expect(tell(test, "poll 1"), "took 1 0", "a receive posted again");
    expect(tell(test, "check-all %u %u", bytes, seed), "same", "no receive posted");
    printf("to verbs, no receive posted: nothing, and once one is, the next arrives\n");
}

/* Wrong writes of ours. The queue pair there must not be harmed. */
static void come_to_nothing(struct test *test)
{
    uint32_t bytes = test->attr.mtu_bytes;
    uint8_t *message = make_message(bytes, 99);
    struct fabric_write right = write_of(test, 0, message, bytes, 0), wrong = right;
    wrong.immediate = immediate_join(test->attr.split, (struct immediate_fields){0, 1, 0});
    wrong.rkey ^= 0x100;
    expect_nothing(test, "wrong key", &wrong, &right, bytes, 99);
    wrong.rkey = right.rkey;
    wrong.va = test->there_va + AREAS * MEMORY_BYTES - bytes + 1;
    expect_nothing(test, "out of range", &wrong, &right, bytes, 99);
    find_no_receive(test, &right, wrong, bytes, 99);
    expect(tell(test, "state"), "3", "state of the queue pair");
    free(message);
}

static void accept_peer(struct test *test, const char *address, const char *port, char *from)
{
    bool v6 = strchr(address, ':') != NULL;
    union udp_address here;
    if (udp_address_parse(address, &here) != 0)
        die("%s", lh_last_error());
    udp_address_set_port(&here, (uint16_t)atoi(port));
    int one = 1, listener = socket(here.any.sa_family, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, &here.any, udp_address_size(&here)) != 0 || listen(listener, 1) != 0)
        die("%s port %s: %m", address, port);
    union udp_address there;
    socklen_t size = sizeof there;
    int fd = accept(listener, &there.any, &size);
    if (fd < 0)
        die("accept: %m");
    inet_ntop(here.any.sa_family, v6 ? (void *)&there.v6.sin6_addr : (void *)&there.v4.sin_addr, from,
              WORDS_MAX);
    close(listener);
    test->in = fdopen(fd, "r");
    test->out = fdopen(dup(fd), "w");
    setvbuf(test->out, NULL, _IOLBF, 0);
}

int main(int argc, char **argv)
{
    static struct test test;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 3)
        die("usage: udp_peer ADDRESS PORT [lossy]");
    bool lossy = argc > 3 && strcmp(argv[3], "lossy") == 0;
    char from[WORDS_MAX], line[WORDS_MAX];
    accept_peer(&test, argv[1], argv[2], from);
    uint32_t data, control, mtu;
    if (fgets(line, sizeof line, test.in) == NULL ||
        sscanf(line, "%u %u %" SCNx32 " %" SCNx64 " %u", &data, &control, &test.there_rkey, &test.there_va,
               &mtu) != 5)
        die("the peer does not say where it is");
    open_endpoint(&test, argv[1], mtu);
    connect_endpoint(&test, from, data, control);
    struct qp_info_endpoint info;
    test.fabric->ops->endpoint_info(test.endpoint, &info);
    expect(tell(&test, "%u %u", info.qpn[0][0], info.control_qpn), "ok", "connecting");
    printf("%s to %s, RoCE MTU %u\n", argv[1], from, mtu);

    tell(&test, "post %u", RECEIVES);
    const uint32_t lengths[] = {150 * mtu + 5, 1, mtu, 64 * mtu - 1};
    for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        receive_message(&test, i, lengths[i], 10 + i);
        send_message(&test, i, lengths[i], 20 + i);
    }
    exchange_control(&test, 60, 5);
    exchange_control(&test, CONTROL_MESSAGE_MAX, 6);
    if (lh_stats_bad_packets(&test.stats) != 0)
        die("%" PRIu64 " packets counted as bad", lh_stats_bad_packets(&test.stats));
    if (!lossy) {
        refuse_wrong_writes(&test);
        come_to_nothing(&test);
        receive_message(&test, 5, lengths[0], 30);
    }
    fprintf(test.out, "quit\n");
    test.fabric->ops->endpoint_destroy(test.endpoint);
    test.fabric->ops->close(test.fabric);
    free(test.guarded);
    printf("all as it should be\n");
    return 0;
}
