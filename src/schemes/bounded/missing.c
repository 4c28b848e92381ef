/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/bounded/missing.h"

#include <assert.h>
#include <math.h>

#define EARLY 1e-9 /* of a chunk: rounding */

/* What ec_missing_of() and ec_partial_start() take. */
static struct lh_model_scheme code_of(const struct lh_model_scheme *scheme)
{
    struct lh_model_scheme code = *scheme;
    code.kind = scheme->xor_code ? LH_MODEL_EC_XOR : LH_MODEL_EC_MDS;
    return code;
}

void bounded_missing_start(struct bounded_missing *segment, const struct lh_model_scheme *scheme,
                           const struct model_message *message)
{
    *segment = (struct bounded_missing){.loss = message->loss,
                                        .packets = message->packets,
                                        .inject_s = message->inject_s,
                                        .data_s = message->chunks * message->inject_s,
                                        .rtt_s = message->rtt_s,
                                        .window_s = message->window_s,
                                        .xor_code = scheme->xor_code};
    if (scheme->k == 0)
        return;
    const struct lh_model_scheme code = code_of(scheme);
    ec_missing_of(&code, &message->loss, message->chunks, &segment->missing);
    ec_partial_start(&segment->partial, &code, &message->loss, message->chunks, &segment->missing);
    segment->parity = segment->missing.parity_chunks;
}

double bounded_missing_settled(const struct bounded_missing *segment)
{
    return segment->data_s + segment->parity * segment->inject_s + segment->rtt_s + segment->window_s;
}

/* Chunks of parity that have come by then; below 0: not all data has. */
static double parity_by(const struct bounded_missing *segment, double seconds)
{
    double chunks = (seconds - segment->rtt_s - segment->data_s) / segment->inject_s;
    return fmin(segment->parity, floor(chunks + EARLY));
}

/* No burst is under way, and none begins. */
static double log_plain_whole(const struct bounded_missing *segment)
{
    const struct model_loss *loss = &segment->loss;
    return log1p(-loss->packet) + (segment->packets - 1) * log1p(-loss->enter);
}

double bounded_missing_log_whole(const struct bounded_missing *segment, double seconds)
{
    double parity = parity_by(segment, seconds);
    if (parity < 0)
        return -INFINITY;
    return segment->parity > 0 ? ec_partial_log(&segment->partial, parity) : log_plain_whole(segment);
}

/* ---- how much ---------------------------------------------------------------------------------------- */

/* Packets from one chunk of a submessage to the next, but for itself. */
static double between(const struct bounded_missing *segment, double strides)
{
    return (segment->missing.stride * strides - 1) * segment->loss.chunk_packets;
}

/* More than `rows` of the data and of that many rows of parity are lost. Of chunks. */
static double mds_share(const struct bounded_missing *segment, unsigned size, unsigned rows)
{
    double chance[MODEL_COUNT_MAX + 1];
    unsigned all = size + rows;
    double missing = 0;
    model_lost_chunks(&segment->loss, all, between(segment, 1), chance);
    for (unsigned x = rows + 1; x <= all; x++)
        missing += chance[x] * x / all;
    return missing;
}

/* A class with its parity may lack one, one without it none; else nothing of the submessage is recovered. */
static double xor_share(const struct bounded_missing *segment, unsigned size, unsigned rows)
{
    double chance[MODEL_COUNT_MAX + 1];
    unsigned classes = segment->missing.rows < size ? segment->missing.rows : size;
    unsigned data = (size + classes - 1) / classes;
    rows = rows < classes ? rows : classes;
    if (segment->loss.chunk <= 0)
        return 0;
    model_lost_chunks(&segment->loss, data, between(segment, classes), chance);
    double none = chance[0];
    model_lost_chunks(&segment->loss, data + 1, between(segment, classes), chance);
    double met = chance[0] + chance[1];
    double alone =
        fmin(1, chance[1] / (data + 1) / segment->loss.chunk); /* all others of its class are there */
    double recovered =
        rows > 0 ? alone * pow(met, rows - 1) * pow(none, classes - rows) * rows / classes : 0;
    return segment->loss.chunk * (1 - recovered);
}

/* With so many rows of parity. Of the data's bytes. */
static double share_with(const struct bounded_missing *segment, unsigned rows)
{
    const struct model_loss *loss = &segment->loss;
    double chunks = loss->chunk;
    unsigned size = segment->missing.kind[0].size;
    if (rows > 0)
        chunks = segment->xor_code ? xor_share(segment, size, rows) : mds_share(segment, size, rows);
    return loss->chunk > 0 ? chunks * loss->packet / loss->chunk : 0;
}

double bounded_missing_share(const struct bounded_missing *segment, double seconds)
{
    double parity = parity_by(segment, seconds);
    if (parity < 0) {
        double came_s = fmax(0, seconds - segment->rtt_s);
        return 1 - came_s / segment->data_s * (1 - segment->loss.packet);
    }
    if (segment->parity <= 0)
        return segment->loss.packet;
    double rows = fmin(segment->missing.rows, parity / segment->missing.submessages);
    unsigned all = (unsigned)rows;
    double share = share_with(segment, all);
    if (rows > all) /* some have had one more */
        share += (rows - all) * (share_with(segment, all + 1) - share);
    assert(share >= 0 && share <= 1);
    return share;
}
