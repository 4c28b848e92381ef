/*
 * remember.h - leaves what a probe measured to connections over the same path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PROBE_REMEMBER_H
#define LH_PROBE_REMEMBER_H

#include "probe/session.h"

/* Writes rate and round trip into attr.path_file, where there is one and the rate is that of the path or of
 * the hosts. Failure is no error. */
void probe_remember(const struct probe_session *session);

#endif
