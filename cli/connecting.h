/*
 * connecting.h - connecting to somebody who listens.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_CONNECTING_H
#define CLI_CONNECTING_H

#include "address.h"

#include <longhaul/connection.h>

/* Connects. wait_ns: how long to try; 0: the default, and as long as
 * the peer reports that it is busy, which is said once. CLI_PROCEED, or says why not: an exit status. */
int cli_connect(const struct cli_address *address, const struct lh_attr *attr, lh_time wait_ns,
                struct lh_connection **connection);

#endif
