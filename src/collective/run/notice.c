/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/run/notice.h"

#include <string.h>

#include "base/big_endian.h"
#include "base/error.h"

size_t notice_encode(const struct notice *notice, uint8_t out[NOTICE_BYTES_MAX])
{
    size_t length = strnlen(notice->text, LH_COLLECTIVE_MESSAGE_MAX - 1);
    lh_put_be32(out, (uint32_t)-notice->error);
    lh_put_be32(out + 4, notice->rank);
    memcpy(out + 8, notice->text, length);
    return 8 + length;
}

bool notice_decode(const uint8_t *in, size_t bytes, struct notice *notice)
{
    if (bytes < 8 || bytes >= NOTICE_BYTES_MAX || lh_get_be32(in) > INT32_MAX ||
        !lh_error_known((int)lh_get_be32(in)))
        return false;
    for (size_t i = 8; i < bytes; i++)
        if (in[i] < ' ' || in[i] > '~')
            return false; /* it is printed */
    *notice = (struct notice){.error = -(int)lh_get_be32(in), .rank = lh_get_be32(in + 4)};
    memcpy(notice->text, in + 8, bytes - 8);
    return true;
}
