/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/qpn_table.h"

#include <stdlib.h>

#include "base/error.h"
#include "fabric/random.h"
#include "wire/roce.h"

#define CAPACITY_MIN 64u
#define CAPACITY_MAX (1u << 22) /* a quarter of all QPNs; random picks still succeed at once */

/* 0 and 1 are the management queue pairs, all ones means multicast. */
static bool qpn_is_usable(uint32_t qpn)
{
    return qpn > 1 && qpn < ROCE_QPN_MASK;
}

/* Where the entry of a QPN is or would be; there is always a free place. */
static struct udp_qp *place_of(const struct qpn_table *table, uint32_t qpn)
{
    uint32_t mask = table->capacity - 1;
    uint32_t i = (qpn * 0x9E3779B1u) & mask;
    while (table->entries[i].qpn != 0 && table->entries[i].qpn != qpn)
        i = (i + 1) & mask;
    return &table->entries[i];
}

/* A table of this capacity with all entries save those of one endpoint. */
static int rebuild(struct qpn_table *table, uint32_t capacity, const struct udp_endpoint *without)
{
    struct qpn_table fresh = {calloc(capacity, sizeof *fresh.entries), capacity, 0};
    if (fresh.entries == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a table of %u queue pairs", capacity);
    for (uint32_t i = 0; i < table->capacity; i++) {
        const struct udp_qp *entry = &table->entries[i];
        if (entry->qpn == 0 || entry->qpn > ROCE_QPN_MASK || entry->endpoint == without)
            continue;
        *place_of(&fresh, entry->qpn) = *entry;
        fresh.count++;
    }
    free(table->entries);
    *table = fresh;
    return 0;
}

void qpn_table_free(struct qpn_table *table)
{
    free(table->entries);
    *table = (struct qpn_table){0};
}

int qpn_table_add(struct qpn_table *table, struct udp_qp *qp)
{
    if (2 * (table->count + 1) > table->capacity) {
        uint32_t capacity = table->capacity == 0 ? CAPACITY_MIN : 2 * table->capacity;
        if (capacity > CAPACITY_MAX)
            return lh_fail(LH_ENOMEM, "more than %u queue pairs on one fabric", table->count);
        int error = rebuild(table, capacity, NULL);
        if (error != 0)
            return error;
    }
    uint32_t qpn;
    do { /* at most an eighth of all QPNs are taken */
        int error = fabric_random(&qpn, sizeof qpn);
        if (error != 0)
            return error;
        qpn &= ROCE_QPN_MASK;
    } while (!qpn_is_usable(qpn) || qpn_table_find(table, qpn) != NULL);
    qp->qpn = qpn;
    *place_of(table, qpn) = *qp;
    table->count++;
    return 0;
}

const struct udp_qp *qpn_table_find(const struct qpn_table *table, uint32_t qpn)
{
    if (table->capacity == 0 || qpn == 0)
        return NULL;
    const struct udp_qp *entry = place_of(table, qpn);
    return entry->qpn == 0 ? NULL : entry;
}

void qpn_table_remove(struct qpn_table *table, const struct udp_endpoint *endpoint)
{
    if (table->capacity == 0)
        return;
    if (rebuild(table, table->capacity, endpoint) == 0)
        return;
    /* No memory to do it well: leave tombs, which no packet can name since no QPN is beyond 24 bits. */
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].endpoint == endpoint)
            table->entries[i].qpn = UINT32_MAX;
    }
}
