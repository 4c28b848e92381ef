/*
 * controller_sim.c - a congestion controller of this program, and bbr, over the same simulated path.
 *
 * "aimd": a window that grows by a packet a round trip and is halved by a loss (Jacobson 1988). The same code
 * controls a real connection: lh_congestion_add(), then lh_attr.congestion = "aimd".
 *
 * Needs liblonghaul-sim: cc controller_sim.c $(pkg-config --cflags --libs longhaul-sim)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/longhaul.h>
#include <longhaul/sim.h>

/* ---- the controller ---- */

struct aimd {
    struct lh_congestion_path path;
    double window, threshold; /* payload bytes; below the threshold it doubles each round trip */
    double rtt_ns;            /* the shortest; 0: none yet */
    uint64_t cut_until;       /* losses of what was sent before that total are of the same round trip */
};

static int parse(const char *text, uint8_t params[LH_CONGESTION_PARAMS])
{
    memset(params, 0, LH_CONGESTION_PARAMS);
    return *text == '\0' ? 0 : -LH_EINVAL;
}

static void start(void *state, const struct lh_congestion_path *path,
                  const uint8_t params[LH_CONGESTION_PARAMS], lh_time now)
{
    (void)params, (void)now;
    *(struct aimd *)state = (struct aimd){.path = *path,
                                          .window = 10.0 * path->mtu_bytes,
                                          .threshold = (double)path->window_max_bytes,
                                          .rtt_ns = (double)path->rtt_ns};
}

static void on_feedback(void *state, const struct lh_congestion_feedback *report)
{
    struct aimd *aimd = state;
    double mtu = aimd->path.mtu_bytes, arrived = (double)report->arrived_bytes;
    if (report->rtt_ns != 0 && (aimd->rtt_ns == 0 || (double)report->rtt_ns < aimd->rtt_ns))
        aimd->rtt_ns = (double)report->rtt_ns;
    uint64_t settled = report->arrived_total_bytes + report->lost_total_bytes;
    if (report->lost_bytes > 0 && settled >= aimd->cut_until) {
        aimd->window /= 2;
        aimd->threshold = aimd->window;
        aimd->cut_until = settled + report->in_flight_bytes;
    } else {
        aimd->window += aimd->window < aimd->threshold ? arrived : mtu * arrived / aimd->window;
    }
    if (aimd->window < 2 * mtu) /* it never stops */
        aimd->window = 2 * mtu;
}

static void on_timer(void *state, lh_time now)
{
    (void)state, (void)now;
}

static void decide(const void *state, lh_time now, struct lh_congestion_decision *decision)
{
    const struct aimd *aimd = state;
    (void)now;
    double window = aimd->window, most = (double)aimd->path.window_max_bytes;
    double rate = aimd->rtt_ns > 0 ? 1.25 * window * 8e9 / aimd->rtt_ns : 1e9;
    *decision = (struct lh_congestion_decision){
        .rate_bps = rate < (double)aimd->path.rate_max_bps ? (uint64_t)rate : aimd->path.rate_max_bps,
        .window_bytes = (uint64_t)(window < most ? window : most),
        .total_bytes = UINT64_MAX,
        .next_ns = LH_TIME_NEVER,
    };
}

static void view(const void *state, struct lh_congestion_view *out)
{
    const struct aimd *aimd = state;
    *out = (struct lh_congestion_view){
        .rtt_minimum_ns = (lh_time)aimd->rtt_ns,
        .state = aimd->window < aimd->threshold ? "slow start" : "avoidance",
    };
}

static const struct lh_congestion aimd_controller = {
    .name = "aimd",
    .help = "no parameters; halves its window by a loss",
    .parse = parse,
    .state_bytes = sizeof(struct aimd),
    .start = start,
    .on_feedback = on_feedback,
    .on_timer = on_timer,
    .decide = decide,
    .view = view,
};

/* ---- a message over the path ---- */

static uint8_t out[32 << 20], in[sizeof(out)];

static void must(int result)
{
    if (result < 0)
        errx(1, "%s", lh_last_error());
}

static void open_hosts(const char *congestion, struct lh_connection *hosts[2])
{
    uint8_t blobs[2][LH_BLOB_MAX];
    size_t bytes[2] = {LH_BLOB_MAX, LH_BLOB_MAX};
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.congestion = congestion;
    attr.workers = LH_NO_WORKERS; /* the loop in transfer() lets them work */
    for (int i = 0; i < 2; i++) {
        attr.device = i == 0 ? "sim:path/0" : "sim:path/1";
        must(lh_open(&attr, &hosts[i])), must(lh_blob(hosts[i], blobs[i], &bytes[i]));
    }
    for (int i = 0; i < 2; i++)
        must(lh_attach(hosts[i], blobs[1 - i], bytes[1 - i]));
}

/* Returns whether bytes are wrong. */
static int transfer(const char *congestion, const char *link)
{
    struct lh_sim_attr attr = {.name = "path", .seed = 1};
    struct lh_sim_world *world;
    struct lh_connection *hosts[2];
    struct lh_request *send, *receive;
    struct lh_result sent, received = {0};
    must(lh_link_parse(link, &attr.link));
    must(lh_sim_world_create(&attr, &world));
    open_hosts(congestion, hosts);
    memset(in, 0, sizeof(in));
    must(lh_recv(hosts[1], in, sizeof(in), NULL, &receive));
    must(lh_send(hosts[0], out, sizeof(out), NULL, &send));
    while (!lh_test(send, &sent) || !lh_test(receive, &received)) {
        must(lh_sim_world_turn(world, hosts, 2, 600 * LH_NS_PER_S));
        if (lh_sim_world_now(world) == 600 * LH_NS_PER_S)
            errx(1, "%s: not done after 600 s of virtual time", congestion);
    }
    must(sent.error), must(received.error);
    struct lh_sim_counts counts;
    lh_sim_world_counts(world, &counts);
    printf("%-5s 32 MiB in %6.0f ms of virtual time, %llu of %llu packets lost\n", congestion,
           (double)(sent.ended_ns - sent.started_ns) / 1e6, (unsigned long long)counts.lost_packets,
           (unsigned long long)counts.sent_packets);
    lh_request_free(send);
    lh_request_free(receive);
    for (int i = 0; i < 2; i++)
        lh_close(hosts[i]);
    lh_sim_world_destroy(world);
    return memcmp(in, out, sizeof(out)) != 0;
}

int main(int argc, char **argv)
{
    const char *link = argc > 1 ? argv[1] : "rtt=25ms,rate=1Gbit,queue=1MiB,loss=1e-4";
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 2654435761u >> 24);
    must(lh_congestion_add(&aimd_controller));
    int wrong = transfer("aimd", link);
    wrong |= transfer("bbr", link);
    if (wrong)
        puts("bytes are wrong");
    return wrong;
}
