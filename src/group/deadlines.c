/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/deadlines.h"

#include "base/error.h"

/* Of a collective. -LH_ENOMEM. */
static int timeout_of(struct lh_group *group, uint32_t collective, struct lh_timeout **timeout)
{
    struct lh_timeout_attr attr;
    *timeout = group->timeouts[collective];
    if (*timeout)
        return 0;
    lh_timeout_attr_init(&attr);
    attr.members = group->size;
    attr.member = group->rank;
    attr.maximum_ns = group->mesh->peer_timeout_ns / 2;
    if (attr.minimum_ns > attr.maximum_ns)
        attr.minimum_ns = attr.maximum_ns;
    int error = lh_timeout_create(&attr, &group->timeouts[collective]);
    *timeout = group->timeouts[collective];
    return error;
}

static bool learns(const struct lh_collective *op)
{
    for (uint32_t r = 0; r < op->group->size && op->bounded; r++)
        if (bounded_hop(op, r) && group_link(op->group, r)->deadline_ns == LH_DEADLINE_AUTO)
            return true;
    return false;
}

/* Over hops that may lose something. */
static uint64_t received_bytes(const struct lh_collective *op)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < op->pieces.receive_count; i++)
        bytes += bounded_hop(op, op->pieces.receives[i].peer) ? op->pieces.receives[i].bytes : 0;
    return bytes;
}

/* To the rank that is sent most: who receives nothing waits for that one. */
static uint64_t sent_bytes(const struct lh_collective *op)
{
    uint64_t most = 0;
    for (uint32_t r = 0; r < op->group->size; r++) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < op->pieces.send_count && bounded_hop(op, r); i++)
            bytes += op->pieces.sends[i].peer == r ? op->pieces.sends[i].bytes : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

int deadlines_begin(struct lh_collective *op)
{
    struct lh_timeout *timeout;
    if (!learns(op))
        return 0;
    int error = timeout_of(op->group, op->layout.collective, &timeout);
    if (error)
        return error;
    uint64_t bytes = received_bytes(op);
    op->bounded->expected = bytes;
    if (bytes == 0)
        bytes = sent_bytes(op);
    group_timeout_begin(timeout, bytes > 0 ? bytes : 1, &op->bounded->learned);
    op->bounded->deadline_ns = op->bounded->learned.timeout_ns;
    return 0;
}

static void propose(struct lh_collective *op, const struct lh_timeout_proposal *proposal)
{
    const struct tag tag = {.group = op->group->id,
                            .kind = TAG_TIMEOUT,
                            .operation = TAG_NO_OPERATION,
                            .piece = op->layout.collective};
    uint8_t body[LH_TIMEOUT_PROPOSAL_BYTES];
    lh_timeout_proposal_encode(proposal, body);
    for (uint32_t r = 0; r < op->group->size; r++)
        if (r != op->group->rank && !group_link(op->group, r)->error)
            link_send_control(group_link(op->group, r), &tag, body,
                              sizeof body); /* one that is lost is no vote */
}

int deadlines_end(struct lh_collective *op)
{
    const struct bounded *bounded = op->bounded;
    struct lh_timeout_proposal proposal;
    struct lh_timeout *timeout;
    uint64_t received = bounded->expected;
    if (!learns(op) || bounded->expected == 0 || bounded->took_ns == 0)
        return 0;
    for (uint32_t r = 0; r < op->group->size; r++)
        received -= bounded->missing[r];
    int error = timeout_of(op->group, op->layout.collective, &timeout);
    if (error)
        return error;
    if (!timeout->warm)
        return received > 0 ? lh_timeout_warm_up(timeout, bounded->took_ns, received) : 0;
    error = group_timeout_end(timeout, &bounded->learned, bounded->took_ns, received, &proposal);
    if (!error)
        propose(op, &proposal);
    return error;
}

int deadlines_on_proposal(struct lh_group *group, uint32_t rank, uint32_t collective, const uint8_t *data,
                          size_t bytes)
{
    struct lh_timeout_proposal proposal;
    struct lh_timeout *timeout;
    if (collective >= COLLECTIVES || lh_timeout_proposal_decode(data, bytes, &proposal) != 0)
        return lh_fail(LH_EPROTOCOL, "rank %u sent a malformed proposal of a timeout", rank);
    int error = timeout_of(group, collective, &timeout);
    if (!error)
        lh_timeout_propose(timeout, rank, &proposal); /* counts those that it refuses */
    return error;
}
