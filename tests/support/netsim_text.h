/*
 * netsim_text.h - texts for the parsers of the simulator.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SUPPORT_NETSIM_TEXT_H
#define LH_SUPPORT_NETSIM_TEXT_H

#include <string.h>

#include "netsim/base/netsim_config.h"

static inline struct netsim_text netsim_text_of(const char *words)
{
    return (struct netsim_text){.data = words, .bytes = strlen(words)};
}

#endif
