/*
 * topology_line.c - see topology_line.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/topology/topology_line.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

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
                            "tier \"%.64s\" is unknown (write tor, aggregation, core, dci or relay)", word);
}

static int read_node(const struct netsim_line *line, struct netsim_statement *statement)
{
    bool is_switch = statement->kind == NETSIM_STATEMENT_SWITCH;
    statement->tier = is_switch ? NETSIM_TIER_TOR : NETSIM_TIER_HOST;
    if (line->words_count < 2)
        return netsim_line_fail(line, LH_EINVAL, "no node is named (write \"%s NAME\")", line->words[0]);
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
        return netsim_line_fail(line, LH_EINVAL, "two nodes are needed (write \"link NAME NAME\")");
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

int netsim_statement_read(const struct netsim_topology_config *config, const struct netsim_line *line,
                          struct netsim_statement *statement)
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
    return netsim_line_fail(
        line, LH_EINVAL, "\"%.64s\" is unknown (a line starts with host, switch or link)", line->words[0]);
}
