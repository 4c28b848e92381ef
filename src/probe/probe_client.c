/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/probe_measure.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/min_max.h"
#include "history/path_file.h"
#include "launch/tcp.h"
#include "probe/probe_messages.h"

/* ---- remember -------------------------------------------------------------------------------------- */

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

/* ---- client ---------------------------------------------------------------------------------------- */

/* The client of a probe: checks what is asked for, reaches the server, runs the measurements in order. */

#define TIME_DEFAULT_NS  (10 * LH_NS_PER_S)
#define TRIALS_DEFAULT   5u
#define CONNECT_PAUSE_NS (100 * LH_NS_PER_MS)
#define TIMER_SLACK_NS   1ul /* Linux's 50 us would be part of every emulated delay */

static const uint32_t default_payload_bytes[] = {256, 1024, 4096, 8192};

void lh_probe_attr_init(struct lh_probe_attr *attr)
{
    *attr = (struct lh_probe_attr){
        .struct_bytes = sizeof *attr, .time_ns = TIME_DEFAULT_NS, .trials = TRIALS_DEFAULT, .flows = 1};
}

/* ---- attributes -------------------------------------------------------------------------------------- */

static int check_range(const char *name, uint64_t value, uint64_t low, uint64_t high)
{
    if (value >= low && value <= high)
        return 0;
    return lh_fail(LH_ERANGE, "%s %llu: out of range (%llu to %llu)", name, (unsigned long long)value,
                   (unsigned long long)low, (unsigned long long)high);
}

static int check_sizes(const struct lh_probe_attr *attr)
{
    int error = check_range("size_count", attr->size_count, 0, LH_PROBE_SIZES_MAX);
    for (uint32_t i = 0; error == 0 && i < attr->size_count; i++)
        error = check_range("payload_bytes", attr->payload_bytes[i], LH_PROBE_PAYLOAD_MIN,
                            LH_PROBE_PAYLOAD_MAX);
    for (uint32_t i = 0; error == 0 && i < attr->size_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (attr->payload_bytes[i] == attr->payload_bytes[j])
                return lh_fail(LH_EINVAL, "payload_bytes: %u listed twice", attr->payload_bytes[i]);
    return error;
}

static int check_attr(const struct lh_probe_attr *given, struct lh_probe_attr *attr)
{
    if (given->struct_bytes != sizeof *given)
        return lh_fail(LH_EINVAL, "struct lh_probe_attr has %zu bytes, not %zu: call lh_probe_attr_init",
                       given->struct_bytes, sizeof *given);
    struct lh_probe_attr checked = *given;
    if (checked.time_ns == 0)
        checked.time_ns = TIME_DEFAULT_NS;
    if (checked.trials == 0)
        checked.trials = TRIALS_DEFAULT;
    if (checked.flows == 0)
        checked.flows = 1;
    int error = check_range("time_ns", checked.time_ns, LH_PROBE_TIME_MIN, LH_PROBE_TIME_MAX);
    if (error == 0)
        error = check_range("trials", checked.trials, 1, LH_PROBE_TRIALS_MAX);
    if (error == 0)
        error = check_range("flows", checked.flows, 1, LH_PROBE_FLOWS_MAX);
    if (error == 0)
        error = check_range("packets", checked.packets, 0, LH_PROBE_PACKETS_MAX);
    if (error == 0 && checked.rate_bps != 0)
        error = check_range("rate_bps", checked.rate_bps, 10000, UINT64_MAX);
    if (error == 0)
        error = check_sizes(&checked);
    if (error == 0)
        *attr = checked;
    return error;
}

/* ---- the measurements -------------------------------------------------------------------------------- */

/* Retries until the deadline: the server may be starting. */
static int reach(const char *where, lh_time deadline, int *fd)
{
    for (;;) { /* until it is there, or the deadline passes */
        int error = tcp_connect(where, deadline, fd);
        lh_time now = tcp_now();
        if (error != -LH_EPEER || now >= deadline)
            return error;
        lh_time pause = lh_earlier(CONNECT_PAUSE_NS, deadline - now);
        nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    }
}

static int greet(struct probe_session *session, lh_time deadline)
{
    struct probe_message hello = {.type = PROBE_HELLO}, welcome;
    /* A given number of packets has no time limit of its own. */
    hello.numbers[PROBE_HELLO_TIME_NS] =
        session->attr.packets != 0 ? LH_PROBE_TIME_MAX : session->attr.time_ns;
    lh_link_format(&session->attr.link, hello.text, sizeof hello.text);
    int error = probe_message_write(session->tcp, &hello, deadline);
    if (error == 0)
        error = probe_message_read_type(session->tcp, PROBE_WELCOME, &welcome, deadline);
    if (error == -LH_ETIMEDOUT)
        return lh_fail(LH_ETIMEDOUT, "no answer from the server: busy with another client, or not a "
                                     "longhaul probe (try again, or wait longer)");
    if (error != 0)
        return error;
    session->token = welcome.numbers[PROBE_WELCOME_TOKEN];
    return probe_port_open_client(&session->port, session->tcp,
                                  (uint16_t)welcome.numbers[PROBE_WELCOME_UDP_PORT], session->attr.flows,
                                  &session->attr.link);
}

/* Those that were asked for, or those of the default that pass. */
static int choose_sizes(struct probe_session *session)
{
    struct lh_probe_result *result = session->result;
    const struct lh_probe_attr *attr = &session->attr;
    uint32_t maximum = result->path_mtu_bytes - session->port.header_bytes, count = 0;
    maximum = maximum < LH_PROBE_PAYLOAD_MAX ? maximum : LH_PROBE_PAYLOAD_MAX;
    for (uint32_t i = 0; i < attr->size_count; i++) {
        if (attr->payload_bytes[i] > maximum)
            return lh_fail(LH_EMTU, "payload %u bytes: exceeds the path MTU %u (use at most %u)",
                           attr->payload_bytes[i], result->path_mtu_bytes, maximum);
        result->sizes[count++].payload_bytes = attr->payload_bytes[i];
    }
    const uint32_t defaults = sizeof default_payload_bytes / sizeof default_payload_bytes[0];
    for (uint32_t i = 0; attr->size_count == 0 && i < defaults; i++)
        if (default_payload_bytes[i] <= maximum)
            result->sizes[count++].payload_bytes = default_payload_bytes[i];
    if (attr->size_count == 0 &&
        (count == 0 || (count < defaults && maximum > default_payload_bytes[count - 1])))
        result->sizes[count++].payload_bytes = maximum;
    result->size_count = count;
    return 0;
}

static int measure(struct probe_session *session)
{
    session->result->ipv6 = session->port.ipv6;
    int error = probe_measure_rtt(session);
    if (error == 0)
        error = probe_measure_mtu(session);
    if (error == 0)
        error = choose_sizes(session);
    if (error == 0)
        error = probe_measure_rate(session);
    if (error == 0)
        error = probe_measure_loss(session);
    return error;
}

int lh_probe_run(const char *where, const struct lh_probe_attr *attr, lh_time wait_ns,
                 struct lh_probe_result *out)
{
    struct lh_probe_result result = {0};
    struct probe_session session = {.result = &result};
    lh_time deadline = tcp_deadline(wait_ns);
    int error = check_attr(attr, &session.attr);
    if (error == 0)
        error = reach(where, deadline, &session.tcp);
    if (error != 0)
        return error;
    if (session.attr.loopback_only)
        error = tcp_require_local(session.tcp, PROBE_LOOPBACK_ONLY);
    if (error != 0) {
        close(session.tcp);
        return error;
    }
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    session.started_ns = tcp_now();
    error = greet(&session, deadline);
    if (error == 0) {
        error = measure(&session);
        if (error == 0)
            probe_remember(&session);
        probe_port_close(&session.port);
    }
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0ul);
    close(session.tcp);
    if (error == 0)
        *out = result;
    return error;
}
