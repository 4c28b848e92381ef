/*
 * control_tx.h - hands control messages to the SDR layer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_CONTROL_TX_H
#define LH_MESSAGE_CONTROL_CONTROL_TX_H

#include <longhaul/sdr_ext.h>

#include "wire/transfer.h"

/* False when the queue is full: the message is lost then, as the network may lose it. */
bool control_tx_send(struct sdr_qp *qp, const struct transfer_message *message);
/* REFUSE, CANCEL (error: a positive lh_error, or 0) and FORGET. */
bool control_tx_abort(struct sdr_qp *qp, enum transfer_kind kind, uint32_t number, int error);
/* Bytes of a receiver's machine. */
void control_tx_to_sender(struct sdr_qp *qp, uint32_t segment, const uint8_t *data, uint32_t bytes);

#endif
