/*
 * failure.h - devices that are lost and queue pairs that fail: recorded where they are seen, reported by
 * the next call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_VERBS_FAILURE_H
#define LH_FABRIC_VERBS_FAILURE_H

#include "fabric/verbs/endpoint/endpoint.h"

/* Ends the fabric, or one endpoint; the first reason stays. */
void verbs_fabric_fail(struct verbs_fabric *fabric, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void verbs_endpoint_fail(struct verbs_endpoint *endpoint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 0, or -LH_EDEVICE with the reason. */
int verbs_endpoint_check(struct verbs_endpoint *endpoint);
/* Reads the events of the device, unless another thread does. */
void verbs_read_events(struct verbs_fabric *fabric);

#endif
