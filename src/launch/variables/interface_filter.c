/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/variables/interface_filter.h"

#include <assert.h>
#include <string.h>

struct filter {
    bool exclude, exact;
    const char *names;
};

static struct filter parse(const char *text)
{
    struct filter filter = {0};
    filter.exclude = *text == '^';
    text += filter.exclude;
    filter.exact = *text == '=';
    filter.names = text + filter.exact;
    return filter;
}

bool interface_filter_valid(const char *text)
{
    const char *at = parse(text).names;
    for (;;) { /* once a name */
        size_t length = strcspn(at, ",");
        if (length == 0)
            return false;
        if (!at[length])
            return true;
        at += length + 1;
    }
}

int interface_filter_match(const char *text, const char *interface)
{
    assert(interface_filter_valid(text));
    struct filter filter = parse(text);
    int place = 0;
    for (const char *at = filter.names; at; place++) {
        size_t length = strcspn(at, ",");
        if (!strncmp(at, interface, length) && (!filter.exact || !interface[length]))
            return filter.exclude ? -1 : place;
        at = at[length] ? at + length + 1 : NULL;
    }
    return filter.exclude ? 0 : -1;
}
