/*
 * abort.h - the notice that a message ended early: CANCEL by the sender, REFUSE by the receiver.
 *
 * Timers:
 *   refresh_at   the notice is sent again after an overdue round trip, doubling, until the peer answers; one
 *                that found the queue full, after an eighth of that
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_ABORT_H
#define LH_MESSAGE_CONTROL_ABORT_H

#include "message/control/control_tx.h"

struct abort_notice {
    int error; /* why: a positive lh_error */
    lh_time refresh_at;
    uint32_t sent; /* times */
};

/* The error as a user may see it: a scheme's own or a peer's code must not be taken for success, and users
 * know what lh_strerror() knows. */
int abort_error(int error);
/* Sends the notice of message `number` now, and sets refresh_at. */
void abort_send(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind, uint32_t number,
                const struct lh_sdr_path *path, lh_time now);
/* Sends it again when refresh_at has passed; lowers *next. */
void abort_on_refresh_expired(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind,
                              uint32_t number, const struct lh_sdr_path *path, lh_time now, lh_time *next);

#endif
