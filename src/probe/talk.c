/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/talk.h"

#include "base/error.h"
#include "launch/tcp.h"

int talk_say(int fd, const struct probe_message *message, lh_time deadline)
{
    uint8_t wire[PROBE_MESSAGE_BYTES_MAX];
    return tcp_write(fd, wire, probe_message_encode(message, wire), deadline);
}

int talk_hear(int fd, struct probe_message *message, lh_time deadline)
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

int talk_hear_type(int fd, enum probe_message_type type, struct probe_message *message, lh_time deadline)
{
    struct probe_message heard;
    int error = talk_hear(fd, &heard, deadline);
    if (error != 0)
        return error;
    if (heard.type == PROBE_REFUSE)
        return lh_fail(LH_EPEER, "the server says: %s", heard.text);
    if (heard.type != type)
        return lh_fail(LH_EPROTOCOL,
                       "the other side said a message of type %d where one of type %d belongs", heard.type,
                       type);
    *message = heard;
    return 0;
}
