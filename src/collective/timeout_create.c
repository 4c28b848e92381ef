/*
 * timeout_create.c - the memory of a group's timeout, and its attributes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "base/error.h"
#include "collective/group_timeout.h"

#define LOSS_TARGET_DEFAULT 0.005
#define LOSS_TARGET_MAX     0.25
#define MINIMUM_DEFAULT_NS  (10 * LH_NS_PER_US)
#define MAXIMUM_DEFAULT_NS  (30 * LH_NS_PER_S)

void lh_timeout_attr_init(struct lh_timeout_attr *attr)
{
    *attr = (struct lh_timeout_attr){.struct_bytes = sizeof *attr,
                                     .loss_target = LOSS_TARGET_DEFAULT,
                                     .minimum_ns = MINIMUM_DEFAULT_NS,
                                     .maximum_ns = MAXIMUM_DEFAULT_NS};
}

static int check(const struct lh_timeout_attr *attr)
{
    if (attr->struct_bytes != sizeof *attr)
        return lh_fail(LH_EINVAL,
                       "struct_bytes %zu: call lh_timeout_attr_init() first (%zu in this library)",
                       attr->struct_bytes, sizeof *attr);
    if (attr->rule != LH_TIMEOUT_MARGIN && attr->rule != LH_TIMEOUT_PAPER)
        return lh_fail(LH_EINVAL, "rule %d: use LH_TIMEOUT_MARGIN or LH_TIMEOUT_PAPER", (int)attr->rule);
    if (attr->members == 0 || attr->members > LH_TIMEOUT_MEMBERS_MAX)
        return lh_fail(LH_EINVAL, "a group of %u members (use 1 to %d)", attr->members,
                       LH_TIMEOUT_MEMBERS_MAX);
    if (attr->member >= attr->members)
        return lh_fail(LH_EINVAL, "member %u of a group of %u (use 0 to %u)", attr->member, attr->members,
                       attr->members - 1);
    if (!(attr->loss_target > 0 && attr->loss_target <= LOSS_TARGET_MAX))
        return lh_fail(LH_EINVAL, "loss target %g (use a share above 0 and up to %g)", attr->loss_target,
                       LOSS_TARGET_MAX);
    if (attr->minimum_ns == 0 || attr->minimum_ns > attr->maximum_ns || attr->maximum_ns == LH_TIME_NEVER)
        return lh_fail(LH_EINVAL, "timeouts of %llu to %llu ns (use bounds above 0, the greater one last)",
                       (unsigned long long)attr->minimum_ns, (unsigned long long)attr->maximum_ns);
    return 0;
}

int lh_timeout_create(const struct lh_timeout_attr *attr, struct lh_timeout **timeout)
{
    int failed = check(attr);
    if (failed)
        return failed;
    struct lh_timeout *created = calloc(1, sizeof *created);
    struct vote *votes = calloc(attr->members, sizeof *votes);
    double *scratch = calloc(attr->members, sizeof *scratch);
    if (!created || !votes || !scratch) {
        free(created);
        free(votes);
        free(scratch);
        return lh_fail(LH_ENOMEM, "no memory for the timeout of a group of %u", attr->members);
    }
    group_timeout_start(created, attr, votes, scratch);
    *timeout = created;
    return 0;
}

void lh_timeout_destroy(struct lh_timeout *timeout)
{
    if (!timeout)
        return;
    free(timeout->votes);
    free(timeout->scratch);
    free(timeout);
}
