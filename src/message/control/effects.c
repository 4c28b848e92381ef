/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/control/effects.h"

#include <stdio.h>

#include "base/least.h"

void effects_finish(struct effects *effects, struct message_request *request, int error, uint64_t bytes,
                    lh_time now)
{
    request->result.error = error;
    request->result.bytes = bytes;
    /* A round may have begun before the call that started what ends in it. */
    request->result.ended_ns = lh_most(now, request->result.started_ns);
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
    effects->reason = store_try(effects->store, REASON_MAX);
    if (effects->reason)
        snprintf(effects->reason, REASON_MAX, "%s", reason);
}

const char *effects_reason(const struct effects *effects)
{
    return effects->reason ? effects->reason : lh_strerror((enum lh_error)effects->failure);
}
