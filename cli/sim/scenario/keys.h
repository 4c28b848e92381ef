/*
 * keys.h - the keys of a scenario that the command itself reads: what to write down, how often, until
 * when.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_KEYS_H
#define LH_CLI_SIM_SCENARIO_KEYS_H

#include <longhaul/netsim.h>

#include <stdbool.h>
#include <stdint.h>

#define CLI_CLASSES_MAX 8 /* of sizes */
#define CLI_SITES_MAX   8 /* distinguished, for classes of flows by site; the last is of all others */
#define CLI_PANELS_MAX  3
/* Patterns of links, as text. */
#define CLI_LINKS_MAX 256
#define CLI_TITLE_MAX 96

/* Names the section whose settings hold, too. */
#define CLI_SIM_VARIANT_KEY "run.variant"

#define CLI_NO_END UINT64_MAX

struct cli_sim_output {
    uint64_t until_ps; /* CLI_NO_END: until nothing is left to happen */
    uint64_t period_ps;
    uint64_t from_ps, to_ps;    /* CLI_NO_END as from: nothing is observed; as to: until the run's end */
    char queues[CLI_LINKS_MAX]; /* "": none */
    char rates[CLI_LINKS_MAX];
    char pcap[CLI_LINKS_MAX];
    uint32_t packets;  /* most in the capture */
    bool full_packets; /* with their payload */
    char title[CLI_TITLE_MAX];
    unsigned edges_count; /* classes of flow sizes: below edge 0, from edge 0 to below edge 1, … */
    uint64_t edges[CLI_CLASSES_MAX - 1];
    bool by_sites;                   /* classes are pairs of sites instead; there are no edges */
    unsigned panels_count;           /* of the picture of a sweep */
    unsigned panels[CLI_PANELS_MAX]; /* figures, see figure.h */
};

/* Everything at its default. */
void cli_sim_output_init(struct cli_sim_output *output);
/* Whether the key is, or looks like, one of the command's: not the library's business. */
int cli_sim_key_is_ours(const char *key);
/* Whether the library has such a key, and its values are of that kind. */
bool cli_sim_key_is_of_kind(const char *name, const char *kind);
/* 0, or -1 with what is wrong in wrong[size]. */
int cli_sim_key_set(struct cli_sim_output *output, const char *key, const char *value, char *wrong,
                    size_t size);

/* Prints all keys there are, ours and the library's. Returns the exit status. */
int cli_sim_keys_print(void);

#endif
