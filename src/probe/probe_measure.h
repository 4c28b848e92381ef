/*
 * probe_measure.h - the measurements of a probe: round trip, MTU, loss, rate; its client.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_PROBE_MEASURE_H
#define LH_PROBE_PROBE_MEASURE_H

#include "probe/probe_port.h"

struct probe_session {
    struct lh_probe_attr attr;
    lh_time started_ns;
    int tcp;
    uint64_t token;
    struct probe_port port;
    uint32_t round; /* the last that was begun; the first is 1 */
    struct lh_probe_result *result;
};

/* ---- rtt ------------------------------------------------------------------------------------------- */

/* Measures round trips of small packets. */

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_rtt(struct probe_session *session);

/* ---- mtu ------------------------------------------------------------------------------------------- */

/* Measures the path's MTU, and the RoCE MTU that fits it. */

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_mtu(struct probe_session *session);

/* ---- loss ------------------------------------------------------------------------------------------ */

/* Measures loss, reordering and duplication of each payload size. */

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_loss(struct probe_session *session);

/* ---- rate ------------------------------------------------------------------------------------------ */

/* Measures the rate that the path delivers. */

/* Fills in its part of the result. 0, or the error that ends the probe. */
int probe_measure_rate(struct probe_session *session);

/* ---- probe client ---------------------------------------------------------------------------------- */

/* The client of a probe: checks what is asked for, reaches the server, runs the measurements in order. */

/* ---- remember -------------------------------------------------------------------------------------- */

/* Leaves what a probe measured to connections over the same path. */

/* Writes rate and round trip into attr.path_file, where there is one and the rate is that of the path or of
 * the hosts. Failure is no error. */
void probe_remember(const struct probe_session *session);

#endif
