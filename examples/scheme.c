/*
 * scheme.c - a transfer with a user-defined reliability scheme (blast.h), over a link that loses one packet
 * in 100.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/longhaul.h>

#include "blast.h"

static void must(int result)
{
    if (result < 0)
        errx(1, "%s", lh_last_error());
}

int main(void)
{
    static uint8_t blobs[2][LH_BLOB_MAX], out[16 << 20], in[sizeof(out)];
    size_t bytes[2] = {LH_BLOB_MAX, LH_BLOB_MAX};
    struct lh_connection *ends[2];
    struct lh_request *send, *receive;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.device = "udp:127.0.0.1";
    attr.scheme = &blast_scheme;
    must(lh_link_parse("rtt=10ms,loss=1%", &attr.link));
    for (int i = 0; i < 2; i++)
        must(lh_open(&attr, &ends[i])), must(lh_blob(ends[i], blobs[i], &bytes[i]));
    for (int i = 0; i < 2; i++) /* two processes exchange the blobs by other means */
        must(lh_attach(ends[i], blobs[1 - i], bytes[1 - i]));
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 2654435761u >> 24);
    must(lh_recv(ends[1], in, sizeof(in), NULL, &receive));
    must(lh_send(ends[0], out, sizeof(out), NULL, &send));
    must(lh_wait(receive, LH_TIME_NEVER, NULL)), must(lh_wait(send, LH_TIME_NEVER, NULL));
    int wrong = memcmp(in, out, sizeof(out)) != 0;
    puts(wrong ? "the bytes are not those that were sent" : "16 MiB, each byte right");
    lh_request_free(send);
    lh_request_free(receive);
    for (int i = 0; i < 2; i++)
        lh_close(ends[i]);
    return wrong;
}
