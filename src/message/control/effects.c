/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/control/effects.h"

#include <stdio.h>

void effects_finish(struct effects *effects, struct message_request *request, int error, uint64_t bytes,
                    lh_time now)
{
    request->result.error = error;
    request->result.bytes = bytes;
    request->result.ended_ns = now;
    request->next = NULL;
    if (effects->finished)
        effects->last->next = request;
    else
        effects->finished = request;
    effects->last = request;
}

void effects_fail(struct effects *effects, enum lh_error error, const char *reason)
{
    if (effects->failure)
        return;
    effects->failure = (int)error;
    snprintf(effects->reason, sizeof effects->reason, "%s", reason);
}
