/*
 * report.h - what an ACK of sr-nack's receiver means for the sender's ledger.
 *
 * Of the chunks that it shows as missing those are lost that lie before the horizon and were injected
 * once, and repairs that lie behind a MARK which the receiver got long enough ago. All others are merely
 * late.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SCHEMES_SR_REPORT_H
#define LH_SCHEMES_SR_REPORT_H

#include "schemes/sr/ledger.h"
#include "schemes/sr/marker.h"
#include "schemes/sr/timing.h"
#include "wire/selective_repeat.h"

/* False for what no receiver of ours can have written. */
bool sr_report_possible(const struct sr_ledger *ledger, const struct sr_marker *marker,
                        const struct sr_ack *ack);
/* Enters what has arrived. ack must be possible. */
void sr_report_arrivals(struct sr_ledger *ledger, const struct sr_ack *ack);
/* Marks as lost what the ACK shows to be, after its arrivals were entered. */
void sr_report_losses(struct sr_ledger *ledger, const struct sr_ack *ack);

#endif
