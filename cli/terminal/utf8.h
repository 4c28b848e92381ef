/*
 * utf8.h - whether bytes are text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_TERMINAL_UTF8_H
#define LH_CLI_TERMINAL_UTF8_H

#include <stddef.h>

/* Bytes of the character that text begins with, 1 to 4 of the `bytes` there are; 0: it is none (RFC 3629:
 * nor are surrogates, what is above U+10FFFF, or a character in more bytes than it needs). */
size_t cli_utf8_bytes(const char *text, size_t bytes);

#endif
