/*
 * consumer.c - what a user of the installed library writes first; consumer.sh builds it with pkg-config
 * only.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include <longhaul/longhaul.h>

int main(void)
{
    char built_for[32];
    snprintf(built_for, sizeof(built_for), "%d.%d.%d", LH_VERSION_MAJOR, LH_VERSION_MINOR,
             LH_VERSION_PATCH);
    if (strcmp(built_for, lh_version()) != 0) {
        fprintf(stderr, "headers are %s, the library is %s\n", built_for, lh_version());
        return 1;
    }
    puts(lh_version());
    return 0;
}
