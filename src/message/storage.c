/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/storage.h"

#include <stdlib.h>

#include "base/error.h"
#include "message/rx/auto_scheme.h"

#define MACHINE_ALIGNMENT 64u

static size_t rounded_up(size_t bytes)
{
    return (bytes + MACHINE_ALIGNMENT - 1) / MACHINE_ALIGNMENT * MACHINE_ALIGNMENT;
}

static int take_tx(struct sender_memory *tx, const struct lh_attr *attr, uint32_t chunks)
{
    tx->machine_bytes = rounded_up(scheme_sender_bytes_max(attr->scheme, chunks));
    tx->messages = calloc(MESSAGES_MAX, sizeof *tx->messages);
    tx->segments = calloc(attr->slots, sizeof *tx->segments);
    tx->held = calloc(HELD_MAX, sizeof *tx->held);
    tx->ending = calloc(2 * (size_t)attr->slots, sizeof *tx->ending);
    tx->machines = aligned_alloc(MACHINE_ALIGNMENT, attr->slots * tx->machine_bytes);
    if (!tx->messages || !tx->segments || !tx->held || !tx->ending || !tx->machines)
        return lh_fail(LH_ENOMEM, "no memory for %u senders of %zu bytes", attr->slots, tx->machine_bytes);
    return 0;
}

static int take_rx(struct receiver_memory *rx, const struct lh_attr *attr,
                   const struct scheme_choice *choice, uint32_t chunks)
{
    if (choice->automatic && !(rx->automatic = calloc(1, sizeof *rx->automatic)))
        return lh_fail(LH_ENOMEM, "no memory to choose schemes with");
    rx->machine_bytes = rounded_up(scheme_receiver_bytes_max(choice, chunks));
    rx->messages = calloc(MESSAGES_MAX, sizeof *rx->messages);
    rx->segments = calloc(attr->slots, sizeof *rx->segments);
    rx->machines = aligned_alloc(MACHINE_ALIGNMENT, attr->slots * rx->machine_bytes);
    if (!rx->messages || !rx->segments || !rx->machines)
        return lh_fail(LH_ENOMEM, "no memory for %u receivers of %zu bytes", attr->slots,
                       rx->machine_bytes);
    return 0;
}

int storage_take(struct storage *storage, const struct lh_attr *attr, const struct scheme_choice *choice)
{
    uint32_t chunks = (uint32_t)(attr->slot_bytes / attr->chunk_bytes);
    int error = take_tx(&storage->tx, attr, chunks);
    return error ? error : take_rx(&storage->rx, attr, choice, chunks);
}

void storage_free(struct storage *storage)
{
    free(storage->tx.messages);
    free(storage->tx.segments);
    free(storage->tx.held);
    free(storage->tx.ending);
    free(storage->tx.machines);
    free(storage->rx.automatic);
    free(storage->rx.messages);
    free(storage->rx.segments);
    free(storage->rx.machines);
}
