/*
 * drop_udp.c - preloaded: a path that drops the UDP packets of this process. $LH_TEST_DROP: "data" drops RDMA
 * writes alone, as a firewall does that lets only the control port through; "large" drops packets of more
 * than 1,000 bytes, as a link does whose MTU is below that: of a burst of such all but a short last one; else
 * all. $LH_TEST_DROP_FROM: a file; nothing is dropped before it exists.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LARGE                     1000
#define WRITE_ONLY_WITH_IMMEDIATE 0x2B /* BTH opcode of a UC data packet */

static size_t bytes_of(const struct msghdr *message)
{
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        bytes += message->msg_iov[i].iov_len;
    return bytes;
}

/* data: the first bytes of a packet of that many. */
static bool dropped(int fd, const void *data, size_t bytes)
{
    int type = 0;
    socklen_t size = sizeof type;
    const char *what = getenv("LH_TEST_DROP"), *from = getenv("LH_TEST_DROP_FROM");
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_DGRAM)
        return false;
    if (from && access(from, F_OK))
        return false;
    if (what && !strcmp(what, "large"))
        return bytes > LARGE;
    bool is_data = bytes > 0 && *(const unsigned char *)data == WRITE_ONLY_WITH_IMMEDIATE;
    return is_data || !what || strcmp(what, "data");
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t size)
{
    typedef ssize_t sendto_function(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    sendto_function *next = (sendto_function *)dlsym(RTLD_NEXT, "sendto");
    return dropped(fd, data, bytes) ? (ssize_t)bytes : next(fd, data, bytes, flags, to, size);
}

/* Bytes of each packet of a burst but the last; of a message that is none, all of its bytes. */
static size_t packet_of(struct msghdr *message, size_t bytes)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        uint16_t packet;
        memcpy(&packet, CMSG_DATA(one), sizeof packet);
        if (one->cmsg_level == SOL_UDP && one->cmsg_type == UDP_SEGMENT && packet)
            return packet;
    }
    return bytes;
}

/* Sends the last packet of a burst alone. */
static void send_last(int fd, const struct msghdr *message, size_t bytes, size_t last)
{
    unsigned char packet[LARGE];
    size_t at = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        for (size_t k = 0; k < message->msg_iov[i].iov_len; k++, at++)
            if (at >= bytes - last)
                packet[at - (bytes - last)] = ((const unsigned char *)message->msg_iov[i].iov_base)[k];
    sendto(fd, packet, last, 0, message->msg_name, message->msg_namelen);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t (*next)(int, const struct msghdr *, int) =
        (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
    const struct iovec *first = message->msg_iov;
    struct msghdr read = *message;
    size_t bytes = bytes_of(message), packet = packet_of(&read, bytes);
    if (message->msg_iovlen == 0 || !dropped(fd, first->iov_base, packet))
        return next(fd, message, flags);
    const char *what = getenv("LH_TEST_DROP");
    size_t last = what && !strcmp(what, "large") && packet > 0 ? bytes % packet : 0;
    if (last > 0 && last <= LARGE)
        send_last(fd, message, bytes, last);
    return (ssize_t)bytes;
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    for (unsigned i = 0; i < count; i++) {
        ssize_t sent = sendmsg(fd, &messages[i].msg_hdr, flags);
        if (sent < 0)
            return i > 0 ? (int)i : -1;
        messages[i].msg_len = (unsigned)sent;
    }
    return (int)count;
}
