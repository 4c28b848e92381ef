/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/checksum.h"

#include <assert.h>

#include "wire/roce.h"

void sim_checksum_init(struct sim_checksum *checksum, uint32_t from, uint16_t source_port, uint32_t to,
                       uint16_t destination_port)
{
    const struct sim_datagram datagram = {
        .from = (uint8_t)from,
        .to = (uint8_t)to,
        .source_port = source_port,
        .destination_port = destination_port,
    };
    *checksum = (struct sim_checksum){.flow = sim_datagram_flow(&datagram)};
}

static uint32_t state_of(struct sim_checksum *checksum, const struct sim_packet *packet)
{
    assert(packet->bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES);
    if (checksum->bytes != packet->bytes) {
        checksum->state = icrc_begin(&checksum->flow, packet->bytes, 0, false);
        checksum->bytes = packet->bytes;
    }
    return icrc_add_header(checksum->state, packet->data, packet->bytes - ROCE_ICRC_BYTES);
}

void sim_checksum_seal(struct sim_checksum *checksum, struct sim_packet *packet)
{
    icrc_store(state_of(checksum, packet), packet->data + packet->bytes - ROCE_ICRC_BYTES);
}

bool sim_checksum_holds(struct sim_checksum *checksum, const struct sim_packet *packet)
{
    assert(packet->source_port == checksum->flow.source_port);
    assert(packet->destination_port == checksum->flow.destination_port);
    uint32_t found = icrc_finish(state_of(checksum, packet));
    return found == icrc_load(packet->data + packet->bytes - ROCE_ICRC_BYTES);
}
