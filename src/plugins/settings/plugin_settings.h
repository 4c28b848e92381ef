/*
 * plugin_settings.h - the variables LONGHAUL_* that plugins read, and the devices that these select. Each
 * plugin links its own copy.
 *
 * Calls return 0 or a negative lh_error, whose message (lh_last_error) has variable, value and remedy. An
 * empty variable counts as not set.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_PLUGINS_PLUGIN_SETTINGS_H
#define LH_PLUGINS_PLUGIN_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/longhaul.h>

#define PLUGIN_TEXT_MAX    512
#define PLUGIN_DEVICES_MAX 64

/* Each from the variable of its comment. */
struct plugin_settings {
    char reliability[PLUGIN_TEXT_MAX]; /* LONGHAUL_RELIABILITY; default "auto" */
    char congestion[PLUGIN_TEXT_MAX];  /* LONGHAUL_CONGESTION; "": the library's choice */
    char path_file[PLUGIN_TEXT_MAX];   /* LONGHAUL_PATH_FILE; "": none */
    char key_file[PLUGIN_TEXT_MAX];    /* LONGHAUL_KEY_FILE; "": none */
    char interfaces
        [PLUGIN_TEXT_MAX];    /* LONGHAUL_SOCKET_IFNAME, else the variable of the host; "": neither */
    struct lh_link_spec link; /* LONGHAUL_LINK */
    uint64_t rate_bps;        /* LONGHAUL_RATE; 0: unknown */
    lh_time peer_timeout_ns;  /* LONGHAUL_PEER_TIMEOUT */
};

/* What a plugin is in. */
struct plugin_host {
    const char *name;       /* "NCCL", in messages */
    const char *interfaces; /* its variable with interfaces, in the same grammar; NULL: none */
};

struct plugin_device {
    char name[96];      /* of lh_attr.device */
    char interface[64]; /* "eth0" */
    char address[64];   /* "192.0.2.7", "[2001:db8::7]" */
    char pci_path[256]; /* of /sys; "": none */
    int speed;          /* Mbit/s; 0: unknown */
};

/* Reads the environment. -LH_EINVAL: a variable is invalid. `bounded` is refused: no host has an error for a
 * message with a hole. */
int plugin_settings_read(const struct plugin_host *host, struct plugin_settings *settings);
/* Copies a variable. -LH_EINVAL: it has `bytes` or more. */
int plugin_read_text(const char *variable, char *out, size_t bytes);
/* Reads a size, or leaves *out. range: the remedy if it is not in min to max. */
int plugin_read_size(const char *variable, uint64_t min, uint64_t max, const char *range, uint64_t *out);
/* The same, of a time above 0. */
int plugin_read_time(const char *variable, lh_time max, const char *range, lh_time *out);
/* Sets the attributes of a connection but rate, link and device. They point into the settings. */
void plugin_settings_attr(const struct plugin_settings *settings, struct lh_attr *attr,
                          struct lh_security *security);
/* Lists the devices that interfaces select, one for each interface, IPv4 if it has that; "": all but
 * docker and lo, or lo where nothing else is. -LH_EDEVICE: there is none. */
int plugin_devices(const char *interfaces, struct plugin_device devices[PLUGIN_DEVICES_MAX], int *count);
/* Mbit/s, at most INT_MAX. */
int plugin_speed(uint64_t rate_bps);

#endif
