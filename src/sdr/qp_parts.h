/*
 * qp_parts.h - the parts of a QP: its controller, the path's MTU, control messages, rounds of its channels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_QP_PARTS_H
#define LH_SDR_QP_PARTS_H

#include "sdr/qp.h"
#include "sdr/qp_path.h"
#include "sdr/run_queue.h"
#include "sdr/sdr_state.h"

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

/* ---- the path's MTU: see qp_path.h ---- */

/* Timers; then probes may be due. Returns when they expire next. */
lh_time qp_path_mtu_round(struct sdr_qp *qp, lh_time now);
bool qp_path_mtu_take_probe(struct sdr_qp *qp, struct control_probe *probe);
/* The peer answered one: packets may be longer or shorter from now on. */
void qp_path_mtu_on_answer(struct sdr_qp *qp, const struct control_probe *probed, lh_time now);
/* A probe of the peer arrived. Returns its length as a shift, path_mtu.lengths or more if it has none. */
uint32_t qp_path_mtu_probed(struct sdr_qp *qp, const struct control_probe *probe, lh_time now);

/* ---- qp control ------------------------------------------------------------------------------------ */

/* The control half of a QP: messages from and to the peer, timers, the driver's step. */

/* A round of the control worker is a poll, for messages from the peer, and what follows from them. Returns
 * whether there were any. */
bool qp_control_poll(struct sdr_qp *qp, lh_time now);
/* After messages came: the driver's step alone. Whether it is to go on in the next round, after the program
 * has seen what it delivered. */
bool qp_control_deliver(struct sdr_qp *qp, lh_time now);
/* The driver's step, and messages to the peer. Returns whether any left; *next is lowered to when the next
 * round is due. */
bool qp_control_act(struct sdr_qp *qp, lh_time now, lh_time *next);
/* Sends a CLOSE that waits, before the QP is destroyed. */
void qp_close_flush(struct sdr_qp *qp);

/* ---- qp round -------------------------------------------------------------------------------------- */

/* One channel of a QP: arrivals into bitmaps, ranges into packets. */

/* The order of a round over the channels index, index + count, ... of a worker: any, where nothing paces. */
void qp_order_channels(const struct sdr_qp *qp, uint32_t index, uint32_t count,
                       struct channel_order *order);
/* Arrivals alone, by the channel's worker. Returns whether there were any; *cost as below. */
bool qp_channel_poll(struct sdr_qp *qp, uint32_t channel, lh_time now, uint64_t *cost);
/* One round, by the channel's worker: a batch of arrivals, and up to `batches` of packets to send. Returns
 * whether anything moved; *order learns what is left, *next is lowered to when the next round is due, *cost
 * raised by what moved (run_queue.h). */
bool qp_channel_round(struct sdr_qp *qp, uint32_t channel, struct channel_order *order, uint32_t batches,
                      lh_time now, lh_time *next, uint64_t *cost);

/* ---- qp send --------------------------------------------------------------------------------------- */

/* qp_parts.h - */

/* ---- sdk warning ----------------------------------------------------------------------------------- */

/*
 * Lines on standard error for programs of the published SDK.
 *
 * sdr.h has no call that could return a warning, and its programs know no other header. So what they should
 * know is printed, each kind once a context. A context of lh_sdr_context_create() prints nothing: its
 * programs have lh_sdr_warning() and lh_sdr_stats().
 */

enum sdk_warning {
    SDK_WARNING_DEFAULTS = 1, /* what fields of zero became */
    SDK_WARNING_POSTED = 2, /* receives exceed the socket buffers, and the kernel granted less than asked */
    SDK_WARNING_SENT = 4,   /* sends exceed the peer's socket buffers */
    SDK_WARNING_ALL = UINT32_MAX, /* of a context that prints nothing */
};

/* Whether that kind is still to be printed; without a lock. */
static inline bool sdk_warning_due(struct sdr_context *context, enum sdk_warning kind)
{
    return !(atomic_load_explicit(&context->warned, memory_order_relaxed) & (uint32_t)kind);
}

/* Prints "longhaul: ..." as one line, unless that kind was printed before. */
void sdk_warn(struct sdr_context *context, enum sdk_warning kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
