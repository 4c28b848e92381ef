/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/inside.h"

#include "netsim/fabric/sim_endpoint.h"
#include "sdr/qp.h"
#include "sdr/sdr_context.h"

uint16_t inside_qp_ports(struct sdr_qp *qp, uint16_t *count)
{
    struct qp_info_endpoint info;
    qp->endpoint->fabric->ops->endpoint_info(qp->endpoint, &info);
    *count = (uint16_t)(info.channels + 1u);
    return info.channel_port[0];
}

uint32_t inside_qp_bounds(struct sdr_qp *qp, struct inside_bound bounds[INSIDE_BOUNDS_MAX])
{
    uint32_t count = 0;
    uint32_t slots = qp->shape.slots;
    bounds[count++] =
        (struct inside_bound){"messages to send", qp->outbox.head - qp->outbox.tail, QP_MESSAGES_WAITING};
    bounds[count++] =
        (struct inside_bound){"messages heard", qp->inbox.head - qp->inbox.tail, QP_MESSAGES_WAITING};
    bounds[count++] = (struct inside_bound){"free slots", qp->free_count, slots};
    bounds[count++] = (struct inside_bound){"unheard clear-to-sends",
                                            qp->announcer.next - qp->announcer.acked, qp->announcer.size};
    bounds[count++] = (struct inside_bound){
        "unannounced clear-to-sends", qp->announcer.next - qp->announcer.announced, qp->announcer.size};
    bounds[count++] =
        (struct inside_bound){"clear-to-sends to use", qp->cts.received - qp->cts.next_use, qp->cts.size};
    for (uint32_t c = 0; c < qp->channel_count && count < INSIDE_BOUNDS_MAX; c++) {
        const struct send_channel *sends = &qp->channels[c].sends;
        bounds[count++] =
            (struct inside_bound){"ranges of a channel", sends->head - sends->tail, SEND_RANGES_MAX};
    }
    return count;
}

uint64_t inside_qp_window(const struct sdr_qp *qp)
{
    return rate_control_is_on(&qp->rate) ? qp->window_max_bytes : 0;
}

lh_time inside_qp_silence(const struct sdr_qp *qp)
{
    return rate_control_is_on(&qp->rate) ? rate_control_silence_ns(&qp->rate) : 0;
}

uint32_t inside_qp_slot_uses(struct sdr_qp *qp)
{
    const struct sim_endpoint *endpoint = (const struct sim_endpoint *)qp->endpoint;
    uint32_t maximum = endpoint->table.binds;
    for (uint32_t i = 0; endpoint->table.slots != NULL && i < qp->shape.slots; i++)
        if (endpoint->table.slots[i].binds > maximum)
            maximum = endpoint->table.slots[i].binds;
    return maximum;
}

void inside_qp_number(struct sdr_qp *sender, struct sdr_qp *receiver, uint32_t first)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)sender->endpoint;
    receiver->announcer.next = receiver->announcer.announced = receiver->announcer.acked = first;
    sender->cts.next_use = sender->cts.received = first;
    sender->outbox.head = sender->outbox.tail = first;
    sender->inbox.head = sender->inbox.tail = first;
    for (uint32_t i = 0; i <= endpoint->table.attr.channels; i++)
        for (uint32_t g = 0; g < endpoint->table.attr.generations; g++)
            endpoint->paths[i].psn[g] = first & ROCE_PSN_MASK;
}

uint32_t inside_qp_message_leaving(const struct sdr_qp *qp)
{
    return qp->outbox.tail;
}

uint32_t inside_qp_message_next(const struct sdr_qp *qp)
{
    return qp->outbox.head;
}

const struct message_table *inside_qp_table(const struct sdr_qp *qp)
{
    return &qp->table;
}
