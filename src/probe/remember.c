/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/remember.h"

#include <string.h>
#include <sys/socket.h>

#include "history/path_file.h"

/* Of a RoCE packet besides its payload: IP; UDP 8, BTH 12, RETH 16, immediate 4, iCRC 4. */
#define IPV4_BYTES 20u
#define IPV6_BYTES 40u
#define ROCE_BYTES 44u

static void put_address(char out[PATH_HISTORY_ADDRESS_MAX], const union port_address *from)
{
    uint8_t address[16] = {0};
    bool four = from->any.sa_family == AF_INET;
    if (four)
        memcpy(address, &from->four.sin_addr, sizeof from->four.sin_addr);
    else
        memcpy(address, &from->six.sin6_addr, sizeof from->six.sin6_addr);
    path_file_address(out, four ? 4 : 6, address);
}

/* A probe's results count packets from the IP header up, a connection counts payload. */
static double payload_bps(const struct lh_probe_result *result)
{
    double mtu = result->mtu_bytes;
    return result->rate_bps * mtu / (mtu + ROCE_BYTES + (result->ipv6 ? IPV6_BYTES : IPV4_BYTES));
}

/* A rate that the attributes limited says nothing about the path above it. */
static bool is_of_the_path(enum lh_probe_limit limit)
{
    return limit == LH_PROBE_LIMIT_PATH || limit == LH_PROBE_LIMIT_SENDER ||
           limit == LH_PROBE_LIMIT_RECEIVER;
}

void probe_remember(const struct probe_session *session)
{
    const struct lh_probe_result *result = session->result;
    union port_address local, peer;
    socklen_t local_bytes = sizeof local, peer_bytes = sizeof peer;
    if (!session->attr.path_file || !result->mtu_bytes || !is_of_the_path(result->rate_limit) ||
        getsockname(session->port.fds[0], &local.any, &local_bytes) != 0 ||
        getpeername(session->port.fds[0], &peer.any, &peer_bytes) != 0)
        return;
    struct path_record record = {.rate_bps = (uint64_t)payload_bps(result), .rtt_ns = result->rtt_min_ns};
    put_address(record.local, &local);
    put_address(record.peer, &peer);
    path_file_write(session->attr.path_file, &record);
}
