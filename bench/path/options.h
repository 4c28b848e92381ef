/*
 * options.h - what longhaul-path is asked for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_BENCH_PATH_OPTIONS_H
#define LH_BENCH_PATH_OPTIONS_H

#include "cli/path/path_loop.h"

#define PATH_CHANGES_MAX 64

struct path_change {
    int64_t at_ns; /* after the start */
    uint64_t rate_bps[PATH_ENDS];
};

struct path_options {
    struct path_direction_config direction[PATH_ENDS];
    unsigned mtu;
    bool nat;
    unsigned flows;
    const char *name; /* NULL: none */
    const char *json; /* file; NULL: standard output */
    struct path_change change[PATH_CHANGES_MAX];
    unsigned changes;
    char **argv[PATH_ENDS]; /* NULL: no command */
};

/* Returns -1, or the exit status: help was printed, or a message. */
int path_options_parse(struct path_options *options, int argc, char **argv);

#endif
