/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/attach_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void attach_pair(struct lh_connection *one, struct lh_connection *other)
{
    struct lh_connection *ends[2] = {one, other};
    for (int end = 0; end < 2; end++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        int code = lh_blob(ends[1 - end], blob, &bytes);
        if (code != 0)
            fail_msg("lh_blob: %d, %s", code, lh_last_error());
        code = lh_attach(ends[end], blob, bytes);
        if (code != 0)
            fail_msg("lh_attach: %d, %s", code, lh_last_error());
    }
}
