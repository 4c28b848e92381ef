/*
 * link.h - link emulation: wraps any fabric at the sending side, so that its packets cross an ocean first.
 *
 * Protocol code cannot tell: it is a fabric like any other. Data and control pass the same bottleneck. Payload is
 * copied when it is taken, so the sender's buffer may be reused as on hardware. Deterministic from the
 * link's seed for a given order of calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_LINK_H
#define LH_FABRIC_LINK_H

#include <longhaul/link.h>

#include "fabric/fabric.h"

/* Takes ownership of `inner` on success. Every endpoint created through the result has a link of its own. */
int fabric_link_open(struct fabric *inner, const struct lh_link_spec *spec, struct fabric **fabric);
/* Changes the spec of one endpoint's link while it runs (packets on the way keep their fate). */
void fabric_link_set(struct fabric_endpoint *endpoint, const struct lh_link_spec *spec);

#endif
