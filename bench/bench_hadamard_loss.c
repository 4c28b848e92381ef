/*
 * What lost packets do to a tensor, sent as it is or after a transform (OptiNIC paper, figure 7): messages
 * of 65,536 numbers in packets of 256, some of them lost; squared error of the decoded message over its
 * energy.
 *
 * Raw, whole message (one block), blocks of a packet, and blocks with stride lose the same packets.
 * A tensor is `even` (normal numbers) or has `outliers`: one in 1,000 is 100 times as large, and one packet
 * in 64 is 10 times as large. Losses are independent, or bursts of 8 packets in the mean.
 *
 * usage: bench_hadamard_loss [--messages N]
 * One row a point: tensor, loss, transform, stride, drop rate; mean and p99 over messages of the error;
 * mean and p99 of the worst block's error over that block's energy; share of messages with a block of which
 * all is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/hadamard.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "report.h"

#define PACKET       256u
#define PACKETS      256u
#define ELEMENTS     (PACKET * PACKETS)
#define TENSORS      64u
#define MESSAGES_MAX 10000u
#define BURST        8.0

struct transform {
    const char *name;
    uint32_t block, stride;
};

static const struct transform transforms[] = {
    {"raw", 0, 0},          {"message", ELEMENTS, 1}, {"block", PACKET, 1},    {"stride", PACKET, 2},
    {"stride", PACKET, 4},  {"stride", PACKET, 8},    {"stride", PACKET, 16},  {"stride", PACKET, 32},
    {"stride", PACKET, 64}, {"stride", PACKET, 128},  {"stride", PACKET, 256},
};
#define TRANSFORMS (sizeof transforms / sizeof transforms[0])

static const double rates[] = {0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1};
#define RATES (sizeof rates / sizeof rates[0])

static float tensors[TENSORS][ELEMENTS];
static float encoded[TENSORS][ELEMENTS], work[ELEMENTS], decoded[ELEMENTS];
static double energy[TENSORS], block_energy[TENSORS][PACKETS];

struct errors {
    double message[MESSAGES_MAX], worst[MESSAGES_MAX];
    unsigned blocks_lost;
};
static struct errors errors;

static double normal(struct lh_prng *prng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += lh_prng_double(prng);
    return sum;
}

static void make_tensors(bool outliers)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 19);
    for (unsigned t = 0; t < TENSORS; t++) {
        energy[t] = 0;
        for (unsigned b = 0; b < PACKETS; b++) {
            const double scale = outliers && lh_prng_chance(&prng, 1.0 / 64) ? 10 : 1;
            block_energy[t][b] = 0;
            for (unsigned i = 0; i < PACKET; i++) {
                double number = normal(&prng) * scale;
                if (outliers && lh_prng_chance(&prng, 1e-3))
                    number *= 100;
                tensors[t][b * PACKET + i] = (float)number;
                block_energy[t][b] += number * number;
            }
            energy[t] += block_energy[t][b];
        }
    }
}

static struct lh_hadamard description(const struct transform *transform, unsigned t)
{
    return (struct lh_hadamard){
        LH_HADAMARD_F32, LH_HADAMARD_REFUSE, transform->block, transform->stride, t, NULL};
}

static void must(int failed)
{
    if (failed) {
        fprintf(stderr, "bench_hadamard_loss: %s\n", lh_last_error());
        exit(1);
    }
}

/* Which packets are lost: bursts begin so often that `rate` of all is. */
static uint64_t lose(struct lh_prng *prng, double rate, bool bursts, struct lh_range *ranges)
{
    const double length = bursts ? BURST : 1;
    const double begin = rate / (length * (1 - rate) + rate);
    const double end = 1 / length;
    bool lost = lh_prng_chance(prng, rate);
    uint64_t count = 0;
    for (unsigned packet = 0; packet < PACKETS; packet++) {
        if (!bursts)
            lost = lh_prng_chance(prng, rate);
        if (lost)
            ranges[count++] = (struct lh_range){packet * PACKET * sizeof(float), PACKET * sizeof(float)};
        if (bursts)
            lost = lost ? !lh_prng_chance(prng, end) : lh_prng_chance(prng, begin);
    }
    return count;
}

static void decode(const struct transform *transform, unsigned t, const struct lh_range *missing,
                   uint64_t count)
{
    if (transform->block == 0) {
        memcpy(decoded, tensors[t], sizeof decoded);
        for (uint64_t i = 0; i < count; i++)
            memset((char *)decoded + missing[i].offset, 0, missing[i].bytes);
        return;
    }
    const struct lh_hadamard hadamard = description(transform, t);
    const struct lh_hadamard_arrival arrival = {.missing = missing, .missing_count = count};
    memcpy(work, encoded[t], sizeof work);
    must(lh_hadamard_decode(&hadamard, &arrival, work, decoded, ELEMENTS, NULL));
}

static void add_errors(unsigned t, unsigned message)
{
    double sum = 0, worst = 0;
    bool lost = false;
    for (unsigned b = 0; b < PACKETS; b++) {
        double squares = 0, left = 0;
        for (unsigned i = b * PACKET; i < (b + 1) * PACKET; i++) {
            double difference = (double)(decoded[i] - tensors[t][i]);
            squares += difference * difference;
            left += (double)(decoded[i] * decoded[i]);
        }
        sum += squares;
        const double share = squares / block_energy[t][b];
        worst = share > worst ? share : worst;
        lost |= left == 0;
    }
    errors.message[message] = sum / energy[t];
    errors.worst[message] = worst;
    errors.blocks_lost += lost;
}

static void point(const struct transform *transform, bool outliers, bool bursts, double rate,
                  unsigned messages)
{
    struct lh_prng prng;
    struct lh_range missing[PACKETS];
    lh_prng_seed(&prng, 7); /* the same packets for each transform */
    errors.blocks_lost = 0;
    for (unsigned message = 0; message < messages; message++) {
        uint64_t count = lose(&prng, rate, bursts, missing);
        decode(transform, message % TENSORS, missing, count);
        add_errors(message % TENSORS, message);
    }
    printf("%-8s %-11s %-7s %4u %6.3f %9.5f %9.5f %9.5f %9.5f %7.4f\n", outliers ? "outliers" : "even",
           bursts ? "bursts" : "independent", transform->name, transform->stride, rate,
           report_mean(errors.message, messages), report_quantile(errors.message, messages, 0.99),
           report_mean(errors.worst, messages), report_quantile(errors.worst, messages, 0.99),
           (double)errors.blocks_lost / messages);
}

int main(int argc, char **argv)
{
    unsigned messages = 2000;
    if (argc == 3 && strcmp(argv[1], "--messages") == 0)
        messages = (unsigned)strtoul(argv[2], NULL, 10);
    if (messages == 0 || messages > MESSAGES_MAX || (argc != 1 && argc != 3)) {
        fprintf(stderr, "usage: bench_hadamard_loss [--messages 1 ... %u]\n", MESSAGES_MAX);
        return 2;
    }
    printf("# %u messages a point; drop rate; error over energy: mean, p99; of the worst block: mean, p99; "
           "share of "
           "messages that lose a whole block\n",
           messages);
    for (unsigned outliers = 0; outliers < 2; outliers++) {
        make_tensors(outliers);
        for (size_t i = 0; i < TRANSFORMS; i++) {
            for (unsigned t = 0; t < TENSORS && transforms[i].block; t++) {
                const struct lh_hadamard hadamard = description(&transforms[i], t);
                must(lh_hadamard_encode(&hadamard, tensors[t], encoded[t], ELEMENTS, NULL));
            }
            for (unsigned bursts = 0; bursts < 2; bursts++)
                for (size_t r = 0; r < RATES; r++)
                    point(&transforms[i], outliers, bursts, rates[r], messages);
        }
    }
    return 0;
}
