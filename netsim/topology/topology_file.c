/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/topology/topology.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "netsim/base/line_reader.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/network.h"

/* ---- topology line --------------------------------------------------------------------------------- */

/*
 * One line of a topology file.
 *
 *     host NAME [site=N]
 *     switch NAME [tier=tor|aggregation|core|dci] [site=N]
 *     link NAME NAME [rate=100Gbit] [delay=1us] [loss=1e-4] [burst=8] …
 *
 * A link takes the keys of <longhaul/link.h>, but for queue= and drop=, which are a switch's. Rate and
 * delay not given are topology.rate and topology.delay. Names are of letters, digits, '.', '-' and '_'.
 * Lines may be in any order; hosts are numbered from 0 in theirs.
 */

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

#define SITE_MAX 255u

/* Whether word begins with key ("site="); then *value is behind it. */
static bool has_key(const char *word, const char *key, const char **value)
{
    size_t length = strlen(key);
    bool has = strncmp(word, key, length) == 0;
    if (has)
        *value = word + length;
    return has;
}

static int check_name(const struct netsim_line *line, const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    if (name[strspn(name, allowed)] != '\0')
        return netsim_line_fail(line, LH_EINVAL,
                                "invalid name \"%.64s\" (letters, digits, '.', '-' and '_')", name);
    if (strlen(name) >= NETSIM_NAME_MAX)
        return netsim_line_fail(line, LH_EINVAL, "name \"%.64s\" is too long (at most %u characters)", name,
                                NETSIM_NAME_MAX - 1);
    return 0;
}

static int read_tier(const struct netsim_line *line, const char *word, uint8_t *tier)
{
    static const char *const names[] = {[NETSIM_TIER_TOR] = "tor",
                                        [NETSIM_TIER_AGGREGATION] = "aggregation",
                                        [NETSIM_TIER_CORE] = "core",
                                        [NETSIM_TIER_DCI] = "dci",
                                        [NETSIM_TIER_RELAY] = "relay"};
    for (unsigned i = NETSIM_TIER_TOR; i <= NETSIM_TIER_RELAY; i++) {
        if (strcmp(word, names[i]) == 0) {
            *tier = (uint8_t)i;
            return 0;
        }
    }
    return netsim_line_fail(line, LH_EINVAL,
                            "unknown tier \"%.64s\" (tor, aggregation, core, dci or relay)", word);
}

static int read_node(const struct netsim_line *line, struct netsim_statement *statement)
{
    bool is_switch = statement->kind == NETSIM_STATEMENT_SWITCH;
    statement->tier = is_switch ? NETSIM_TIER_TOR : NETSIM_TIER_HOST;
    if (line->words_count < 2)
        return netsim_line_fail(line, LH_EINVAL, "missing node name (write \"%s NAME\")", line->words[0]);
    statement->names[0] = line->words[1];
    int rc = check_name(line, line->words[1]);
    bool seen_site = false;
    bool seen_tier = false;
    for (uint32_t i = 2; rc == 0 && i < line->words_count; i++) {
        const char *value = NULL;
        uint32_t site = 0;
        if (!seen_site && has_key(line->words[i], "site=", &value)) {
            seen_site = true;
            rc = netsim_line_number(line, "site", value, SITE_MAX, &site);
            statement->site = (uint8_t)site;
        } else if (!seen_tier && is_switch && has_key(line->words[i], "tier=", &value)) {
            seen_tier = true;
            rc = read_tier(line, value, &statement->tier);
        } else {
            rc = netsim_line_fail(line, LH_EINVAL,
                                  "\"%.64s\" does not belong there (a %s has %ssite=N, once)",
                                  line->words[i], line->words[0], is_switch ? "tier=TIER and " : "");
        }
    }
    return rc;
}

/* All words from the fourth on, as the grammar of links has them: with commas. */
static void join_keys(const struct netsim_line *line, char text[NETSIM_LINE_BYTES_MAX + 1])
{
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 3; i < line->words_count; i++) {
        /* Shorter than the line: each comma stands for a space. */
        int added = snprintf(text + length, NETSIM_LINE_BYTES_MAX + 1 - length, "%s%s", i > 3 ? "," : "",
                             line->words[i]);
        length += (size_t)added;
        assert(added > 0 && length <= NETSIM_LINE_BYTES_MAX);
    }
}

/* Whether a key is among the keys. */
static bool gives(const char *keys, const char *key)
{
    const char *value = NULL;
    for (const char *at = keys; *at != '\0'; at += strspn(at, ",")) {
        if (has_key(at, key, &value))
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

static int read_link(const struct netsim_topology_config *config, const struct netsim_line *line,
                     struct netsim_statement *statement)
{
    char keys[NETSIM_LINE_BYTES_MAX + 1];
    if (line->words_count < 3)
        return netsim_line_fail(line, LH_EINVAL, "missing node (write \"link NAME NAME\")");
    for (uint32_t i = 0; i < 2; i++) {
        int rc = check_name(line, line->words[i + 1]);
        if (rc != 0)
            return rc;
        statement->names[i] = line->words[i + 1];
    }
    struct lh_link_spec *spec = &statement->faults;
    join_keys(line, keys);
    int rc = lh_link_parse(keys, spec);
    if (rc != 0)
        return netsim_line_blame(line, rc);
    if (gives(keys, "queue=") || gives(keys, "drop="))
        return netsim_line_fail(
            line, LH_EINVAL,
            "queue= and drop= belong to switches (use switch.buffer and the other keys of switches)");
    statement->rate_bps = spec->rate_bps != 0 ? spec->rate_bps : config->rate_bps;
    statement->delay_ps = spec->delay_ns * NETSIM_PS_PER_NS;
    if (!gives(keys, "delay=") && !gives(keys, "rtt="))
        statement->delay_ps = config->delay_ps;
    if (statement->rate_bps < NETSIM_RATE_MIN || statement->rate_bps > NETSIM_RATE_MAX)
        return netsim_line_fail(line, LH_ERANGE,
                                "rate=%llubit is out of range (a cable has 1Mbit to 100Tbit)",
                                (unsigned long long)statement->rate_bps);
    spec->rate_bps = 0;
    spec->delay_ns = 0;
    return 0;
}

/* 0; -LH_EINVAL, -LH_ERANGE with line, word and remedy in lh_last_error(). */
static int netsim_statement_read(const struct netsim_topology_config *config,
                                 const struct netsim_line *line, struct netsim_statement *statement)
{
    static const char *const kinds[] = {[NETSIM_STATEMENT_HOST] = "host",
                                        [NETSIM_STATEMENT_SWITCH] = "switch",
                                        [NETSIM_STATEMENT_LINK] = "link"};
    assert(line->words_count > 0);
    for (unsigned i = NETSIM_STATEMENT_HOST; i <= NETSIM_STATEMENT_LINK; i++) {
        if (strcmp(line->words[0], kinds[i]) != 0)
            continue;
        *statement = (struct netsim_statement){.kind = (enum netsim_statement_kind)i};
        return i == NETSIM_STATEMENT_LINK ? read_link(config, line, statement) : read_node(line, statement);
    }
    return netsim_line_fail(line, LH_EINVAL, "unknown statement \"%.64s\" (host, switch or link)",
                            line->words[0]);
}

/* ---- topology file --------------------------------------------------------------------------------- */

/*
 * The text is read three times: to count what there is, which also finds whatever is wrong with a line by
 * itself; for the nodes; for the links between them.
 */

#define KEY "topology.file"

struct file {
    const struct netsim_topology_config *config;
    struct netsim_graph *graph;
    struct netsim_shape shape;
    uint64_t faults;
    /* From the arena, for the time of building. */
    uint32_t *slots; /* names, hashed: node number + 1; 0 is free */
    uint32_t slots_mask;
    uint32_t *lines; /* of each node: where it stands */
    struct netsim_route_tables tables;
    /* Added so far. */
    uint32_t hosts;
    uint32_t switches;
    uint32_t cables;
    uint32_t faults_added;
};

/* One of the three readings: what to do with each statement. */
typedef int statement_handler(struct file *file, const struct netsim_line *line,
                              const struct netsim_statement *statement);

static int read_all(struct file *file, statement_handler *handle)
{
    struct netsim_line_reader reader;
    struct netsim_line line;
    int rc;
    netsim_line_reader_init(&reader, KEY, &file->config->file);
    while ((rc = netsim_line_next(&reader, &line)) > 0) {
        struct netsim_statement statement;
        rc = netsim_statement_read(file->config, &line, &statement);
        if (rc == 0)
            rc = handle(file, &line, &statement);
        if (rc != 0)
            break;
    }
    return rc;
}

static int count_statement(struct file *file, const struct netsim_line *line,
                           const struct netsim_statement *statement)
{
    (void)line;
    switch (statement->kind) {
    case NETSIM_STATEMENT_HOST:
        file->shape.hosts++;
        break;
    case NETSIM_STATEMENT_SWITCH:
        file->shape.switches++;
        break;
    default:
        file->shape.cables++;
        file->faults += !lh_link_is_none(&statement->faults);
        return 0;
    }
    if (statement->site >= file->shape.sites)
        file->shape.sites = statement->site + 1u;
    return 0;
}

/* FNV-1a. */
static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash ^ hash >> 16;
}

/* Where that name is, or the free slot where it would be. There are more slots than names. */
static uint32_t *find_slot(const struct file *file, const char *name)
{
    uint32_t at = hash_name(name) & file->slots_mask;
    while (file->slots[at] != 0 && strcmp(file->graph->nodes[file->slots[at] - 1].name, name) != 0)
        at = (at + 1) & file->slots_mask;
    return &file->slots[at];
}

static int add_node(struct file *file, const struct netsim_line *line,
                    const struct netsim_statement *statement)
{
    struct netsim_graph *graph = file->graph;
    if (statement->kind == NETSIM_STATEMENT_LINK)
        return 0;
    const char *name = statement->names[0];
    uint32_t *slot = find_slot(file, name);
    if (*slot != 0)
        return netsim_line_fail(line, LH_EINVAL, "node \"%s\" is already defined in line %u (rename one)",
                                name, file->lines[*slot - 1]);
    bool is_switch = statement->kind == NETSIM_STATEMENT_SWITCH;
    uint32_t number = is_switch ? graph->hosts + file->switches++ : file->hosts++;
    assert(number < graph->nodes_count);
    struct netsim_node *node = &graph->nodes[number];
    *node = (struct netsim_node){.tier = statement->tier, .site = statement->site};
    memcpy(node->name, name, strlen(name) + 1);
    file->lines[number] = line->number;
    *slot = number + 1;
    return 0;
}

/* Finds an end of a link, and gives it a port. */
static int take_end(struct file *file, const struct netsim_line *line, const char *name, uint32_t *end)
{
    struct netsim_graph *graph = file->graph;
    uint32_t number = *find_slot(file, name);
    if (number == 0)
        return netsim_line_fail(line, LH_EINVAL, "unknown node \"%s\" (add \"switch %s\" or \"host %s\")",
                                name, name, name);
    struct netsim_node *node = &graph->nodes[--number];
    if (number < graph->hosts && node->ports > 0)
        return netsim_line_fail(line, LH_EINVAL, "host %s has more than one link (use a switch)", name);
    if (node->ports == NETSIM_PORTS_MAX)
        return netsim_line_fail(line, LH_ERANGE, "switch %s would have more than %u ports (take two)", name,
                                NETSIM_PORTS_MAX);
    node->ports++;
    *end = number;
    return 0;
}

static int add_link(struct file *file, const struct netsim_line *line,
                    const struct netsim_statement *statement)
{
    struct netsim_graph *graph = file->graph;
    if (statement->kind != NETSIM_STATEMENT_LINK)
        return 0;
    if (strcmp(statement->names[0], statement->names[1]) == 0)
        return netsim_line_fail(line, LH_EINVAL, "link from %s to itself (name two nodes)",
                                statement->names[0]);
    struct netsim_cable *cable = &graph->cables[file->cables++];
    *cable = (struct netsim_cable){
        .rate_bps = statement->rate_bps, .delay_ps = statement->delay_ps, .faults = NETSIM_NO_FAULTS};
    if (!lh_link_is_none(&statement->faults)) {
        cable->faults = file->faults_added++;
        graph->faults[cable->faults] = statement->faults;
    }
    int rc = take_end(file, line, statement->names[0], &cable->ends[0]);
    if (rc == 0)
        rc = take_end(file, line, statement->names[1], &cable->ends[1]);
    return rc;
}

static int check_counts(const struct file *file)
{
    const struct netsim_shape *shape = &file->shape;
    const char *name = netsim_text_name(&file->config->file, KEY);
    int rc = netsim_topology_check_shape(name, shape);
    if (rc != 0)
        return rc;
    uint64_t choices = netsim_route_choices_max(shape->hosts, shape->switches, shape->cables);
    if (choices > NETSIM_ROUTE_CHOICES_MAX)
        return lh_fail(LH_ERANGE,
                       "%s: route tables of up to %llu entries exceed %llu (make it smaller, or use "
                       "another topology.kind)",
                       name, (unsigned long long)choices, (unsigned long long)NETSIM_ROUTE_CHOICES_MAX);
    return 0;
}

static bool take_memory(struct file *file, struct netsim_arena *arena)
{
    uint32_t slots = 4;
    while (slots < 2 * file->graph->nodes_count)
        slots *= 2;
    file->slots_mask = slots - 1;
    file->slots = netsim_arena_take(arena, slots, sizeof *file->slots);
    file->lines = netsim_arena_take(arena, file->graph->nodes_count, sizeof *file->lines);
    netsim_route_tables_take(&file->tables, file->graph, arena);
    return netsim_graph_take(file->graph, arena);
}

static int check_connected(struct file *file)
{
    const struct netsim_graph *graph = file->graph;
    uint32_t lost = netsim_route_tables_unreached(&file->tables, graph);
    if (lost == graph->nodes_count)
        return 0;
    return lh_fail(LH_EINVAL, "%s:%u: there is no path between %s and %s (add a link)",
                   netsim_text_name(&file->config->file, KEY), file->lines[lost], graph->nodes[lost].name,
                   graph->nodes[0].name);
}

int netsim_topology_file_build(const struct netsim_topology_config *config, struct netsim_arena *arena,
                               struct netsim_graph *graph)
{
    struct file file = {.config = config, .graph = graph, .shape = {.sites = 1}};
    if (config->file.data == NULL)
        return lh_fail(LH_EINVAL, "topology.kind is file: give the file as " KEY);
    if (!lh_link_is_none(&config->faults))
        return lh_fail(LH_EINVAL, "topology.link: unsupported with topology.kind = file (set loss= and "
                                  "others at the links of the file)");
    int rc = read_all(&file, count_statement);
    if (rc == 0)
        rc = check_counts(&file);
    if (rc != 0)
        return rc;
    graph->hosts = (uint32_t)file.shape.hosts;
    graph->nodes_count = (uint32_t)(file.shape.hosts + file.shape.switches);
    graph->cables_count = (uint32_t)file.shape.cables;
    graph->faults_count = (uint32_t)file.faults;
    graph->sites = file.shape.sites;
    if (!take_memory(&file, arena))
        return 0;
    rc = read_all(&file, add_node);
    if (rc == 0)
        rc = read_all(&file, add_link);
    if (rc == 0)
        rc = check_connected(&file);
    if (rc != 0)
        return rc;
    assert(file.hosts == graph->hosts && file.cables == graph->cables_count);
    netsim_mark_borders(graph);
    netsim_route_tables_fill(&file.tables, graph);
    return 0;
}
