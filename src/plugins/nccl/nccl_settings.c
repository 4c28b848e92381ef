/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/nccl/nccl_plugin.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a connection. 2 Gbit/s over 25 ms have 6 MiB in flight. A lost packet holds a message up for a round
 * trip, in which those behind it land: twice that. The rest is for a faster path. A comm takes what it uses
 * of it, on each side. */
#define WINDOW_DEFAULT ((uint64_t)16 << 20)
#define WINDOW_MIN     ((uint64_t)1 << 20)
#define WINDOW_MAX     ((uint64_t)1 << 30)
/* That of the library. */
#define PEER_TIMEOUT_DEFAULT_NS (10 * LH_NS_PER_S)
#define PEER_TIMEOUT_MAX_NS     (24 * 3600 * LH_NS_PER_S)
#define RTT_MAX_NS              (60 * LH_NS_PER_S)

/* The lowest is NCCL's unit, the highest that of an engine. */
#define RATE_MIN UINT64_C(1000000)
#define RATE_MAX UINT64_C(100000000000000)

#define BOUNDED "bounded"

/* NCCL's slices are one or some of these; a slot, and its clear-to-send, cost little beside one. */
#define FRAME_BYTES_DEFAULT (256u << 10)
#define FRAMES_MIN          16u

/* ---- NCCL's log ---------------------------------------------------------------------------------------- */

static nccl_logger logger_now;

void nccl_log_to(nccl_logger logger)
{
    __atomic_store_n(&logger_now, logger, __ATOMIC_RELEASE);
}

void nccl_log(enum nccl_log_level level, const char *format, ...)
{
    nccl_logger logger = __atomic_load_n(&logger_now, __ATOMIC_ACQUIRE);
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (logger)
        logger((int)level, NCCL_LOG_INIT | NCCL_LOG_NET, "longhaul", 0, "NET/Longhaul : %s", line);
}

/* ---- fork() -------------------------------------------------------------------------------------------- */

static bool inherited;

static void on_fork(void)
{
    __atomic_store_n(&inherited, true, __ATOMIC_RELAXED);
}

int nccl_watch_forks(void)
{
    return pthread_atfork(NULL, NULL, on_fork);
}

bool nccl_is_inherited(void)
{
    return __atomic_load_n(&inherited, __ATOMIC_RELAXED);
}

int nccl_refuse_child(void)
{
    nccl_log(NCCL_LOG_WARN,
             "process %d: opened by its parent before fork() (start NCCL in one of them only)",
             (int)getpid());
    return NCCL_INVALID_USAGE;
}

/* ---- variables ----------------------------------------------------------------------------------------- */

static int refuse(const char *variable, const char *value, const char *why)
{
    nccl_log(NCCL_LOG_WARN, "%s: \"%.100s\": %s", variable, value, why);
    return NCCL_INVALID_USAGE;
}

/* Copies a variable; an empty one counts as not set. */
static int read_text(const char *variable, char *out)
{
    const char *value = getenv(variable);
    if (!value)
        return NCCL_SUCCESS;
    if (strlen(value) >= NCCL_TEXT_MAX)
        return refuse(variable, value, "too long (use at most 511 characters)");
    strcpy(out, value); // NOLINT: the length is checked
    return NCCL_SUCCESS;
}

/* `error`: of the library's call that parsed the value. */
static int judge(const char *variable, const char *value, int error)
{
    return error ? refuse(variable, value, lh_last_error()) : NCCL_SUCCESS;
}

static int read_schemes(struct nccl_settings *settings)
{
    strcpy(settings->reliability, "auto"); // NOLINT: it fits
    int result = read_text("LONGHAUL_RELIABILITY", settings->reliability);
    if (result)
        return result;
    if (!strncmp(settings->reliability, BOUNDED, strlen(BOUNDED)))
        return refuse("LONGHAUL_RELIABILITY", settings->reliability,
                      "a message with a hole would be a wrong result, and NCCL has no error for it "
                      "(use auto, sr-nack or ec:mds; bounded is for the PyTorch hook and lh_allreduce)");
    result =
        judge("LONGHAUL_RELIABILITY", settings->reliability, lh_reliability_check(settings->reliability));
    if (!result)
        result = read_text("LONGHAUL_CONGESTION", settings->congestion);
    if (!result && *settings->congestion)
        result =
            judge("LONGHAUL_CONGESTION", settings->congestion, lh_congestion_check(settings->congestion));
    return result;
}

static int read_window(struct nccl_settings *settings)
{
    const char *value = getenv("LONGHAUL_WINDOW");
    settings->window_bytes = WINDOW_DEFAULT;
    if (!value || !*value)
        return NCCL_SUCCESS;
    uint64_t bytes = 0;
    int result = judge("LONGHAUL_WINDOW", value, lh_parse_size(value, &bytes));
    if (result)
        return result;
    if (bytes < WINDOW_MIN || bytes > WINDOW_MAX)
        return refuse("LONGHAUL_WINDOW", value, "out of range (use 1MiB to 1GiB)");
    settings->window_bytes = WINDOW_MIN;
    while (settings->window_bytes < bytes)
        settings->window_bytes *= 2;
    return NCCL_SUCCESS;
}

static int read_time(const char *variable, lh_time longest, const char *range, lh_time *out)
{
    const char *value = getenv(variable);
    if (!value || !*value)
        return NCCL_SUCCESS;
    lh_time time = 0;
    int result = judge(variable, value, lh_parse_time(value, &time));
    if (result)
        return result;
    if (time == 0 || time > longest)
        return refuse(variable, value, range);
    *out = time;
    return NCCL_SUCCESS;
}

static int read_path(struct nccl_settings *settings)
{
    const char *rate = getenv("LONGHAUL_RATE"), *link = getenv("LONGHAUL_LINK");
    int result = NCCL_SUCCESS;
    if (rate && *rate)
        result = judge("LONGHAUL_RATE", rate, lh_parse_rate(rate, &settings->rate_bps));
    if (!result && rate && *rate && (settings->rate_bps < RATE_MIN || settings->rate_bps > RATE_MAX))
        result = refuse("LONGHAUL_RATE", rate, "out of range (use 1Mbit to 100Tbit)");
    if (!result)
        result = read_time("LONGHAUL_RTT", RTT_MAX_NS, "out of range (use up to 60s)", &settings->rtt_ns);
    settings->peer_timeout_ns = PEER_TIMEOUT_DEFAULT_NS;
    if (!result)
        result = read_time("LONGHAUL_PEER_TIMEOUT", PEER_TIMEOUT_MAX_NS, "out of range (use up to a day)",
                           &settings->peer_timeout_ns);
    if (!result && link && *link)
        result = judge("LONGHAUL_LINK", link, lh_link_parse(link, &settings->link));
    return result;
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

static int read_interfaces(struct nccl_settings *settings)
{
    const char *variable = "LONGHAUL_SOCKET_IFNAME";
    int result = read_text(variable, settings->interfaces);
    if (!result && !*settings->interfaces) {
        variable = "NCCL_SOCKET_IFNAME";
        result = read_text(variable, settings->interfaces);
    }
    if (!result && *settings->interfaces && !filter_is_valid(settings->interfaces))
        return refuse(
            variable, settings->interfaces,
            "invalid (use prefixes \"eth,ib\", names \"=eth0\", or \"^docker,lo\" for all others)");
    return result;
}

int nccl_settings_read(struct nccl_settings *settings)
{
    *settings = (struct nccl_settings){0};
    int (*const readers[])(struct nccl_settings *) = {read_schemes, read_window, read_path,
                                                      read_interfaces};
    int result = NCCL_SUCCESS;
    for (size_t i = 0; !result && i < sizeof readers / sizeof readers[0]; i++)
        result = readers[i](settings);
    if (!result)
        result = read_text("LONGHAUL_PATH_FILE", settings->path_file);
    if (!result)
        result = read_text("LONGHAUL_KEY_FILE", settings->key_file);
    return result;
}

struct nccl_landing nccl_landing_for(uint64_t window_bytes)
{
    struct nccl_landing landing = {.frame_bytes = FRAME_BYTES_DEFAULT};
    while (window_bytes / landing.frame_bytes > NCCL_FRAMES_MAX)
        landing.frame_bytes *= 2;
    while (window_bytes / landing.frame_bytes < FRAMES_MIN)
        landing.frame_bytes /= 2;
    landing.frames = (uint32_t)(window_bytes / landing.frame_bytes);
    assert(landing.frame_bytes <= NCCL_FRAME_BYTES_MAX && landing.frame_bytes >= NCCL_FRAME_BYTES_MIN);
    return landing;
}

void nccl_settings_attr(const struct nccl_settings *settings, struct lh_attr *attr,
                        struct lh_security *security)
{
    struct nccl_landing landing = nccl_landing_for(settings->window_bytes);
    lh_attr_init(attr);
    attr->reliability = settings->reliability;
    attr->congestion = *settings->congestion ? settings->congestion : NULL;
    attr->path_file = *settings->path_file ? settings->path_file : NULL;
    attr->link = settings->link;
    if (!strncmp(settings->congestion, "fixed", 5))
        attr->rate_bps = settings->rate_bps;
    attr->peer_timeout_ns = settings->peer_timeout_ns;
    /* A frame is one segment, and with parity a second one. */
    attr->slots = 2 * landing.frames;
    if (attr->window_bytes < 2 * settings->window_bytes)
        attr->window_bytes = 2 * settings->window_bytes;
    if (*settings->key_file) {
        lh_security_init(security);
        security->key_file = settings->key_file;
        attr->security = security;
    }
}

/* ---- devices ------------------------------------------------------------------------------------------- */

int nccl_settings_speed(uint64_t rate_bps)
{
    uint64_t mbits = rate_bps / 1000000;
    return mbits < INT_MAX ? (int)mbits : INT_MAX;
}

static void describe(struct nccl_device *out, const struct lh_device *device)
{
    char link[128], path[PATH_MAX], speed[16] = "";
    *out = (struct nccl_device){0};
    snprintf(out->name, sizeof out->name, "%s", device->name);
    snprintf(out->interface, sizeof out->interface, "%s", device->interface);
    snprintf(out->address, sizeof out->address, "%s", device->address);
    snprintf(link, sizeof link, "/sys/class/net/%s/device", device->interface);
    if (realpath(link, path) && strlen(path) < sizeof out->pci_path)
        strcpy(out->pci_path, path); // NOLINT: the length is checked
    out->speed = nccl_settings_speed(device->rate_bps);
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
static int add_family(struct nccl_device *devices, int count, const struct lh_device *all, size_t number,
                      const char *family, const char *filter)
{
    for (size_t i = 0; i < number && count < NCCL_DEVICES_MAX; i++) {
        bool known = false;
        for (int j = 0; j < count; j++)
            known |= !strcmp(devices[j].interface, all[i].interface);
        if (!known && is_usable(&all[i], family) && filter_selects(filter, all[i].interface))
            describe(&devices[count++], &all[i]);
    }
    return count;
}

int nccl_settings_devices(const struct nccl_settings *settings, struct nccl_device *devices, int *count)
{
    struct lh_device *all = NULL;
    size_t number = 0;
    if (lh_devices(&all, &number)) {
        nccl_log(NCCL_LOG_WARN, "devices: %s", lh_last_error());
        return NCCL_SYSTEM_ERROR;
    }
    /* As NCCL: without a choice, loopback only where nothing else is. */
    const char *filters[] = {"^docker,lo", "lo"};
    if (*settings->interfaces)
        filters[0] = filters[1] = settings->interfaces;
    int found = 0;
    for (int i = 0; i < 2 && found == 0; i++) {
        found = add_family(devices, 0, all, number, "v4", filters[i]);
        found = add_family(devices, found, all, number, "v6", filters[i]);
    }
    lh_devices_free(all);
    *count = found;
    if (found)
        return NCCL_SUCCESS;
    nccl_log(NCCL_LOG_WARN,
             "no device: no interface that is up and has an address%s%s%s (see `longhaul devices`)",
             *settings->interfaces ? " matches \"" : "", settings->interfaces,
             *settings->interfaces ? "\"" : "");
    return NCCL_SYSTEM_ERROR;
}
