/*
 * qp_rate.h - a QP's controller: its start, reports of the peer and to it, its time; and the length of its
 * packets, by what the path takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_RATE_H
#define LH_SDR_QP_RATE_H

#include "sdr/qp.h"
#include "sdr/qp_plan.h"

/* Before its endpoint. Takes memory, which qp_rate_free() gives back. -LH_EINVAL, -LH_ENOMEM. */
int qp_rate_create(struct sdr_qp *qp, const struct qp_plan *plan);
void qp_rate_free(struct sdr_qp *qp);

/* So much was aborted, and will not leave: what waits behind it may. By a channel's worker, under its
 * gate. */
void qp_rate_on_dropped(struct sdr_qp *qp, uint64_t bytes, lh_time now);

/* The rest by the control worker, under the QP's lock. */

/* The peer's address is proven: sending begins. */
void qp_rate_start(struct sdr_qp *qp, lh_time now);
/* A report of the peer; newest: nothing that it wrote later has been read. False when none was asked for. */
bool qp_rate_on_feedback(struct sdr_qp *qp, const struct control_feedback *feedback, bool newest,
                         lh_time now);
/* What is due by time. Returns when it is next; now, when a channel may go on. */
lh_time qp_rate_round(struct sdr_qp *qp, lh_time now);

/* Packets that the fabric keeps to itself, since their receive is over; when its slot is in use again, and
 * there is one generation, the key tells them. */
static inline uint64_t qp_rate_late(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_late_packets, __ATOMIC_RELAXED) +
           __atomic_load_n(&qp->stats.bad_key, __ATOMIC_RELAXED);
}
/* Whether a report to the peer is due; when one is. */
bool qp_rate_report_due(struct sdr_qp *qp, lh_time now);
lh_time qp_rate_report_next(struct sdr_qp *qp);
struct control_feedback qp_rate_report(struct sdr_qp *qp, lh_time now);
void qp_rate_on_reported(struct sdr_qp *qp, const struct control_feedback *report, lh_time now);

/* ---- the path's MTU: see run/path_mtu.h ---- */

/* Timers; then probes may be due. Returns when they expire next. */
lh_time qp_path_mtu_round(struct sdr_qp *qp, lh_time now);
bool qp_path_mtu_take_probe(struct sdr_qp *qp, struct control_probe *probe);
/* The peer answered one: packets may be longer or shorter from now on. */
void qp_path_mtu_on_answer(struct sdr_qp *qp, const struct control_probe *probed, lh_time now);
/* A probe of the peer arrived. Returns its length as a shift, path_mtu.lengths or more if it has none. */
uint32_t qp_path_mtu_probed(struct sdr_qp *qp, const struct control_probe *probe, lh_time now);

#endif
