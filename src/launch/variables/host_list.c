/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/variables/host_list.h"

#include <assert.h>
#include <string.h>

/* Characters that end the first number of a bracket, and those that end a host outside of one. */
#define NUMBER_ENDS "-,]"
#define DIGITS      "0123456789"

bool host_list_first(const char *list, char *host, size_t size)
{
    assert(size > 0);
    size_t used = 0;
    while (*list && *list != ',') { /* each turn takes a character, or a bracket, of the list */
        bool bracket = *list == '[';
        size_t length = bracket ? strspn(list + 1, DIGITS) : 1;
        if ((bracket && (length == 0 || !strchr(NUMBER_ENDS, list[1 + length]))) || *list == ']')
            return false;
        if (length >= size - used)
            return false;
        memcpy(host + used, list + bracket, length);
        used += length;
        if (bracket) {
            list = strchr(list, ']');
            if (!list)
                return false;
        }
        list += 1;
    }
    host[used] = '\0';
    return used > 0;
}
