/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/address.h"

#include <assert.h>
#include <string.h>

#include "wire/roce.h"

void sim_address_of(uint32_t host, uint8_t address[16])
{
    assert(host < SIM_HOSTS_MAX);
    memset(address, 0, 16);
    address[0] = 0xFD; /* unique local (RFC 4193) */
    address[1] = 0x77;
    address[15] = (uint8_t)host;
}

uint32_t sim_host_of(const uint8_t address[16])
{
    uint8_t expected[16];
    if (address[15] >= SIM_HOSTS_MAX)
        return SIM_HOSTS_MAX;
    sim_address_of(address[15], expected);
    return memcmp(address, expected, sizeof(expected)) == 0 ? address[15] : SIM_HOSTS_MAX;
}

struct icrc_flow sim_datagram_flow(const struct sim_datagram *datagram)
{
    struct icrc_flow flow = {
        .source_port = datagram->source_port,
        .destination_port = datagram->destination_port,
    };
    sim_address_of(datagram->from, flow.source);
    sim_address_of(datagram->to, flow.destination);
    return flow;
}

void sim_datagram_seal(struct sim_datagram *datagram)
{
    assert(datagram->bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES && datagram->bytes <= SIM_DATAGRAM_MAX);
    struct icrc_flow flow = sim_datagram_flow(datagram);
    uint32_t covered = datagram->bytes - ROCE_ICRC_BYTES;
    uint32_t state = icrc_begin(&flow, datagram->bytes, 0, false);
    icrc_store(icrc_add_header(state, datagram->data, covered), datagram->data + covered);
}
