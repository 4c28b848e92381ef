/*
 * blob.h - what an endpoint brings to its peer: magic 4 ("LHC1") | version 2 | zero 2 | the QP's info.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_BLOB_H
#define LH_MESSAGE_BLOB_H

#include "wire/qp_info.h"

#define BLOB_HEADER_BYTES 8u

/* -LH_EHANDSHAKE, -LH_EVERSION. */
int blob_decode(const uint8_t *blob, size_t bytes, struct qp_info *info);

#endif
