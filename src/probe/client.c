/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/client.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/earlier.h"
#include "base/error.h"
#include "launch/tcp.h"
#include "probe/talk.h"

#define TIME_DEFAULT_NS  (10 * LH_NS_PER_S)
#define TRIALS_DEFAULT   5u
#define DRAIN_MIN_NS     (30 * LH_NS_PER_MS)
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
    return lh_fail(LH_ERANGE, "%s is %llu, and must be from %llu to %llu", name, (unsigned long long)value,
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
                return lh_fail(LH_EINVAL, "payload_bytes has %u twice", attr->payload_bytes[i]);
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

/* ---- what the phases share --------------------------------------------------------------------------- */

lh_time probe_client_drain_ns(const struct probe_client *client)
{
    const struct lh_probe_result *result = client->result;
    lh_time spread = result->rtt_max_ns - result->rtt_min_ns;
    return lh_earlier(DRAIN_MIN_NS + result->rtt_ns / 2 + 2 * spread, PROBE_DRAIN_MAX_NS);
}

struct port_packet probe_client_packet(const struct probe_client *client, enum probe_packet_kind kind,
                                       uint32_t number, uint32_t flow, uint32_t bytes, lh_time now)
{
    struct port_packet made = {.bytes = bytes, .flow = flow};
    const struct probe_packet packet = {.kind = kind,
                                        .flow = (uint16_t)flow,
                                        .token = client->token,
                                        .round = client->round,
                                        .number = number,
                                        .sent_ns = now,
                                        .bytes = bytes};
    probe_packet_encode(&packet, made.header);
    return made;
}

int probe_client_check_server(const struct probe_client *client)
{
    char word;
    ssize_t got = recv(client->tcp, &word, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0)
        return lh_fail(LH_EPROTOCOL, "the server speaks out of turn");
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return lh_fail(LH_EPEER, "the server is gone");
}

/* ---- the phases -------------------------------------------------------------------------------------- */

/* A server that is being started is waited for. */
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

static int greet(struct probe_client *client, lh_time deadline)
{
    struct probe_message hello = {.type = PROBE_HELLO}, welcome;
    /* So many packets take what they take. */
    hello.numbers[PROBE_HELLO_TIME_NS] =
        client->attr.packets != 0 ? LH_PROBE_TIME_MAX : client->attr.time_ns;
    lh_link_format(&client->attr.link, hello.text, sizeof hello.text);
    int error = talk_say(client->tcp, &hello, deadline);
    if (error == 0)
        error = talk_hear_type(client->tcp, PROBE_WELCOME, &welcome, deadline);
    if (error == -LH_ETIMEDOUT)
        return lh_fail(LH_ETIMEDOUT,
                       "the server took the connection and said nothing: it is busy with another "
                       "client, or no longhaul probe; try again, or wait longer");
    if (error != 0)
        return error;
    client->token = welcome.numbers[PROBE_WELCOME_TOKEN];
    return probe_port_open_client(&client->port, client->tcp,
                                  (uint16_t)welcome.numbers[PROBE_WELCOME_UDP_PORT], client->attr.flows,
                                  &client->attr.link);
}

/* Those that were asked for, or those of the default that pass. */
static int choose_sizes(struct probe_client *client)
{
    struct lh_probe_result *result = client->result;
    const struct lh_probe_attr *attr = &client->attr;
    uint32_t most = result->path_mtu_bytes - client->port.header_bytes, count = 0;
    most = most < LH_PROBE_PAYLOAD_MAX ? most : LH_PROBE_PAYLOAD_MAX;
    for (uint32_t i = 0; i < attr->size_count; i++) {
        if (attr->payload_bytes[i] > most)
            return lh_fail(LH_EMTU,
                           "a payload of %u bytes does not pass: the path's MTU is %u, so at most %u",
                           attr->payload_bytes[i], result->path_mtu_bytes, most);
        result->sizes[count++].payload_bytes = attr->payload_bytes[i];
    }
    const uint32_t defaults = sizeof default_payload_bytes / sizeof default_payload_bytes[0];
    for (uint32_t i = 0; attr->size_count == 0 && i < defaults; i++)
        if (default_payload_bytes[i] <= most)
            result->sizes[count++].payload_bytes = default_payload_bytes[i];
    if (attr->size_count == 0 &&
        (count == 0 || (count < defaults && most > default_payload_bytes[count - 1])))
        result->sizes[count++].payload_bytes = most;
    result->size_count = count;
    return 0;
}

static int measure(struct probe_client *client)
{
    client->result->ipv6 = client->port.ipv6;
    int error = probe_measure_rtt(client);
    if (error == 0)
        error = probe_measure_mtu(client);
    if (error == 0)
        error = choose_sizes(client);
    if (error == 0)
        error = probe_measure_rate(client);
    if (error == 0)
        error = probe_measure_loss(client);
    return error;
}

int lh_probe_run(const char *where, const struct lh_probe_attr *attr, lh_time wait_ns,
                 struct lh_probe_result *out)
{
    struct lh_probe_result result = {0};
    struct probe_client client = {.result = &result};
    lh_time deadline = tcp_deadline(wait_ns);
    int error = check_attr(attr, &client.attr);
    if (error == 0)
        error = reach(where, deadline, &client.tcp);
    if (error != 0)
        return error;
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    client.started_ns = tcp_now();
    error = greet(&client, deadline);
    if (error == 0) {
        error = measure(&client);
        probe_port_close(&client.port);
    }
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0ul);
    close(client.tcp);
    if (error == 0)
        *out = result;
    return error;
}
