/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/control/control_tx.h"

bool control_tx_send(struct sdr_qp *qp, const struct transfer_message *message)
{
    uint8_t bytes[TRANSFER_BYTES_MAX];
    return lh_sdr_message_send(qp, bytes, transfer_encode(message, bytes)) == 0;
}

bool control_tx_abort(struct sdr_qp *qp, enum transfer_kind kind, uint32_t number, int error)
{
    struct transfer_message message = {.kind = kind};
    message.body.verdict.message = number;
    message.body.verdict.error = (uint32_t)error;
    return control_tx_send(qp, &message);
}

void control_tx_to_sender(struct sdr_qp *qp, uint32_t segment, const uint8_t *data, uint32_t bytes)
{
    struct transfer_message message = {.kind = TRANSFER_TO_SENDER};
    message.body.to_sender.segment = segment;
    message.body.to_sender.scheme = data;
    message.body.to_sender.scheme_bytes = bytes;
    control_tx_send(qp, &message);
}
