/*
 * parity.h - memory for extra chunks (parity), and for segments that lie in several parts of the user's, at
 * both ends: taken as segments need it, kept for the next.
 *
 * A sender learns only from a clear-to-send which code its peer wants, so this memory cannot be taken when
 * the connection is opened. There are never more buffers than two for each segment in flight, and those of
 * aborted ones of which the fabric still reads; each stays registered.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CODING_PARITY_H
#define LH_MESSAGE_CODING_PARITY_H

#include <sdr.h>
#include <sdr_mr.h>

#include <longhaul/types.h>

struct parity_buffer {
    uint8_t *chunks; /* aligned to 64 */
    size_t bytes;    /* of them */
    uint8_t
        *notes; /* behind them: the receiver's copy of the bitmaps while it decodes; the sender's pieces */
    size_t notes_bytes;
    struct sdr_mr *mr; /* of the chunks */
    uint32_t lkey;
    struct parity_buffer *next; /* while unused */
};

struct parity_pool {
    struct sdr_context *context;
    struct store *store;
    struct parity_buffer *unused;
    uint32_t in_use; /* buffers */
};

/* NULL when there is no memory, or it cannot be registered: lh_last_error() says which. */
struct parity_buffer *parity_take(struct parity_pool *pool, size_t bytes, size_t notes_bytes);
/* The same of what the caller can do without: at the limit of the memory it is no refusal of the store. */
struct parity_buffer *parity_try(struct parity_pool *pool, size_t bytes, size_t notes_bytes);
void parity_give(struct parity_pool *pool, struct parity_buffer *buffer);
/* Those that are not in use. */
void parity_give_back(struct parity_pool *pool);
/* All must have been given back. */
void parity_free_all(struct parity_pool *pool);

#endif
