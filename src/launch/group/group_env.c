/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/launch.h>

#include <stdlib.h>

#include "base/error.h"
#include "launch/group/group_address.h"
#include "launch/tcp.h"

#define TIMEOUT_DEFAULT_NS (30 * LH_NS_PER_S)
#define TIMEOUT_MAX_NS     (86400 * LH_NS_PER_S)
/* Each rank's links lose packets of their own. */
#define SEED_STEP 0x9E3779B97F4A7C15u

static const char *get_variable(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* Attributes of connections to other sites, with the emulated link of LONGHAUL_LINK. */
static void set_link(const struct launcher_settings *settings, struct lh_group_attr *attr,
                     struct lh_attr *across)
{
    const struct lh_attr *given = attr->attr_across ? attr->attr_across : attr->attr;
    if (lh_link_is_none(&settings->link))
        return;
    lh_attr_init(across);
    if (given)
        *across = *given;
    across->link = settings->link;
    across->link.seed += settings->rank * SEED_STEP;
    attr->attr_across = across;
}

static int create(struct group_meeting *meeting, const struct launcher_settings *settings,
                  const struct lh_group_attr *given, struct lh_group **group)
{
    struct lh_group_attr attr = *given;
    struct lh_attr across;
    char device[TCP_NAME_MAX];
    attr.rank = settings->rank;
    attr.size = settings->size;
    attr.exchange = group_meeting_exchange;
    attr.exchange_context = meeting;
    if (!attr.site && *settings->site)
        attr.site = settings->site;
    set_link(settings, &attr, &across);
    int error = group_address_find(meeting, settings->interfaces, device, sizeof device);
    if (error)
        return error;
    if (!attr.device)
        attr.device = device;
    return lh_group_create(&attr, group);
}

int lh_group_create_env(const struct lh_group_attr *given, struct lh_group **group)
{
    struct launcher_settings settings;
    struct group_meeting meeting;
    struct lh_group_attr attr;
    lh_group_attr_init(&attr);
    if (given && given->struct_bytes != sizeof attr)
        return lh_fail(LH_EINVAL, "lh_group_attr: %zu bytes, %zu expected (call lh_group_attr_init())",
                       given->struct_bytes, sizeof attr);
    if (given)
        attr = *given;
    int error = launcher_read(get_variable, NULL, &settings);
    lh_time timeout_ns = attr.timeout_ns ? attr.timeout_ns : TIMEOUT_DEFAULT_NS;
    if (!error && timeout_ns > TIMEOUT_MAX_NS)
        error = lh_fail(LH_ERANGE, "timeout_ns: out of range (at most a day)");
    if (!error)
        error = group_meeting_open(&settings, timeout_ns, &meeting);
    if (error)
        return error;
    error = create(&meeting, &settings, &attr, group);
    group_meeting_close(&meeting);
    return error;
}
