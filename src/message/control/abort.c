/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/control/abort.h"

#include "base/earlier.h"
#include "base/error.h"
#include "message/control/timing.h"

#define QUEUE_FULL_FRACTION 8u /* of the interval: a user may cancel thousands of messages at once */

int abort_error(int error)
{
    return lh_error_known(error) ? error : LH_EPROTOCOL;
}

void abort_send(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind, uint32_t number,
                const struct lh_sdr_path *path, lh_time now)
{
    if (control_tx_abort(qp, kind, number, notice->error))
        notice->refresh_at = now + timing_refresh_interval(path, notice->sent++);
    else
        notice->refresh_at = now + timing_refresh_interval(path, 0) / QUEUE_FULL_FRACTION;
}

void abort_on_refresh_expired(struct abort_notice *notice, struct sdr_qp *qp, enum transfer_kind kind,
                              uint32_t number, const struct lh_sdr_path *path, lh_time now, lh_time *next)
{
    if (notice->refresh_at <= now)
        abort_send(notice, qp, kind, number, path, now);
    lh_keep_earlier(next, notice->refresh_at);
}
