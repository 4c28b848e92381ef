/*
 * schemes.h - transport.schemes: the schemes of hosts, a space between two of them.
 *
 * Host h receives by number h modulo their count.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_PROTOCOL_SCHEMES_H
#define LH_NETSIM_PROTOCOL_SCHEMES_H

#include <stdint.h>

#include "netsim/base/config.h"

#define SCHEMES_MAX 8u

struct scheme_list {
    char text[NETSIM_SCHEMES_BYTES]; /* each ended by a zero */
    uint32_t starts[SCHEMES_MAX];
    uint32_t count;
};

/* -LH_EINVAL: none, more than SCHEMES_MAX, or one that lh_attr.reliability cannot be. */
int scheme_list_parse(const char *text, struct scheme_list *list);

static inline const char *scheme_list_of(const struct scheme_list *list, uint32_t host)
{
    return list->text + list->starts[host % list->count];
}

#endif
