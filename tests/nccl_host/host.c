/*
 * host.c - a program that drives the plugin as NCCL's proxy does, without NCCL and without a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "nccl_host/host_net.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *words;
    } modes[] = {
        {"cases", cases_main, "[CASE...]: versions, settings, states of a comm, one by one"},
        {"orders", orders_main, "[FIRST COUNT]: random orders from seeds"},
        {"ranks", ranks_main, "[RANKS CHANNELS BYTES ROUNDS]: sums over a ring and a tree of processes"},
        {"deaths", deaths_main, "[FIRST COUNT]: processes that die at random points"},
        {"bench", bench_main, "--rank R --meet FOLDER [options]: the rate between two ranks"},
    };
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (!strcmp(argv[1], modes[i].name))
            return modes[i].run(argc - 1, argv + 1);
    fprintf(stderr,
            "usage: nccl_host MODE ...  ($NCCL_HOST_PLUGIN: the plugin; $NCCL_DEBUG: shows its lines)\n");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        fprintf(stderr, "  %s %s\n", modes[i].name, modes[i].words);
    return 2;
}
