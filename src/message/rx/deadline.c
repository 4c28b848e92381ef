/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/deadline.h"

#include "base/earlier.h"
#include "base/least.h"
#include "message/rx/decoding.h"
#include "message/rx/messages.h"
#include "message/rx/partial.h"

static bool waits(const struct rx *rx, const struct rx_message *message)
{
    return message->state == RX_OPEN && !rx_is_carried(rx, message) && message->capacity > 0;
}

/* The one whose deadline counted has ended. */
static void on_active_ended(struct rx *rx, lh_time now)
{
    if (rx->active_at != 0 && rx->active_bytes != MESSAGE_BYTES_UNKNOWN)
        auto_deadline_on_end(&rx->automatic_deadline,
                             now > rx->active_since_ns ? now - rx->active_since_ns : 0, rx->active_bytes);
    if (rx->active_at != 0)
        rx->active_since_ns = now;
    rx->active_at = 0;
    rx->active_bytes = MESSAGE_BYTES_UNKNOWN;
}

/* The first message that waits; NULL: none does. */
static struct rx_message *active_message(struct rx *rx, lh_time now)
{
    if (rx->active - rx->oldest > rx->next - rx->oldest) { /* it has retired */
        on_active_ended(rx, now);
        rx->active = rx->oldest;
    }
    for (; rx->active != rx->next; rx->active++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, rx->active);
        if (waits(rx, message))
            return message;
        on_active_ended(rx, now);
    }
    return NULL;
}

static lh_time deadline_of(const struct rx *rx, const struct rx_message *message)
{
    lh_time ns = rx->choice.scheme->deadline(rx->choice.params);
    if (ns != LH_DEADLINE_AUTO)
        return ns;
    return auto_deadline_of(&rx->automatic_deadline, message->capacity, rx->path->rtt_ns,
                            rx->attr->peer_timeout_ns / 2);
}

static void set_expiry(struct rx *rx, const struct rx_message *message)
{
    rx->active_since_ns = lh_most(message->request->result.started_ns, rx->active_since_ns);
    lh_time ns = deadline_of(rx, message);
    rx->active_at = ns == LH_DEADLINE_NONE ? LH_TIME_NEVER : rx->active_since_ns + ns;
}

/* Delivers it as it is: what is not posted yet never will be. */
static void end_message(struct rx *rx, struct rx_message *message, lh_time now)
{
    uint32_t number = message->number;
    message->cut = message->bytes == MESSAGE_BYTES_UNKNOWN || message->posted < message->segments;
    message->end = LH_END_DEADLINE;
    message->guessed = message->bytes == MESSAGE_BYTES_UNKNOWN;
    if (message->guessed)
        message->bytes = message->capacity;
    message->segments = (uint32_t)lh_least(message->posted, message->segments);
    if (message->done == message->segments) {
        rx_deliver_message(rx, message, now);
        return;
    }
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->message == number)
            decoding_segment_partial(rx, segment, LH_END_DEADLINE, now);
    }
}

/* The message whose deadline has passed; NULL: none's has, or what is decoded ends it. */
static struct rx_message *due_message(struct rx *rx, lh_time now, lh_time *next)
{
    struct rx_message *message = partial_is_allowed(rx) ? active_message(rx, now) : NULL;
    if (!message)
        return NULL;
    if (rx->active_at == 0)
        set_expiry(rx, message);
    if (rx->active_at > now)
        lh_keep_earlier(next, rx->active_at);
    return rx->active_at > now || message->end == LH_END_DEADLINE ? NULL : message;
}

void deadline_step(struct rx *rx, lh_time now, lh_time *next)
{
    struct rx_message *message;
    while ((message = due_message(rx, now, next)) != NULL) /* at most one for each message */
        end_message(rx, message, now);
}

void deadline_on_posted(struct rx *rx, lh_time now, lh_time *next)
{
    if (due_message(rx, now, next))
        lh_keep_earlier(next, now);
}

bool deadline_waits(const struct rx *rx)
{
    return partial_is_allowed(rx) && rx->oldest != rx->next;
}

void deadline_end_some(struct rx *rx, deadline_ends *ends, const void *context, lh_time now)
{
    if (!partial_is_allowed(rx))
        return;
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (waits(rx, message) && message->bytes != MESSAGE_BYTES_UNKNOWN &&
            message->end != LH_END_DEADLINE && ends(context, message->tag))
            end_message(rx, message, now);
    }
    decoding_finish(rx, now);
}

static bool has_begun(const struct rx *rx, const struct rx_message *message)
{
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        const struct rx_segment *segment = rx_segment_at(rx, n);
        bool own = segment->message == message->number && segment->state != SEGMENT_FREE;
        if (own && segment->last_arrival_ns != LH_TIME_NEVER && segment->last_arrival_ns != 0)
            return true;
    }
    return message->done > 0;
}

void deadline_on_closed(struct rx *rx, lh_time now)
{
    if (!partial_is_allowed(rx))
        return;
    for (uint32_t n = rx->oldest; n != rx->next; n++) { /* at most MESSAGES_MAX */
        struct rx_message *message = rx_message_at(rx, n);
        if (waits(rx, message) && message->bytes != MESSAGE_BYTES_UNKNOWN && has_begun(rx, message))
            end_message(rx, message, now);
    }
    decoding_finish(rx, now);
}
