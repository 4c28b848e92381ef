/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/settings/plugin_settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* That of the library. */
#define PEER_TIMEOUT_DEFAULT_NS (10 * LH_NS_PER_S)
#define PEER_TIMEOUT_MAX_NS     (24 * 3600 * LH_NS_PER_S)

/* Those of an engine. */
#define RATE_MIN UINT64_C(1000000)
#define RATE_MAX UINT64_C(100000000000000)

#define BOUNDED "bounded"

/* ---- variables ----------------------------------------------------------------------------------------- */

static int refuse(const char *variable, const char *value, const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "%s: \"%.100s\": %.300s", variable, value, why);
    return lh_error_set(LH_EINVAL, text);
}

/* `error`: of the library's call that parsed the value. */
static int judge(const char *variable, const char *value, int error)
{
    char why[512];
    if (!error)
        return 0;
    snprintf(why, sizeof why, "%s", lh_last_error());
    return refuse(variable, value, why);
}

/* NULL: not set. */
static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

int plugin_read_text(const char *variable, char *out, size_t bytes)
{
    const char *value = value_of(variable);
    char why[64];
    if (!value)
        return 0;
    snprintf(why, sizeof why, "too long (use at most %zu characters)", bytes - 1);
    if (strlen(value) >= bytes)
        return refuse(variable, value, why);
    strcpy(out, value); // NOLINT: the length is checked
    return 0;
}

int plugin_read_size(const char *variable, uint64_t min, uint64_t max, const char *range, uint64_t *out)
{
    const char *value = value_of(variable);
    uint64_t bytes = 0;
    if (!value)
        return 0;
    int error = judge(variable, value, lh_parse_size(value, &bytes));
    if (!error && (bytes < min || bytes > max))
        error = refuse(variable, value, range);
    if (!error)
        *out = bytes;
    return error;
}

int plugin_read_time(const char *variable, lh_time max, const char *range, lh_time *out)
{
    const char *value = value_of(variable);
    lh_time time = 0;
    if (!value)
        return 0;
    int error = judge(variable, value, lh_parse_time(value, &time));
    if (!error && (time == 0 || time > max))
        error = refuse(variable, value, range);
    if (!error)
        *out = time;
    return error;
}

static int read_schemes(const struct plugin_host *host, struct plugin_settings *settings)
{
    char why[256];
    strcpy(settings->reliability, "auto"); // NOLINT: it fits
    int error =
        plugin_read_text("LONGHAUL_RELIABILITY", settings->reliability, sizeof settings->reliability);
    if (error)
        return error;
    snprintf(
        why, sizeof why,
        "a message with a hole would be a wrong result, and %s has no error for it (use auto, sr-nack or "
        "ec:mds; bounded is for the PyTorch hook and lh_allreduce)",
        host->name);
    if (!strncmp(settings->reliability, BOUNDED, strlen(BOUNDED)))
        return refuse("LONGHAUL_RELIABILITY", settings->reliability, why);
    error =
        judge("LONGHAUL_RELIABILITY", settings->reliability, lh_reliability_check(settings->reliability));
    if (!error)
        error = plugin_read_text("LONGHAUL_CONGESTION", settings->congestion, sizeof settings->congestion);
    if (!error && *settings->congestion)
        error =
            judge("LONGHAUL_CONGESTION", settings->congestion, lh_congestion_check(settings->congestion));
    return error;
}

static int read_path(struct plugin_settings *settings)
{
    const char *rate = value_of("LONGHAUL_RATE"), *link = value_of("LONGHAUL_LINK");
    int error = rate ? judge("LONGHAUL_RATE", rate, lh_parse_rate(rate, &settings->rate_bps)) : 0;
    if (!error && rate && (settings->rate_bps < RATE_MIN || settings->rate_bps > RATE_MAX))
        error = refuse("LONGHAUL_RATE", rate, "out of range (use 1Mbit to 100Tbit)");
    settings->peer_timeout_ns = PEER_TIMEOUT_DEFAULT_NS;
    if (!error)
        error = plugin_read_time("LONGHAUL_PEER_TIMEOUT", PEER_TIMEOUT_MAX_NS,
                                 "out of range (use up to a day)", &settings->peer_timeout_ns);
    if (!error && link)
        error = judge("LONGHAUL_LINK", link, lh_link_parse(link, &settings->link));
    return error;
}

/* "eth,ib", "=eth0", "^docker,lo", as NCCL_SOCKET_IFNAME. */
struct filter {
    bool exclude, exact;
    const char *names;
};

static struct filter filter_of(const char *text)
{
    struct filter filter = {0};
    filter.exclude = *text == '^';
    text += filter.exclude;
    filter.exact = *text == '=';
    filter.names = text + filter.exact;
    return filter;
}

static bool filter_is_valid(const char *text)
{
    const char *at = filter_of(text).names;
    for (;;) { /* once a name */
        size_t length = strcspn(at, ",");
        if (length == 0)
            return false;
        if (!at[length])
            return true;
        at += length + 1;
    }
}

static bool filter_selects(const char *text, const char *interface)
{
    struct filter filter = filter_of(text);
    for (const char *at = filter.names; at;) {
        size_t length = strcspn(at, ",");
        if (!strncmp(at, interface, length) && (!filter.exact || !interface[length]))
            return !filter.exclude;
        at = at[length] ? at + length + 1 : NULL;
    }
    return filter.exclude;
}

static int read_interfaces(const struct plugin_host *host, struct plugin_settings *settings)
{
    const char *variable = "LONGHAUL_SOCKET_IFNAME";
    int error = plugin_read_text(variable, settings->interfaces, sizeof settings->interfaces);
    if (!error && !*settings->interfaces && host->interfaces) {
        variable = host->interfaces;
        error = plugin_read_text(variable, settings->interfaces, sizeof settings->interfaces);
    }
    if (!error && *settings->interfaces && !filter_is_valid(settings->interfaces))
        return refuse(
            variable, settings->interfaces,
            "invalid (use prefixes \"eth,ib\", names \"=eth0\", or \"^docker,lo\" for all others)");
    return error;
}

int plugin_settings_read(const struct plugin_host *host, struct plugin_settings *settings)
{
    *settings = (struct plugin_settings){0};
    int error = read_schemes(host, settings);
    if (!error)
        error = read_path(settings);
    if (!error)
        error = read_interfaces(host, settings);
    if (!error)
        error = plugin_read_text("LONGHAUL_PATH_FILE", settings->path_file, sizeof settings->path_file);
    if (!error)
        error = plugin_read_text("LONGHAUL_KEY_FILE", settings->key_file, sizeof settings->key_file);
    return error;
}

void plugin_settings_attr(const struct plugin_settings *settings, struct lh_attr *attr,
                          struct lh_security *security)
{
    lh_attr_init(attr);
    attr->reliability = settings->reliability;
    attr->congestion = *settings->congestion ? settings->congestion : NULL;
    attr->path_file = *settings->path_file ? settings->path_file : NULL;
    attr->peer_timeout_ns = settings->peer_timeout_ns;
    if (*settings->key_file) {
        lh_security_init(security);
        security->key_file = settings->key_file;
        attr->security = security;
    }
}

/* ---- devices ------------------------------------------------------------------------------------------- */

int plugin_speed(uint64_t rate_bps)
{
    uint64_t mbits = rate_bps / 1000000;
    return mbits < INT_MAX ? (int)mbits : INT_MAX;
}

static void describe(struct plugin_device *out, const struct lh_device *device)
{
    char link[128], path[PATH_MAX], speed[16] = "";
    *out = (struct plugin_device){0};
    snprintf(out->name, sizeof out->name, "%s", device->name);
    snprintf(out->interface, sizeof out->interface, "%s", device->interface);
    snprintf(out->address, sizeof out->address, "%s", device->address);
    snprintf(link, sizeof link, "/sys/class/net/%s/device", device->interface);
    if (realpath(link, path) && strlen(path) < sizeof out->pci_path)
        strcpy(out->pci_path, path); // NOLINT: the length is checked
    out->speed = plugin_speed(device->rate_bps);
    snprintf(link, sizeof link, "/sys/class/net/%s/speed", device->interface);
    FILE *file = out->speed ? NULL : fopen(link, "re");
    if (file) {
        long mbits = fgets(speed, sizeof speed, file) ? strtol(speed, NULL, 10) : 0;
        out->speed = mbits > 0 && mbits < INT_MAX ? (int)mbits : 0;
        fclose(file);
    }
}

static bool is_usable(const struct lh_device *device, const char *family)
{
    bool v6 = *device->address == '[';
    return !strcmp(device->fabric, "udp") && !*device->trouble && strncmp(device->address, "[fe80", 5) &&
           v6 == !strcmp(family, "v6");
}

/* Adds the devices of one address family whose interfaces have none yet. */
static int add_family(struct plugin_device *devices, int count, const struct lh_device *all, size_t number,
                      const char *family, const char *filter)
{
    for (size_t i = 0; i < number && count < PLUGIN_DEVICES_MAX; i++) {
        bool known = false;
        for (int j = 0; j < count; j++)
            known |= !strcmp(devices[j].interface, all[i].interface);
        if (!known && is_usable(&all[i], family) && filter_selects(filter, all[i].interface))
            describe(&devices[count++], &all[i]);
    }
    return count;
}

int plugin_devices(const char *interfaces, struct plugin_device devices[PLUGIN_DEVICES_MAX], int *count)
{
    struct lh_device *all = NULL;
    size_t number = 0;
    char text[PLUGIN_TEXT_MAX + 128];
    int error = lh_devices(&all, &number);
    if (error)
        return error;
    /* As NCCL: without a choice, loopback only where nothing else is. */
    const char *filters[] = {"^docker,lo", "lo"};
    if (*interfaces)
        filters[0] = filters[1] = interfaces;
    int found = 0;
    for (int i = 0; i < 2 && found == 0; i++) {
        found = add_family(devices, 0, all, number, "v4", filters[i]);
        found = add_family(devices, found, all, number, "v6", filters[i]);
    }
    lh_devices_free(all);
    *count = found;
    if (found)
        return 0;
    snprintf(text, sizeof text,
             "no device: no interface that is up and has an address%s%s%s (see `longhaul devices`)",
             *interfaces ? " matches \"" : "", interfaces, *interfaces ? "\"" : "");
    return lh_error_set(LH_EDEVICE, text);
}
