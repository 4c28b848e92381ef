/*
 * series.h - queues.csv and rates.csv: chosen links, looked at every period of virtual time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_SERIES_H
#define LH_CLI_SIM_RUN_SERIES_H

#include "cli/results/folder.h"
#include "cli/sim/scenario/link_list.h"

/* Rows of one file; a run that takes longer goes on without. */
#define CLI_SAMPLES_MAX 1000000

/* What pictures need to know. */
struct cli_series_shape {
    unsigned columns; /* links; 0: there is no file */
    uint32_t rows;
    double max;       /* bytes or bits a second */
    unsigned longest; /* characters of a link's name */
    uint64_t names;   /* the same for the same links in the same order */
};

struct cli_series {
    const struct cli_folder *folder;
    const char *name; /* of the file */
    FILE *file;       /* NULL: nothing is sampled */
    struct cli_link_list links;
    uint64_t sent_bytes[CLI_LINK_LIST_MAX]; /* when it was looked at last */
    uint64_t sent_payload_bytes[CLI_LINK_LIST_MAX];
    uint64_t last_ps;
    struct cli_series_shape shape;
    bool rates; /* else queues */
};

/* Opens the file when links are asked for; they are there. CLI_PROCEED, or reports the cause. */
int cli_series_open(struct cli_series *series, const struct cli_folder *folder, bool rates,
                    const struct lh_netsim *simulation, const char *patterns);
/* Looks at the links: a row with the time in seconds, then for each link the bytes that wait, or the bits a
 * second since the row before: on the wire, and behind these columns those of payload. */
void cli_series_sample(struct cli_series *series, const struct lh_netsim *simulation, uint64_t now_ps);
/* Whether there is more to be written. */
bool cli_series_goes_on(const struct cli_series *series);
/* The file is there if status is CLI_PROCEED, and else dropped. Returns the status, or reports that writing
 * failed. The shape stays. */
int cli_series_close(struct cli_series *series, int status);

#endif
