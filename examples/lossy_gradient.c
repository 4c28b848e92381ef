/*
 * lossy_gradient.c - a gradient that loses packets: what the loss does to it as it is, and encoded.
 *
 *   cc lossy_gradient.c $(pkg-config --cflags --libs longhaul) -lm
 *   ./lossy_gradient            loses 2 % of the packets
 *   ./lossy_gradient 0.1        10 %
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/hadamard.h>

#define COUNT  ((size_t)1 << 20)
#define PACKET 1024u /* elements: 4096 bytes */

static float gradient[COUNT], sent[COUNT], received[COUNT];

/* The missing ranges, as lh_missing() reports them for a message with a deadline. */
static uint64_t lose(double rate, struct lh_range *missing)
{
    uint64_t count = 0;
    for (size_t packet = 0; packet < COUNT / PACKET; packet++)
        if (drand48() < rate)
            missing[count++] = (struct lh_range){packet * PACKET * sizeof(float), PACKET * sizeof(float)};
    return count;
}

/* The error of all, and of the packet's worth of elements that fared worst, over their energy. */
static void print_error(const char *what, const float *numbers)
{
    double error = 0, energy = 0, worst = 0;
    for (size_t from = 0; from < COUNT; from += PACKET) {
        double block_error = 0, block_energy = 0;
        for (size_t i = from; i < from + PACKET; i++) {
            block_error += pow((double)(numbers[i] - gradient[i]), 2);
            block_energy += pow((double)gradient[i], 2);
        }
        error += block_error;
        energy += block_energy;
        worst = fmax(worst, block_error / block_energy);
    }
    printf("%-10s squared error %7.3f %% of all, %7.3f %% in the worst %u elements\n", what,
           error / energy * 100, worst * 100, PACKET);
}

int main(int argc, char **argv)
{
    static struct lh_range missing[COUNT / PACKET];
    for (size_t i = 0; i < COUNT; i++)
        gradient[i] = (float)(drand48() - 0.5);
    uint64_t count = lose(argc > 1 ? strtod(argv[1], NULL) : 0.02, missing);
    printf("%llu of %zu packets are lost\n", (unsigned long long)count, COUNT / PACKET);

    memcpy(received, gradient, sizeof received);
    for (uint64_t i = 0; i < count; i++)
        memset((char *)received + missing[i].offset, 0, missing[i].bytes);
    print_error("as it is", received);

    struct lh_hadamard hadamard;
    lh_hadamard_init(&hadamard, LH_HADAMARD_F32); /* blocks of a packet, stride 1024 */
    if (lh_hadamard_encode(&hadamard, gradient, sent, COUNT, NULL) != 0)
        errx(1, "%s", lh_last_error());
    struct lh_hadamard_arrival arrival = {.missing = missing, .missing_count = count};
    if (lh_hadamard_decode(&hadamard, &arrival, sent, received, COUNT, NULL) != 0)
        errx(1, "%s", lh_last_error());
    print_error("encoded", received);
    return 0;
}
