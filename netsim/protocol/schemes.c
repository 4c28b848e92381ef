/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/protocol/schemes.h"

#include <string.h>

#include <longhaul/connection.h>

#include "base/error.h"

int scheme_list_parse(const char *text, struct scheme_list *list)
{
    size_t bytes = strlen(text);
    *list = (struct scheme_list){0};
    if (bytes >= sizeof list->text)
        return lh_fail(LH_EINVAL, "transport.schemes: %zu characters (at most %zu)", bytes,
                       sizeof list->text - 1);
    memcpy(list->text, text, bytes);
    for (char *at = list->text; *at != '\0';) {
        size_t length = strcspn(at, " ");
        bool last = at[length] == '\0';
        at[length] = '\0';
        if (length > 0) {
            if (list->count == SCHEMES_MAX)
                return lh_fail(LH_EINVAL, "transport.schemes: more than %u schemes", SCHEMES_MAX);
            if (lh_reliability_check(at) != 0)
                return lh_fail(LH_EINVAL, "transport.schemes: %s", lh_last_error());
            list->starts[list->count++] = (uint32_t)(at - list->text);
        }
        at += last ? length : length + 1;
    }
    if (list->count == 0)
        return lh_fail(LH_EINVAL, "transport.schemes: no scheme (example: sr-nack ec:mds,k=32,m=8)");
    return 0;
}
