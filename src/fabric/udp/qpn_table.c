/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/qpn_table.h"

#include <stdlib.h>

#include "base/error.h"
#include "fabric/random.h"
#include "wire/roce.h"

#define CAPACITY_MIN 64u
#define SPARSE       8u         /* emptier than that it shrinks */
#define CAPACITY_MAX (1u << 22) /* a quarter of all QPNs; random picks still succeed at once */

/* 0 and 1 are the management queue pairs, all ones means multicast. */
static bool qpn_is_usable(uint32_t qpn)
{
    return qpn > 1 && qpn < ROCE_QPN_MASK;
}

/* Where the search for a QPN begins. */
static uint32_t home_of(const struct qpn_table *table, uint32_t qpn)
{
    return (qpn * 0x9E3779B1u) & (table->capacity - 1);
}

/* Where the entry of a QPN is or would be; there is always a free place. */
static struct udp_qp *place_of(const struct qpn_table *table, uint32_t qpn)
{
    uint32_t mask = table->capacity - 1;
    uint32_t i = home_of(table, qpn);
    while (table->entries[i].qpn != 0 && table->entries[i].qpn != qpn)
        i = (i + 1) & mask;
    return &table->entries[i];
}

/* A table of this capacity with all entries. */
static int rebuild(struct qpn_table *table, uint32_t capacity)
{
    struct qpn_table fresh = {calloc(capacity, sizeof *fresh.entries), capacity, table->count};
    if (fresh.entries == NULL)
        return lh_fail(LH_ENOMEM, "no memory for a table of %u queue pairs", capacity);
    for (uint32_t i = 0; i < table->capacity; i++)
        if (table->entries[i].qpn != 0)
            *place_of(&fresh, table->entries[i].qpn) = table->entries[i];
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
    if (4 * (table->count + 1) > 3 * table->capacity) {
        uint32_t capacity = table->capacity == 0 ? CAPACITY_MIN : 2 * table->capacity;
        if (capacity > CAPACITY_MAX)
            return lh_fail(LH_ENOMEM, "more than %u queue pairs on one fabric", table->count);
        int error = rebuild(table, capacity);
        if (error != 0)
            return error;
    }
    uint32_t qpn;
    do { /* at most three sixteenths of all QPNs are taken */
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

/* The place became free: entries behind it that a search would no longer reach move up. */
static void close_gap(struct qpn_table *table, uint32_t gap)
{
    uint32_t mask = table->capacity - 1;
    for (uint32_t i = (gap + 1) & mask; table->entries[i].qpn != 0; i = (i + 1) & mask) {
        uint32_t from_home = (i - home_of(table, table->entries[i].qpn)) & mask;
        if (from_home < ((i - gap) & mask))
            continue;
        table->entries[gap] = table->entries[i];
        table->entries[i] = (struct udp_qp){0};
        gap = i;
    }
}

void qpn_table_remove(struct qpn_table *table, uint32_t qpn)
{
    if (table->capacity == 0 || qpn == 0)
        return;
    struct udp_qp *entry = place_of(table, qpn);
    if (entry->qpn == 0)
        return;
    *entry = (struct udp_qp){0};
    close_gap(table, (uint32_t)(entry - table->entries));
    table->count--;
    if (table->capacity > CAPACITY_MIN && table->count < table->capacity / SPARSE)
        (void)rebuild(table, table->capacity / 2); /* without memory it stays as it is */
}
