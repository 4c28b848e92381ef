/*
 * test_probe_measure.c - whole probes of an emulated path on the loopback interface: what they report adds
 * up, and is what the link does; and the orders that a probe refuses.
 *
 * The link's fates follow from its seed, so that losses are the same in each run. How long anything takes
 * decides nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/probe.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "probe/probe_measure.h"

#define PATIENCE_NS (60 * LH_NS_PER_S)
#define TRIALS      3u
#define PACKETS     121u /* one more for the first flow */
#define SIZES       2u
#define FLOWS       2u

static void *serve(void *server)
{
    return (void *)(intptr_t)lh_probe_serve(server, PATIENCE_NS);
}

static int probe(const struct lh_probe_attr *attr, struct lh_probe_result *result)
{
    struct lh_probe_server *server;
    pthread_t thread;
    void *served;
    char where[32];
    assert_int_equal(lh_probe_listen("127.0.0.1:0", &server), 0);
    snprintf(where, sizeof where, "127.0.0.1:%u", lh_probe_server_port(server));
    assert_int_equal(pthread_create(&thread, NULL, serve, server), 0);
    int error = lh_probe_run(where, attr, PATIENCE_NS, result);
    assert_int_equal(pthread_join(thread, &served), 0);
    lh_probe_server_close(server);
    if (error == 0)
        assert_int_equal((intptr_t)served, 0);
    return error;
}

static struct lh_probe_attr order(const char *link)
{
    struct lh_probe_attr attr;
    lh_probe_attr_init(&attr);
    assert_int_equal(lh_link_parse(link, &attr.link), 0);
    attr.time_ns = LH_PROBE_TIME_MIN;
    attr.rate_bps = 40000000; /* no socket is ever full */
    attr.trials = TRIALS;
    attr.packets = PACKETS;
    attr.flows = FLOWS;
    attr.size_count = SIZES;
    attr.payload_bytes[0] = 1000;
    attr.payload_bytes[1] = 200;
    return attr;
}

static bool is_share(double share, uint64_t part, uint64_t whole)
{
    return share * (double)whole > (double)part - 1e-6 && share * (double)whole < (double)part + 1e-6;
}

/* The best and the worst flow lost them together, each of what it had sent. */
static void check_flows(const struct lh_probe_result *result, uint64_t lost)
{
    const uint64_t first = TRIALS * SIZES * (PACKETS / FLOWS + 1),
                   second = TRIALS * SIZES * (PACKETS / FLOWS);
    bool found = false;
    for (uint64_t of_first = 0; of_first <= lost; of_first++)
        found |= (is_share(result->flow_loss_low, of_first, first) &&
                  is_share(result->flow_loss_high, lost - of_first, second)) ||
                 (is_share(result->flow_loss_high, of_first, first) &&
                  is_share(result->flow_loss_low, lost - of_first, second));
    assert_true(found);
    assert_true(result->flow_loss_low <= result->flow_loss_high);
}

/* What holds for any probe of that order. */
static void check_sums(const struct lh_probe_result *result)
{
    uint64_t sent = 0, lost = 0;
    assert_int_equal(result->trials, TRIALS * SIZES);
    assert_int_equal(result->size_count, SIZES);
    assert_int_equal(result->flows, FLOWS);
    assert_int_equal(result->sent, TRIALS * SIZES * PACKETS);
    assert_int_equal(result->sizes[0].payload_bytes, 1000);
    assert_int_equal(result->sizes[1].payload_bytes, 200);
    for (uint32_t i = 0; i < SIZES; i++) {
        const struct lh_probe_size *size = &result->sizes[i];
        uint64_t of_size = 0;
        double low = 1, high = 0;
        assert_int_equal(size->trial_count, TRIALS);
        for (uint32_t t = 0; t < TRIALS; t++) {
            double loss = (double)size->trials[t].lost / PACKETS;
            assert_int_equal(size->trials[t].sent, PACKETS);
            assert_false(size->trials[t].excluded);
            of_size += size->trials[t].lost;
            low = loss < low ? loss : low;
            high = loss > high ? loss : high;
        }
        assert_int_equal(size->loss.sent, TRIALS * PACKETS);
        assert_int_equal(size->loss.lost, of_size);
        assert_true(size->trial_low >= low && size->trial_low <= low);
        assert_true(size->trial_high >= high && size->trial_high <= high);
        assert_true(size->loss.loss_low <= size->loss.loss && size->loss.loss <= size->loss.loss_high);
        sent += size->loss.sent;
        lost += of_size;
    }
    assert_int_equal(result->received, sent - lost);
    if (result->loss_payload_bytes == 0) {
        assert_int_equal(result->loss.sent, sent);
        assert_int_equal(result->loss.lost, lost);
    }
    check_flows(result, lost);
    assert_int_equal(result->trials_excluded + result->endpoint_drops_socket, 0);
    assert_true(result->rtt_samples > 0);
    assert_true(result->rtt_min_ns <= result->rtt_ns && result->rtt_ns <= result->rtt_p99_ns &&
                result->rtt_p99_ns <= result->rtt_max_ns);
    assert_true(result->rate_bps > 0 && result->rate_limit >= LH_PROBE_LIMIT_PATH);
    assert_true(result->path_mtu_bytes >= 1500 && result->mtu_bytes >= 1024 &&
                result->mtu_bytes < result->path_mtu_bytes);
    assert_false(result->ipv6);
}

static void a_path_that_loses(void **state)
{
    (void)state;
    static struct lh_probe_result result;
    const struct lh_probe_attr attr = order("delay=1ms,loss=0.1,duplicate=0.05,seed=7");
    assert_int_equal(probe(&attr, &result), 0);
    check_sums(&result);
    assert_true(result.rtt_min_ns >= 2 * LH_NS_PER_MS);
    assert_true(result.loss.loss > 0.05 && result.loss.loss < 0.15);
    assert_true(result.duplicate > 0.02 && result.duplicate < 0.1);
    assert_true(result.flow_loss_low > 0);
}

static void a_path_that_does_nothing(void **state)
{
    (void)state;
    static struct lh_probe_result result;
    const struct lh_probe_attr attr = order("none");
    assert_int_equal(probe(&attr, &result), 0);
    check_sums(&result);
    assert_int_equal(result.loss.lost, 0);
    assert_int_equal(result.loss_payload_bytes, 0);
    assert_true(result.loss.loss <= 0 && result.duplicate <= 0 && result.reorder <= 0);
    assert_true(result.flow_loss_high <= 0);
    assert_int_equal(result.reorder_extent_max, 0);
}

/* ---- a server that leaves ---------------------------------------------------------------------------- */

/* A session over a TCP connection and a UDP port; there is nobody at either. */
static void begin_session(struct probe_session *session, int *other)
{
    static struct lh_probe_result result;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *session = (struct probe_session){.tcp = ends[0], .result = &result};
    session->attr.time_ns = LH_PROBE_TIME_MIN;
    session->port.peer.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(7001)};
    session->port.client = true;
    session->port.flows = 1;
    session->port.fds[0] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* not connected */
    *other = ends[1];
}

static void end_session(struct probe_session *session, int other)
{
    probe_port_close(&session->port);
    close(session->tcp);
    close(other);
}

static void the_server_is_watched(void **state)
{
    (void)state;
    struct probe_session session;
    int other;
    begin_session(&session, &other);
    shutdown(other, SHUT_WR);
    assert_int_equal(probe_measure_rtt(&session), -LH_EPEER);
    assert_string_equal(lh_last_error(), "the server disconnected");
    end_session(&session, other);
    begin_session(&session, &other);
    assert_int_equal(send(other, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(probe_measure_rtt(&session), -LH_EPROTOCOL);
    assert_string_equal(lh_last_error(), "unexpected data from the server");
    end_session(&session, other);
}

/* The reason is the last error of a packet, where there was one. */
static void no_packet_passes(void **state)
{
    (void)state;
    struct probe_session session;
    char words[128];
    int other;
    begin_session(&session, &other);
    assert_int_equal(probe_measure_rtt(&session), -LH_EPEER);
    snprintf(words, sizeof words, "UDP port 7001 of the server: %s (TCP reaches it)",
             strerror(EDESTADDRREQ));
    assert_string_equal(lh_last_error(), words);
    end_session(&session, other);
}

/* ---- orders that are refused ------------------------------------------------------------------------- */

/* Nobody is there: a good order fails for that. */
static int ask(const struct lh_probe_attr *attr)
{
    static struct lh_probe_result result;
    return lh_probe_run("127.0.0.1:1", attr, 0, &result);
}

static void refused(const struct lh_probe_attr *attr, int error, const char *words)
{
    assert_int_equal(ask(attr), error);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

static void accepted(const struct lh_probe_attr *attr)
{
    int error = ask(attr);
    assert_true(error == -LH_EPEER || error == -LH_ETIMEDOUT);
}

static void orders_are_checked(void **state)
{
    (void)state;
    struct lh_probe_attr attr;
    lh_probe_attr_init(&attr);
    assert_int_equal(attr.time_ns, 10 * LH_NS_PER_S);
    assert_int_equal(attr.trials, 5);
    assert_int_equal(attr.flows, 1);
    accepted(&attr);
    attr.struct_bytes++;
    refused(&attr, -LH_EINVAL, "call lh_probe_attr_init");
    attr.struct_bytes--;
    attr.time_ns = attr.trials = attr.flows = 0; /* the defaults */
    accepted(&attr);
    attr.time_ns = LH_PROBE_TIME_MIN - 1;
    refused(&attr, -LH_ERANGE, "time_ns 999999999: out of range (1000000000 to 600000000000)");
    attr.time_ns = LH_PROBE_TIME_MAX + 1;
    refused(&attr, -LH_ERANGE, "time_ns");
    attr.time_ns = LH_PROBE_TIME_MAX;
    attr.trials = LH_PROBE_TRIALS_MAX + 1;
    refused(&attr, -LH_ERANGE, "trials 65: out of range (1 to 64)");
    attr.trials = LH_PROBE_TRIALS_MAX;
    attr.flows = LH_PROBE_FLOWS_MAX + 1;
    refused(&attr, -LH_ERANGE, "flows 17: out of range (1 to 16)");
    attr.flows = LH_PROBE_FLOWS_MAX;
    attr.packets = LH_PROBE_PACKETS_MAX + 1;
    refused(&attr, -LH_ERANGE, "packets 1000001: out of range (0 to 1000000)");
    attr.packets = LH_PROBE_PACKETS_MAX;
    attr.rate_bps = 9999;
    refused(&attr, -LH_ERANGE, "rate_bps 9999: out of range (10000 to ");
    attr.rate_bps = 10000;
    accepted(&attr);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    struct lh_probe_attr attr;
    lh_probe_attr_init(&attr);
    attr.size_count = LH_PROBE_SIZES_MAX + 1;
    refused(&attr, -LH_ERANGE, "size_count 17: out of range (0 to 16)");
    attr.size_count = LH_PROBE_SIZES_MAX;
    for (uint32_t i = 0; i < LH_PROBE_SIZES_MAX; i++)
        attr.payload_bytes[i] = LH_PROBE_PAYLOAD_MIN + i;
    attr.payload_bytes[LH_PROBE_SIZES_MAX - 1] = LH_PROBE_PAYLOAD_MAX;
    accepted(&attr);
    attr.payload_bytes[LH_PROBE_SIZES_MAX - 1]++;
    refused(&attr, -LH_ERANGE, "payload_bytes 65001: out of range (64 to 65000)");
    attr.payload_bytes[LH_PROBE_SIZES_MAX - 1] = LH_PROBE_PAYLOAD_MIN - 1;
    refused(&attr, -LH_ERANGE, "payload_bytes 63: out of range (64 to 65000)");
    attr.payload_bytes[LH_PROBE_SIZES_MAX - 1] = attr.payload_bytes[0];
    refused(&attr, -LH_EINVAL, "payload_bytes: 64 listed twice");
    attr.size_count--;
    accepted(&attr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_that_loses),     cmocka_unit_test(a_path_that_does_nothing),
        cmocka_unit_test(the_server_is_watched), cmocka_unit_test(no_packet_passes),
        cmocka_unit_test(orders_are_checked),    cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
