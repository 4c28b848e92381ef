/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/scenario/link_list.h"

#include <string.h>

/* * matches any characters; no other character is special. Goes back at most once a letter of the text for
 * each star. */
static bool matches(const char *pattern, size_t length, const char *text)
{
    const char *end = pattern + length, *star = NULL, *again = NULL;
    while (*text) {
        if (pattern < end && *pattern == '*') {
            star = ++pattern;
            again = text;
        } else if (pattern < end && *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++again;
        } else {
            return false;
        }
    }
    while (pattern < end && *pattern == '*')
        pattern++;
    return pattern == end;
}

bool cli_link_matches(const char *patterns, const char *from, const char *to)
{
    while (*patterns) {
        patterns += strspn(patterns, " ,");
        size_t length = strcspn(patterns, ",");
        size_t next = length;
        while (length && patterns[length - 1] == ' ')
            length--;
        const char *arrow = memchr(patterns, '>', length);
        if (arrow && matches(patterns, (size_t)(arrow - patterns), from) &&
            matches(arrow + 1, length - (size_t)(arrow + 1 - patterns), to))
            return true;
        patterns += next;
    }
    return false;
}

void cli_link_list_find(struct cli_link_list *list, const struct lh_netsim *simulation,
                        const char *patterns)
{
    struct lh_netsim_link link;
    uint32_t links = *patterns ? lh_netsim_links_count(simulation) : 0;
    list->count = 0;
    list->more = false;
    for (uint32_t i = 0; i < links && !list->more; i++) {
        if (lh_netsim_link(simulation, i, &link) || !cli_link_matches(patterns, link.from, link.to))
            continue;
        list->more = list->count == CLI_LINK_LIST_MAX;
        if (!list->more)
            list->numbers[list->count++] = i;
    }
}
