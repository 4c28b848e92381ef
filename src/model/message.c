/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/message.h"

#include <assert.h>
#include <math.h>

#include "base/error.h"
#include "model/longhaul_timing.h"

#define BYTES_MAX    ((uint64_t)1 << 63)
#define PACKETS_MAX  1e15 /* a double counts them, and selective repeat has levels for as many chunks */
#define RTT_MAX_S    1e6
#define RATE_MAX_BPS 1e18

static int check_sizes(const struct lh_model_path *path)
{
    if (path->message_bytes == 0 || path->message_bytes >= BYTES_MAX)
        return lh_fail(LH_ERANGE, "message of %llu bytes: out of range (1 to below 2^63)",
                       (unsigned long long)path->message_bytes);
    if (path->mtu_bytes == 0)
        return lh_fail(LH_EINVAL, "an MTU of 0 bytes carries nothing; use 4096, say");
    if (path->chunk_bytes == 0 || path->chunk_bytes >= BYTES_MAX)
        return lh_fail(LH_ERANGE, "chunk of %llu bytes: out of range (1 to below 2^63)",
                       (unsigned long long)path->chunk_bytes);
    if (path->chunk_bytes % path->mtu_bytes != 0)
        return lh_fail(LH_EINVAL,
                       "a chunk of %llu bytes is not a whole number of packets of %u bytes; make it a "
                       "multiple of the MTU",
                       (unsigned long long)path->chunk_bytes, path->mtu_bytes);
    if ((double)path->message_bytes / path->mtu_bytes > PACKETS_MAX)
        return lh_fail(LH_ERANGE, "%llu bytes are over 10^15 packets of %u bytes; raise the MTU",
                       (unsigned long long)path->message_bytes, path->mtu_bytes);
    return 0;
}

/* Not (a > 0) rather than a <= 0: a NaN is neither. */
static int check_link(const struct lh_model_path *path)
{
    if (!(path->bandwidth_bps > 0) || !(path->bandwidth_bps <= RATE_MAX_BPS))
        return lh_fail(LH_ERANGE, "bandwidth %g bit/s: out of range (above 0 to %g)", path->bandwidth_bps,
                       RATE_MAX_BPS);
    if (!(path->rtt_s > 0) || !(path->rtt_s <= RTT_MAX_S))
        return lh_fail(LH_ERANGE, "round-trip time %g s: out of range (above 0 to %g s)", path->rtt_s,
                       RTT_MAX_S);
    if (!(path->loss >= 0) || !(path->loss < 1))
        return lh_fail(LH_ERANGE, "loss %g: out of range (0 to below 1)", path->loss);
    if (!(path->burst_packets >= 0) || !(path->burst_packets <= 1e9))
        return lh_fail(LH_ERANGE, "burst length %g packets: out of range (1 to 10^9, or 0 for none)",
                       path->burst_packets);
    if (path->burst_packets > 0 && path->burst_packets < 1)
        return lh_fail(LH_EINVAL, "burst length %g packets: out of range (1 to 10^9, or 0 for none)",
                       path->burst_packets);
    if (!(path->reorder_window_s >= 0) || !(path->reorder_window_s <= RTT_MAX_S))
        return lh_fail(LH_ERANGE, "reordering window %g s: out of range (0 to %g s; 0: unknown)",
                       path->reorder_window_s, RTT_MAX_S);
    return 0;
}

static int take_loss(const struct lh_model_path *path, double chunk_packets, struct model_loss *loss)
{
    double burst = path->burst_packets > 1 ? path->burst_packets : 0;
    if (burst > 0 && !path->loss_of_chunk && path->loss > burst / (burst + 1))
        return lh_fail(
            LH_ERANGE,
            "bursts of %g packets lose at most %g of them, since one passes between two; a loss of "
            "%g needs longer ones",
            burst, burst / (burst + 1), path->loss);
    *loss = path->loss_of_chunk ? model_loss_of_chunks(path->loss, burst, chunk_packets)
                                : model_loss_of_packets(path->loss, burst, chunk_packets);
    if (path->loss_of_chunk && fabs(loss->chunk - path->loss) > 1e-6 * path->loss)
        return lh_fail(LH_ERANGE, "bursts of %g packets cannot lose %g of the chunks; ask for longer ones",
                       burst, path->loss);
    if (loss->chunk > MODEL_CHUNK_LOSS_MAX)
        return lh_fail(
            LH_ERANGE,
            "%.4g %% of the chunks are lost, and hardly a message ends; the model goes to %g %%: use "
            "smaller chunks",
            100 * loss->chunk, 100 * MODEL_CHUNK_LOSS_MAX);
    return 0;
}

int model_message_of(const struct lh_model_path *path, double rto_rtts, struct model_message *message)
{
    struct model_message of = {.rtt_s = path->rtt_s};
    int failed = check_sizes(path);
    if (!failed)
        failed = check_link(path);
    if (failed)
        return failed;
    double bytes = (double)path->message_bytes;
    of.chunks =
        (double)(path->message_bytes / path->chunk_bytes + (path->message_bytes % path->chunk_bytes != 0));
    of.packets =
        (double)(path->message_bytes / path->mtu_bytes + (path->message_bytes % path->mtu_bytes != 0));
    failed = take_loss(path, fmin((double)(path->chunk_bytes / path->mtu_bytes), of.packets), &of.loss);
    if (failed)
        return failed;
    of.message_wire_bytes = bytes + of.packets * path->header_bytes;
    double message_s = of.message_wire_bytes * 8 / path->bandwidth_bps;
    of.inject_s = message_s / of.chunks;
    of.packet_inject_s = message_s / of.packets;
    of.rto_s = rto_rtts * path->rtt_s;
    of.first_s = of.rto_s;
    of.ideal_s = message_s + path->rtt_s;
    assert(of.chunks >= 1 && of.packets >= of.chunks);
    *message = of;
    return 0;
}

uint64_t model_message_segment(const struct lh_model_path *path)
{
    if (path->segment_bytes == 0 || path->chunk_bytes == 0 || path->segment_bytes >= path->message_bytes)
        return path->message_bytes;
    uint64_t whole = path->segment_bytes - path->segment_bytes % path->chunk_bytes;
    return whole > 0 ? whole : path->chunk_bytes;
}

double model_message_overhead(const struct model_message *message)
{
    return message->rto_s / message->inject_s + 1;
}

void model_message_repeat(const struct model_message *message, struct model_repeat *repeat)
{
    double overhead = model_message_overhead(message);
    if (message->longhaul)
        model_repeat_start_packets(repeat, &message->loss, message->first_s / message->inject_s + 1,
                                   overhead, message->chunks);
    else
        model_repeat_start(repeat, &message->loss, overhead, message->chunks);
}

double model_message_whole(const struct model_message *message)
{
    return message->ideal_s + message->repairs_s;
}
