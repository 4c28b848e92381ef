/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/longhaul.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

const char *lh_version(void)
{
    return TEXT(LH_VERSION_MAJOR) "." TEXT(LH_VERSION_MINOR) "." TEXT(LH_VERSION_PATCH);
}
