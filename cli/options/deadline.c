/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/options/deadline.h"

#include <longhaul/scheme.h>

#include <string.h>

bool cli_has_deadline(const char *reliability)
{
    size_t bytes = strcspn(reliability ? reliability : "", ":,");
    for (const struct lh_scheme *const *scheme = lh_schemes(); *scheme; scheme++)
        if ((*scheme)->deadline && strlen((*scheme)->name) == bytes &&
            memcmp((*scheme)->name, reliability, bytes) == 0)
            return true;
    return false;
}
