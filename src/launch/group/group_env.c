/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/launch.h>

#include <stdio.h>
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

/* Attributes of connections, completed by what is known here. */
struct completed {
    struct lh_attr inside, across;
};

/* Connections of a group do not measure the MTU of their paths. Across sites there is the link of
 * LONGHAUL_LINK. */
static void complete(const struct launcher_settings *settings, uint32_t mtu_bytes,
                     struct lh_group_attr *attr, struct completed *completed)
{
    lh_attr_init(&completed->inside);
    if (attr->attr)
        completed->inside = *attr->attr;
    completed->across = attr->attr_across ? *attr->attr_across : completed->inside;
    if (!completed->inside.mtu_bytes)
        completed->inside.mtu_bytes = mtu_bytes;
    if (!completed->across.mtu_bytes)
        completed->across.mtu_bytes = mtu_bytes;
    if (!lh_link_is_none(&settings->link)) {
        completed->across.link = settings->link;
        completed->across.link.seed += settings->rank * SEED_STEP;
    }
    attr->attr = &completed->inside;
    attr->attr_across = &completed->across;
}

/* Where a peer cannot be reached, the address that was chosen may be the cause. Not where all are here. */
static int name_device(int error, const char *device)
{
    char cause[512];
    if ((error != -LH_EPEER && error != -LH_ETIMEDOUT) || group_address_is_loopback(device))
        return error;
    snprintf(cause, sizeof cause, "%s", lh_last_error());
    return lh_fail((enum lh_error) - error,
                   "%s; this rank's packets use %s (choose another interface by LONGHAUL_SOCKET_IFNAME)",
                   cause, device);
}

static int create(struct group_meeting *meeting, const struct launcher_settings *settings,
                  const struct lh_group_attr *given, struct lh_group **group)
{
    struct lh_group_attr attr = *given;
    struct completed completed;
    uint32_t mtu_bytes;
    char device[TCP_NAME_MAX];
    attr.rank = settings->rank;
    attr.size = settings->size;
    attr.exchange = group_meeting_exchange;
    attr.exchange_context = meeting;
    if (!attr.site && *settings->site)
        attr.site = settings->site;
    int error = group_address_find(meeting, settings->interfaces, device, sizeof device, &mtu_bytes);
    if (error)
        return error;
    /* A device that the caller chose may lead another way. */
    bool own_way = attr.device || attr.engine;
    if (!attr.device)
        attr.device = device;
    complete(settings, own_way ? 0 : mtu_bytes, &attr, &completed);
    error = lh_group_create(&attr, group);
    return own_way ? error : name_device(error, device);
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

int lh_group_rank_env(uint32_t *rank, uint32_t *size)
{
    struct launcher_settings settings;
    int error = launcher_read(get_variable, NULL, &settings);
    if (error)
        return error;
    *rank = settings.rank;
    *size = settings.size;
    return 0;
}
