/*
 * topology_file.c - see topology_file.h.
 *
 * The text is read three times: to count what there is, which also finds whatever is wrong with a line by
 * itself; for the nodes; for the links between them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/topology_file.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "netsim/topology/kind.h"
#include "netsim/topology/route_tables.h"
#include "netsim/topology/topology_line.h"

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
        return netsim_line_fail(line, LH_EINVAL, "node \"%s\" is defined already in line %u (rename one)",
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
        return netsim_line_fail(line, LH_EINVAL,
                                "host %s has a link already, and only one port (use a switch)", name);
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
        return netsim_line_fail(line, LH_EINVAL, "a link from %s to itself leads nowhere (name two nodes)",
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
        return lh_fail(LH_EINVAL,
                       "topology.link: which cable of a file has them? Give loss= and the like to "
                       "its links");
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
