/*
 * error.h - Longhaul's error codes, and the message of the last error.
 *
 * Calls named lh_… return 0 (or a count) on success and a negative code, -LH_E…, on failure. They set outputs
 * only on success. After a failure lh_last_error() returns the cause, the value and the remedy.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LONGHAUL_ERROR_H
#define LONGHAUL_ERROR_H

#include <longhaul/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, number, words). Numbers are part of the binary interface: add at the end, never reuse. */
#define LH_ERRORS(X)                                                                                       \
    X(LH_EINVAL, 1, "invalid argument")                                                                    \
    X(LH_ENOMEM, 2, "out of memory")                                                                       \
    X(LH_EAGAIN, 3, "not possible now, try again")                                                         \
    X(LH_ERANGE, 4, "value out of range")                                                                  \
    X(LH_EADDR, 5, "address cannot be used")                                                               \
    X(LH_EMTU, 6, "MTU does not fit the path")                                                             \
    X(LH_EDEVICE, 7, "device cannot be used")                                                              \
    X(LH_EHANDSHAKE, 8, "handshake refused")                                                               \
    X(LH_EVERSION, 9, "versions do not match")                                                             \
    X(LH_EPEER, 10, "peer is gone")                                                                        \
    X(LH_ECLOSED, 11, "connection is closed")                                                              \
    X(LH_ETIMEDOUT, 12, "deadline passed")                                                                 \
    X(LH_ECANCELED, 13, "canceled")                                                                        \
    X(LH_ETRUNCATED, 14, "message is longer than the receive buffer")                                      \
    X(LH_EKEY, 15, "memory key does not cover the range")                                                  \
    X(LH_ESTATE, 16, "call is not allowed in this state")                                                  \
    X(LH_ESYSTEM, 17, "system call failed")                                                                \
    X(LH_EUNSUPPORTED, 18, "not supported here")                                                           \
    X(LH_EPROTOCOL, 19, "peer broke the protocol")                                                         \
    X(LH_EUNRECOVERABLE, 20, "more chunks are missing than the code can recover")                          \
    X(LH_EPATH, 21,                                                                                        \
      "data packets do not pass: firewall or NAT (let UDP ports 4791 and 49152-65535 through)")

enum lh_error {
#define LH_ERROR_ENUM(name, number, words) name = number,
    LH_ERRORS(LH_ERROR_ENUM)
#undef LH_ERROR_ENUM
};

/* Returns the text of a code, with or without its minus sign; never NULL. */
LH_API const char *lh_strerror(int code);

/* Returns the message of this thread's last failed call, "" before the first failure. Valid until the next
 * failure. */
LH_API const char *lh_last_error(void);

/* Sets the message that lh_last_error() returns in this thread, and returns the negative code. For extensions
 * of the library, such as the parse call of your own scheme. code: LH_E… or -LH_E…. text: truncated at 511
 * bytes. */
LH_API int lh_error_set(int code, const char *text);

#ifdef __cplusplus
}
#endif
#endif
