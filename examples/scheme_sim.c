/*
 * scheme_sim.c - the scheme of blast.h between two simulated hosts: what takes seconds over an ocean takes
 * milliseconds here, and is the same each time.
 *
 * Needs liblonghaul-sim: cc scheme_sim.c $(pkg-config --cflags --libs longhaul-sim)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/longhaul.h>
#include <longhaul/sim.h>

#include "blast.h"

static void must(int result)
{
    if (result < 0)
        errx(1, "%s", lh_last_error());
}

static void open_hosts(struct lh_connection *hosts[2])
{
    uint8_t blobs[2][LH_BLOB_MAX];
    size_t bytes[2] = {LH_BLOB_MAX, LH_BLOB_MAX};
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.scheme = &blast_scheme;
    attr.workers = LH_NO_WORKERS; /* the loop in main() lets them work */
    attr.rate_bps = 10000000000;
    for (int i = 0; i < 2; i++) {
        attr.device = i == 0 ? "sim:ocean/0" : "sim:ocean/1";
        must(lh_open(&attr, &hosts[i])), must(lh_blob(hosts[i], blobs[i], &bytes[i]));
    }
    for (int i = 0; i < 2; i++)
        must(lh_attach(hosts[i], blobs[1 - i], bytes[1 - i]));
}

int main(int argc, char **argv)
{
    static uint8_t out[16 << 20], in[sizeof(out)];
    struct lh_sim_attr attr = {.name = "ocean", .seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    struct lh_sim_world *world;
    struct lh_connection *hosts[2];
    struct lh_request *send, *receive;
    struct lh_result sent, received = {0};
    must(lh_link_parse("rtt=25ms,rate=10Gbit,loss=1%", &attr.link));
    must(lh_sim_world_create(&attr, &world));
    open_hosts(hosts);
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 2654435761u >> 24);
    must(lh_recv(hosts[1], in, sizeof(in), NULL, &receive));
    must(lh_send(hosts[0], out, sizeof(out), NULL, &send));
    while (!lh_test(send, &sent) || !lh_test(receive, &received)) {
        must(lh_sim_world_turn(world, hosts, 2, 60 * LH_NS_PER_S));
        if (lh_sim_world_now(world) == 60 * LH_NS_PER_S)
            errx(1, "not done after 60 s of virtual time");
    }
    must(sent.error), must(received.error);
    int wrong = received.bytes != sizeof(out) || memcmp(in, out, sizeof(out)) != 0;
    struct lh_sim_counts counts;
    lh_sim_world_counts(world, &counts);
    printf("16 MiB in %.3f ms of virtual time, %llu of %llu packets lost, %s\n",
           (double)(sent.ended_ns - sent.started_ns) / 1e6, (unsigned long long)counts.lost_packets,
           (unsigned long long)counts.sent_packets, wrong ? "bytes are wrong" : "each byte right");
    lh_request_free(send);
    lh_request_free(receive);
    for (int i = 0; i < 2; i++)
        lh_close(hosts[i]);
    lh_sim_world_destroy(world);
    return wrong;
}
