/*
 * controllers.h - the controllers bbr, fixed, swift and timely, and how parameters of controllers are read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CONGESTION_CONTROLLERS_H
#define LH_CONGESTION_CONTROLLERS_H

#include <longhaul/congestion.h>

extern const struct lh_congestion bbr_congestion;

/* ---- fixed ----------------------------------------------------------------------------------------- */

/* No control: the rate that was told, for a circuit of its own. */

extern const struct lh_congestion fixed_congestion;

/* ---- swift ----------------------------------------------------------------------------------------- */

/*
 * Congestion control by delay (Kumar et al., "Swift: Delay is Simple and Effective for Congestion
 * Control in the Datacenter", SIGCOMM 2020). Differences: docs/congestion.md.
 */

extern const struct lh_congestion swift_congestion;

/* ---- timely ---------------------------------------------------------------------------------------- */

/*
 * Congestion control by the delay's gradient (Mittal et al., "TIMELY: RTT-based Congestion Control
 * for the Datacenter", SIGCOMM 2015). Differences: docs/congestion.md.
 */

extern const struct lh_congestion timely_congestion;

/* ---- keys ------------------------------------------------------------------------------------------ */

/* Parameters of controllers as text: "key=value", separated by commas, each key at most once. */

#define CONGESTION_KEYS 2 /* of a controller */

struct congestion_key {
    const char *name;  /* NULL: no more keys */
    const char *range; /* for messages: "1us to 10s" */
    int (*parse)(const char *text, uint64_t *value);
    uint64_t minimum, maximum;
};

struct congestion_keys {
    const char *controller;
    struct congestion_key key[CONGESTION_KEYS];
};

/* What the text says, in params: the value of each key, 0 where the text does not name it. -LH_EINVAL. */
int congestion_keys_parse(const struct congestion_keys *keys, const char *text,
                          uint8_t params[LH_CONGESTION_PARAMS]);
/* The value of a key, or the default where the text did not name it. */
uint64_t congestion_keys_value(const uint8_t params[LH_CONGESTION_PARAMS], unsigned key,
                               uint64_t otherwise);

#endif
