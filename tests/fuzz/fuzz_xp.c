/*
 * fuzz_xp.c - packets of any kind for a NIC with XP: what is decoded encodes to the same, nothing outside
 * of buffers and regions changes, and each operation completes once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <string.h>

#include "fuzz_input.h"
#include "unit/xp/nic_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GUARD 64u
#define BYTES 1024u

static struct nic_pair pair;
static uint8_t buffer[GUARD + BYTES + GUARD], region[GUARD + BYTES + GUARD];

static void check_guards(const uint8_t *memory)
{
    for (unsigned i = 0; i < GUARD; i++)
        assert(memory[i] == 0xA5 && memory[GUARD + BYTES + i] == 0xA5);
}

/* An operation of the NIC under test, or time that passes. */
static void act(struct input *input, uint32_t qpn, unsigned *posted)
{
    struct xp_nic *nic = &pair.nics[0];
    struct xp_departure departure;
    uint8_t what = take8(input);
    const struct lh_xp_request request = {.verb = (enum lh_xp_verb)(what % 5),
                                          .buffer = buffer + GUARD,
                                          .bytes = take32(input) % (BYTES + 1),
                                          .timeout_ns = LH_NS_PER_MS};
    if (what < 128)
        *posted += xp_nic_post(nic, qpn, &request, pair.now) == 0;
    else
        pair.now += take_scaled(input) % LH_NS_PER_S;
    xp_nic_expire(nic, pair.now);
    while (xp_nic_transmit(nic, pair.now, &departure))
        assert(departure.packet.payload_bytes <= PAIR_MTU);
}

/* The header comes from the input, the numbers that only the peer knows are right: else nothing ever
 * passes. */
static void arrive(struct input *input, uint32_t qpn, uint32_t key)
{
    uint8_t wire[XP_OVERHEAD + PAIR_MTU] = {0}, again[XP_HEADER_BYTES];
    struct xp_packet packet;
    const struct xp_transport *transport = &pair.nics[0].memory.qps[qpn - 1].transport;
    for (unsigned i = 0; i < XP_HEADER_BYTES; i++)
        wire[i] = take8(input);
    uint8_t help = take8(input);
    size_t bytes = XP_OVERHEAD + (size_t)take8(input);
    if (xp_decode(wire, bytes, &packet) != ROCE_OK)
        return;
    xp_encode_header(&packet, again);
    assert(again[0] == wire[0] &&
           memcmp(again + ROCE_BTH_BYTES, wire + ROCE_BTH_BYTES, XP_XPETH_BYTES) == 0);
    packet.dest_qpn = help & 1 ? qpn : packet.dest_qpn;
    packet.wqe_seq = help & 2 ? (transport->rx_seq + (help >> 6)) & XP_SEQ_MASK : packet.wqe_seq;
    packet.wqe_seq = help & 4 ? transport->tx_seq : packet.wqe_seq;
    packet.receive = help & 8 ? transport->rx_receive : packet.receive;
    packet.key = help & 16 ? key : packet.key;
    xp_nic_arrive(&pair.nics[0], 7, &packet, help & 32, pair.now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct lh_xp_completion completion;
    unsigned posted = 0, completed = 0;
    uint32_t key;
    memset(buffer, 0xA5, sizeof buffer);
    memset(region, 0xA5, sizeof region);
    pair_start(&pair, 0);
    uint32_t qpn = pair_connect(&pair, take32(&input) & XP_SEQ_MASK, take32(&input) & XP_SEQ_MASK);
    if (xp_nic_expose(&pair.nics[0], region + GUARD, BYTES, LH_XP_REMOTE_WRITE | LH_XP_REMOTE_READ, 7,
                      &key))
        return 0;
    while (input.left > 0) {
        if (take8(&input) % 3 == 0)
            act(&input, qpn, &posted);
        else
            arrive(&input, qpn, key);
        while (xp_nic_poll(&pair.nics[0], &completion, 1))
            completed++;
        assert(completed <= posted);
    }
    xp_nic_close(&pair.nics[0], qpn);
    while (xp_nic_poll(&pair.nics[0], &completion, 1))
        completed++;
    assert(completed == posted);
    check_guards(buffer);
    check_guards(region);
    return 0;
}
