/*
 * coder.h - what a scheme wants computed: parity to be sent, lost chunks to be recovered.
 *
 * Done by threads of the connection (attr.coders), so that the worker goes on injecting and receiving
 * meanwhile; without threads, or when more jobs wait than there is room for, at once by the caller.
 * All calls are made under the connection's lock, which no job takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONNECTION_CODER_H
#define LH_CONNECTION_CODER_H

#include <longhaul/scheme.h>

struct lh_connection;
struct send_segment;
struct recv_segment;
struct coder;

/* NULL: no memory. Threads start with the first job. */
struct coder *coder_create(struct lh_connection *c);
/* No job may be left: coder_drop and coder_finish see to that. */
void coder_destroy(struct coder *coder);

/* Counts in segment->coded.encoded when it is done and all before it are. */
void coder_encode(struct lh_connection *c, struct send_segment *segment, uint32_t group, uint32_t first_row,
                  uint32_t rows);
/* Recovers all that a complete segment lacks; it must not end before segment->coded.jobs is 0. */
void coder_decode(struct lh_connection *c, struct recv_segment *segment);

/* Whether jobs are done that nobody has seen yet. Cheap; needs no lock. */
bool coder_has_news(const struct coder *coder);
/* Enters what was done. */
void coder_collect(struct lh_connection *c, lh_time now);
/* Nothing is encoded for this segment any more when this returns. */
void coder_drop(struct lh_connection *c, struct send_segment *segment);
/* All that is to be decoded has been when this returns: what the sender was told to have arrived must be
 * handed over, whatever happens to the connection. */
void coder_finish(struct lh_connection *c, lh_time now);

#endif
