/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/utf8.h"

#include <stdint.h>

size_t cli_utf8_bytes(const char *text, size_t bytes)
{
    /* The smallest character of each length. */
    static const uint32_t minimum[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    if (!bytes)
        return 0;
    size_t length = at[0] < 0x80             ? 1
                    : (at[0] & 0xE0) == 0xC0 ? 2
                    : (at[0] & 0xF0) == 0xE0 ? 3
                    : (at[0] & 0xF8) == 0xF0 ? 4
                                             : 0;
    if (length <= 1 || length > bytes)
        return length > bytes ? 0 : length;
    uint32_t character = at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3Fu);
    }
    if (character < minimum[length] || character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
        return 0;
    return length;
}
