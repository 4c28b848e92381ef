/*
 * topology_line.h - one line of a topology file.
 *
 *     host NAME [site=N]
 *     switch NAME [tier=tor|aggregation|core|dci] [site=N]
 *     link NAME NAME [rate=100Gbit] [delay=1us] [loss=1e-4] [burst=8] …
 *
 * A link takes the keys of <longhaul/link.h>, but for queue= and drop=, which are a switch's. Rate and
 * delay not given are topology.rate and topology.delay. Names are of letters, digits, '.', '-' and '_'.
 * Lines may be in any order; hosts are numbered from 0 in theirs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_NETSIM_TOPOLOGY_TOPOLOGY_LINE_H
#define LH_NETSIM_TOPOLOGY_TOPOLOGY_LINE_H

#include "netsim/base/config.h"
#include "netsim/engine/graph.h"
#include "netsim/base/line_reader.h"

enum netsim_statement_kind { NETSIM_STATEMENT_HOST, NETSIM_STATEMENT_SWITCH, NETSIM_STATEMENT_LINK };

/* The content of a line. Names are the line's, and shorter than NETSIM_NAME_MAX. */
struct netsim_statement {
    enum netsim_statement_kind kind;
    const char *names[2]; /* of the node; of both ends */
    uint8_t tier;
    uint8_t site;
    uint64_t rate_bps;
    netsim_time delay_ps;
    struct lh_link_spec faults; /* without rate and delay */
};

/* 0; -LH_EINVAL, -LH_ERANGE with line, word and remedy in lh_last_error(). */
int netsim_statement_read(const struct netsim_topology_config *config, const struct netsim_line *line,
                          struct netsim_statement *statement);

#endif
