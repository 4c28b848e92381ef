/*
 * The SDR-RDMA paper's completion times, for the benchmarks that are no C programs.
 *
 * usage: bench_formula SCHEME CHUNKS LOSS T_INJ RTT      (in seconds; loss of a chunk)
 * Prints a line: ideal, what is sent and a round trip, mean, 99.9th percentile, in seconds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>

#include "completion_formula.h"

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: bench_formula SCHEME CHUNKS LOSS T_INJ RTT\n");
        return 2;
    }
    const struct formula_path path = {
        .loss = atof(argv[3]), .inject_s = atof(argv[4]), .rtt_s = atof(argv[5])};
    struct formula_times times = formula_of(argv[1], &path, atof(argv[2]));
    printf("%.9f %.9f %.9f %.9f\n", times.ideal_s, times.sent_s, times.mean_s, times.tail_s);
    return 0;
}
