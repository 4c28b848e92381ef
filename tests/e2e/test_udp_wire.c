/*
 * What a RoCE NIC would see of us: each packet is taken off the wire with its IP header, and its iCRC must
 * hold for the very ID and flags in that header. A plain socket cannot check that, since it sees neither.
 *
 * Needs a network namespace of its own (root, or unprivileged user namespaces), where the loopback
 * interface is told not to segment, so that what passes is what a cable would carry. Skipped where that is
 * not allowed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "support/own_network.h"
#include "support/udp_pair.h"

#define SKIPPED 77
#define ECT_0   2 /* of RFC 3168 */
/* Packets between two looks at the tap, whose buffer may be small. */
#define BATCH 8u

static int ethtool(int fd, void *command)
{
    struct ifreq request = {.ifr_name = "lo"};
    request.ifr_data = command;
    return ioctl(fd, SIOCETHTOOL, &request);
}

/* Number of an interface feature, or -1. */
static int feature_number(int fd, const char *name)
{
    struct ethtool_sset_info *set = calloc(1, sizeof *set + sizeof set->data[0]);
    set->cmd = ETHTOOL_GSSET_INFO;
    set->sset_mask = (uint64_t)1 << ETH_SS_FEATURES;
    uint32_t count = ethtool(fd, set) == 0 && set->sset_mask != 0 ? set->data[0] : 0;
    free(set);
    struct ethtool_gstrings *strings = calloc(1, sizeof *strings + (size_t)count * ETH_GSTRING_LEN);
    strings->cmd = ETHTOOL_GSTRINGS;
    strings->string_set = ETH_SS_FEATURES;
    strings->len = count;
    int number = -1;
    for (uint32_t i = 0; ethtool(fd, strings) == 0 && i < count && number < 0; i++) {
        if (strncmp((const char *)strings->data + (size_t)i * ETH_GSTRING_LEN, name, ETH_GSTRING_LEN) == 0)
            number = (int)i;
    }
    free(strings);
    return number;
}

static bool stop_segmenting(int fd)
{
    int number = feature_number(fd, "tx-udp-segmentation");
    if (number < 0)
        return false;
    struct ethtool_sfeatures *set = calloc(1, sizeof *set + 8 * sizeof set->features[0]);
    set->cmd = ETHTOOL_SFEATURES;
    set->size = (uint32_t)number / 32 + 1;
    set->features[number / 32].valid = 1u << (number % 32);
    bool done = ethtool(fd, set) >= 0;
    free(set);
    return done;
}

/* A socket that hears what passes over the loopback interface of a new namespace, or -1. */
static int open_tap(void)
{
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return -1;
    int control = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int tap = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL));
    bool ready =
        control >= 0 && tap >= 0 && ioctl(control, SIOCSIFFLAGS, &request) == 0 && stop_segmenting(control);
    close(control);
    int bytes = 16 << 20;
    setsockopt(tap, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    return ready ? tap : -1;
}

struct seen {
    uint32_t packets;
    uint32_t wrong;
    uint32_t ip_ids; /* IPv4: packets with an ID that is not 0 */
    uint32_t ecn_capable;
};

/* Judges an Ethernet frame as a NIC would. False when it is none of our data packets. */
static bool judge_frame(const uint8_t *frame, size_t bytes, uint16_t port, struct seen *seen)
{
    if (bytes < 14 + 20 + 8)
        return false;
    const uint8_t *ip = frame + 14;
    struct icrc_flow flow = {.ipv4 = ip[0] == 0x45};
    size_t ip_bytes = flow.ipv4 ? 20 : 40;
    memcpy(flow.source, ip + (flow.ipv4 ? 12 : 8), flow.ipv4 ? 4 : 16);
    memcpy(flow.destination, ip + (flow.ipv4 ? 16 : 24), flow.ipv4 ? 4 : 16);
    const uint8_t *udp = ip + ip_bytes;
    flow.source_port = lh_get_be16(udp);
    flow.destination_port = lh_get_be16(udp + 2);
    if (flow.destination_port != port)
        return false;
    uint16_t ip_id = flow.ipv4 ? lh_get_be16(ip + 4) : 0;
    bool dont_fragment = flow.ipv4 && lh_get_be16(ip + 6) == 0x4000;
    const uint8_t *payload = udp + 8;
    uint32_t length = (uint32_t)lh_get_be16(udp + 4) - 8u;
    struct roce_packet packet;
    if (14 + ip_bytes + 8 + length != bytes || roce_decode(payload, length, &packet) != ROCE_OK) {
        seen->wrong++;
        return true;
    }
    uint32_t state = icrc_begin(&flow, length, ip_id, dont_fragment);
    state = icrc_add_header(state, payload, length - ROCE_ICRC_BYTES);
    bool holds = icrc_finish(state) == icrc_load(payload + length - ROCE_ICRC_BYTES);
    seen->wrong += !holds || (flow.ipv4 && !dont_fragment);
    seen->ip_ids += ip_id != 0;
    uint32_t traffic_class = flow.ipv4 ? ip[1] : (uint32_t)lh_get_be16(ip) >> 4 & 0xFF;
    seen->wrong += traffic_class != 0 && traffic_class != ECT_0;
    seen->ecn_capable += traffic_class == ECT_0;
    seen->packets++;
    return true;
}

static void read_tap(int tap, uint16_t port, struct seen *seen)
{
    static uint8_t frame[70000];
    struct sockaddr_ll from;
    socklen_t size = sizeof from;
    ssize_t got;
    while ((got = recvfrom(tap, frame, sizeof frame, 0, (struct sockaddr *)&from, &size)) > 0) {
        if (from.sll_pkttype == PACKET_OUTGOING) /* the loopback interface shows each packet twice */
            judge_frame(frame, (size_t)got, port, seen);
    }
}

static int tap_and_send(const char *device, bool gso, bool ecn)
{
    int tap = open_tap();
    if (tap < 0)
        return SKIPPED;
    struct fabric_endpoint_attr attr = udp_pair_attr();
    attr.ecn_capable = ecn;
    struct udp_pair pair;
    udp_pair_open(&pair, device, &attr);
    struct udp_channel *channel = ((struct udp_endpoint *)pair.sender.endpoint)->channels[0];
    channel->tx.gso = gso;
    struct udp_message *message = udp_pair_bind(&pair, 0, 0, 300 * 4096 + 5);
    struct seen seen = {0};
    for (uint32_t p = 0; p < message->packets; p += BATCH) {
        uint32_t packets[BATCH];
        for (uint32_t i = 0; i < BATCH; i++)
            packets[i] = p + i;
        udp_pair_deliver(&pair, message, packets,
                         message->packets - p < BATCH ? message->packets - p : BATCH);
        read_tap(tap, pair.receiver.info.channel_port[0], &seen);
    }
    udp_message_assert_whole(message);
    bool numbered = seen.ip_ids > 0;
    bool expect_numbered = gso && device[4] != '['; /* "udp:[…": IPv6 has no IDs */
    int failed = seen.packets != 301 || seen.wrong != 0 || numbered != expect_numbered ||
                 channel->tx.gso != gso || seen.ecn_capable != (ecn ? 301 : 0);
    if (failed)
        fprintf(stderr, "%s, GSO %d: %u packets seen, %u wrong, %u with an IP ID, %u ECN-capable\n", device,
                gso, seen.packets, seen.wrong, seen.ip_ids, seen.ecn_capable);
    udp_pair_close(&pair);
    return failed;
}

static void expect_right(const char *device, bool gso, bool ecn)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(tap_and_send(device, gso, ecn));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_ipv6(void **state)
{
    (void)state;
    expect_right("udp:[::1]", true, false);
    expect_right("udp:[::1]", true, true);
    expect_right("udp:[::1]", false, false);
    expect_right("udp:[::1]", false, true);
}

static void test_ipv4(void **state)
{
    (void)state;
    expect_right("udp:127.0.0.1", true, false);
    expect_right("udp:127.0.0.1", true, true);
    expect_right("udp:127.0.0.1", false, false);
    expect_right("udp:127.0.0.1", false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ipv6),
        cmocka_unit_test(test_ipv4),
    };
    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
