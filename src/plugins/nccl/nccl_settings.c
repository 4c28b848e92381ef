/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugins/nccl/nccl_plugin.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of a connection. 2 Gbit/s over 25 ms have 6 MiB in flight. A lost packet holds a message up for a round
 * trip, in which those behind it land: twice that. The rest is for a faster path. A comm takes what it uses
 * of it, on each side. */
#define WINDOW_DEFAULT ((uint64_t)16 << 20)
#define WINDOW_MIN     ((uint64_t)1 << 20)
#define WINDOW_MAX     ((uint64_t)1 << 30)
#define RTT_MAX_NS     (60 * LH_NS_PER_S)

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

/* Logs the error of a call of plugin_settings.h. */
static int logged(int error)
{
    if (error)
        nccl_log(NCCL_LOG_WARN, "%s", lh_last_error());
    return error == 0 ? NCCL_SUCCESS : error == -LH_EINVAL ? NCCL_INVALID_USAGE : NCCL_SYSTEM_ERROR;
}

int nccl_settings_read(struct nccl_settings *settings)
{
    const struct plugin_host host = {.name = "NCCL", .interfaces = "NCCL_SOCKET_IFNAME"};
    uint64_t bytes = WINDOW_DEFAULT;
    *settings = (struct nccl_settings){.window_bytes = WINDOW_MIN};
    int error = plugin_settings_read(&host, &settings->shared);
    if (!error)
        error = plugin_read_size("LONGHAUL_WINDOW", WINDOW_MIN, WINDOW_MAX,
                                 "out of range (use 1MiB to 1GiB)", &bytes);
    if (!error)
        error =
            plugin_read_time("LONGHAUL_RTT", RTT_MAX_NS, "out of range (use up to 60s)", &settings->rtt_ns);
    while (settings->window_bytes < bytes)
        settings->window_bytes *= 2;
    return logged(error);
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
    plugin_settings_attr(&settings->shared, attr, security);
    attr->link = settings->shared.link;
    if (!strncmp(settings->shared.congestion, "fixed", 5))
        attr->rate_bps = settings->shared.rate_bps;
    /* A frame is one segment, and with parity a second one. */
    attr->slots = 2 * landing.frames;
    if (attr->window_bytes < 2 * settings->window_bytes)
        attr->window_bytes = 2 * settings->window_bytes;
}

int nccl_settings_devices(const struct nccl_settings *settings, struct plugin_device *devices, int *count)
{
    return logged(plugin_devices(settings->shared.interfaces, devices, count));
}
