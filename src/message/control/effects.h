/*
 * effects.h - what a part (sending, receiving) wants its engine to do. The part appends; the engine carries
 * it out when the part's call has returned, and clears it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_EFFECTS_H
#define LH_MESSAGE_CONTROL_EFFECTS_H

#include <longhaul/connection.h>

#include "store/store.h"

#define MESSAGES_MAX ((uint32_t)LH_REQUESTS_MAX) /* not over yet, in each direction; a power of two */
#define REASON_MAX   256u

/* What came of a message with a deadline, when something is missing. */
struct message_delivery {
    enum lh_end end;
    uint32_t packet_bytes;
    uint64_t *arrived; /* a bit a packet of the message; NULL: nothing came, or nothing is missing */
};

/* What a part knows of a request. */
struct message_request {
    struct lh_result result;
    struct message_delivery delivery; /* its memory is the request's: freed with it */
    struct message_request *next;     /* once it is done; or while it is free */
    bool own;                         /* of the library itself: it is no lh_request */
};

struct effects {
    struct message_request *finished; /* the first request that is done; or NULL */
    struct message_request *last;     /* of those */
    int failure;  /* 0, or the positive lh_error that ends the connection; the part does nothing more */
    char *reason; /* REASON_MAX, from the store, by whose owner it is given back; or NULL */
    struct store *store;
};

void effects_finish(struct effects *effects, struct message_request *request, int error, uint64_t bytes,
                    lh_time now);
/* The text of the failure. */
const char *effects_reason(const struct effects *effects);
/* The first failure stays. */
void effects_fail(struct effects *effects, enum lh_error error, const char *reason);

#endif
