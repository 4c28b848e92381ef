/*
 * settings.h - the options of longhaul plan as typed, and the order they make.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_SETTINGS_H
#define LH_CLI_PLAN_SETTINGS_H

#include "cli/plan/link_file.h"
#include "cli/plan/order.h"

/* No number of cores was given. */
#define CLI_PLAN_ANY_CORES UINT32_MAX

#define CLI_PLAN_SCHEMES_HELP_MAX 320

/* As they are typed; NULL: not given. */
struct cli_plan_settings {
    uint64_t bandwidth_bps;
    lh_time rtt_ns;
    uint64_t chunk_bytes, encode_bytes_per_s;
    uint32_t mtu_bytes, cores;
    const char *figures, *link_file, *distance, *loss, *size, *mix, *by, *loss_of, *burst, *max_overhead,
        *allow_loss, *timing, *collective;
    bool worst, flow_control, nic;
    struct cli_link_file file; /* values of the link file, NaN where it has no value */
    struct cli_plan_order order;
    char schemes_help[CLI_PLAN_SCHEMES_HELP_MAX];
};

/* Fills settings->order. CLI_PROCEED, or an exit status after reporting the cause. */
int cli_plan_settings_take(struct cli_plan_settings *settings);

#endif
