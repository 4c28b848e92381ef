/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/bounded_lane.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "message/scheme/scheme_choice.h"

#define DEADLINE "deadline="

/* The text without its deadline. */
static int without_deadline(const char *text, char *out, size_t size)
{
    size_t name = strcspn(text, ":,");
    int used = snprintf(out, size, "%.*s:" DEADLINE "none", (int)name, text);
    text += name;
    while (*text) { /* each turn takes an item */
        size_t bytes = strcspn(++text, ",");
        if (strncmp(text, DEADLINE, sizeof DEADLINE - 1) != 0 && used > 0 && (size_t)used < size)
            used += snprintf(out + used, size - (size_t)used, ",%.*s", (int)bytes, text);
        text += bytes;
    }
    if (used > 0 && (size_t)used < size)
        return 0;
    return lh_fail(LH_EINVAL, "group: reliability \"%.40s…\": too long", text);
}

int bounded_lane_of(const struct lh_attr *attr, lh_time peer_timeout_ns, struct bounded_lane *lane)
{
    struct scheme_choice choice;
    *lane = (struct bounded_lane){.exists = false};
    int error = scheme_choose(attr, &choice);
    if (error || !choice.scheme->deadline || choice.automatic)
        return error;
    if (choice.scheme == attr->scheme)
        return lh_fail(LH_EINVAL,
                       "group: %s: a scheme of your own that delivers parts of messages (use bounded)",
                       choice.scheme->name);
    lane->exists = true;
    lane->deadline_ns = choice.scheme->deadline(choice.params);
    if (lane->deadline_ns >= peer_timeout_ns && lane->deadline_ns != LH_DEADLINE_NONE)
        return lh_fail(LH_EINVAL,
                       "group: %s: use a deadline below the peer timeout (%llu ms), or raise that",
                       attr->reliability, (unsigned long long)(peer_timeout_ns / LH_NS_PER_MS));
    return without_deadline(attr->reliability, lane->reliability, sizeof lane->reliability);
}
