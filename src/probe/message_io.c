/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/message_io.h"

#include "base/error.h"
#include "launch/tcp.h"

int probe_message_write(int fd, const struct probe_message *message, lh_time deadline)
{
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    return tcp_write(fd, wire, probe_message_encode(message, wire), deadline);
}

int probe_message_read(int fd, struct probe_message *message, lh_time deadline)
{
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    size_t bytes;
    int error = tcp_read(fd, wire, PROBE_MESSAGE_HEADER_BYTES, deadline);
    if (error == 0)
        error = probe_message_header(wire, &bytes);
    if (error == 0)
        error =
            tcp_read(fd, wire + PROBE_MESSAGE_HEADER_BYTES, bytes - PROBE_MESSAGE_HEADER_BYTES, deadline);
    return error != 0 ? error : probe_message_decode(wire, bytes, message);
}

int probe_message_read_type(int fd, enum probe_message_type type, struct probe_message *message,
                            lh_time deadline)
{
    struct probe_message got;
    int error = probe_message_read(fd, &got, deadline);
    if (error != 0)
        return error;
    if (got.type == PROBE_REFUSE)
        return lh_fail(LH_EPEER, "server: %s", got.text);
    if (got.type != type)
        return lh_fail(LH_EPROTOCOL, "unexpected message type %d (expected %d)", got.type, type);
    *message = got;
    return 0;
}
