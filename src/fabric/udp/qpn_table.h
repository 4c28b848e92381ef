/*
 * qpn_table.h - which endpoint and which of its queue pairs has a QPN: for what arrives at the shared port.
 *
 * Open addressing with linear probing. Grows in set-up calls only; look-ups allocate nothing. What is added
 * and removed costs the same, however many there are, but for a table that grows or shrinks by half.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_QPN_TABLE_H
#define LH_FABRIC_UDP_QPN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct udp_endpoint;

/* The channel of a control QP. */
#define UDP_QP_CONTROL UINT8_MAX

struct udp_qp {
    uint32_t qpn; /* 0: no entry */
    uint8_t channel;
    uint8_t generation;
    struct udp_endpoint *endpoint;
};

struct qpn_table {
    struct udp_qp *entries;
    uint32_t capacity; /* 0 or a power of two, at least 4/3 of the count */
    uint32_t count;
};

/* All zero is the empty table. */
void qpn_table_free(struct qpn_table *table);
/* Picks a random free QPN, puts the entry in and returns its QPN in qp->qpn. -LH_ENOMEM,
 * -LH_ESYSTEM. */
int qpn_table_add(struct qpn_table *table, struct udp_qp *qp);
/* NULL when it is free. Valid until the next change. */
const struct udp_qp *qpn_table_find(const struct qpn_table *table, uint32_t qpn);
/* Takes it out; the others may move. One that is not there, such as 0, is no harm. */
void qpn_table_remove(struct qpn_table *table, uint32_t qpn);

#endif
