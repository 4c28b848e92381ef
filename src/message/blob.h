/*
 * blob.h - what an endpoint brings to its peer: magic 4 ("LHC1") | version 2 | flags 2 | the QP's info.
 *
 * Flags say what the endpoint understands beyond version 1, whose readers skip them. Those of schemes are in
 * wire/wire_numbers.h (enum wire_announcement): 128.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_BLOB_H
#define LH_MESSAGE_BLOB_H

#include "wire/qp_info.h"

#define BLOB_HEADER_BYTES 8u
#define BLOB_TAGS         1u   /* TO_RECEIVER with a tag */
#define BLOB_EAGER        2u   /* small messages without a clear-to-send */
#define BLOB_MATCH        4u   /* peers whose receives choose messages by their tags */
#define BLOB_MATCHES      8u   /* its own receives do */
#define BLOB_ONESIDED     16u  /* one-sided operations, by an inner connection */
#define BLOB_KEEPALIVE    32u  /* KEEPALIVE of one queue pair for others (control.h) */
#define BLOB_PARTS        64u  /* control messages of a connection in parts (control.h) */
#define BLOB_LONG         256u /* control messages of a connection as long as a packet (control.h) */
#define BLOB_PIECES       512u /* data packets in pieces, and probes of the path's MTU (control.h) */

/* flags: those of the peer, with any that this side does not know. -LH_EHANDSHAKE, -LH_EVERSION. */
int blob_decode(const uint8_t *blob, size_t bytes, struct qp_info *info, uint16_t *flags);

#endif
