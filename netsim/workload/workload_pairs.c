/*
 * pairs.c - see pairs.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/pairs.h"

#include <string.h>

#include "base/decimal.h"
#include "base/error.h"

#define TIMES_MAX 1000.0

/* The letter's site; NETSIM_SITES_MAX: it is none. */
static unsigned site_of(char letter)
{
    unsigned site = (unsigned)(letter - 'a');
    return site < NETSIM_SITES_MAX ? site : NETSIM_SITES_MAX;
}

static const char *behind_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* One pair, and what is behind it. */
static const char *read_pair(const char *at, unsigned *from, unsigned *to, double *times)
{
    *from = site_of(at[0]);
    if (*from == NETSIM_SITES_MAX || at[1] != '>')
        return NULL;
    *to = site_of(at[2]);
    if (*to == NETSIM_SITES_MAX)
        return NULL;
    at += 3;
    *times = 1;
    if (*at != '=')
        return behind_blanks(at);
    at++;
    if (lh_decimal_read_double(&at, times) != 0 || !(*times > 0 && *times <= TIMES_MAX))
        return NULL;
    return behind_blanks(at);
}

int netsim_pairs_read(const char *key, const char *value, struct netsim_pairs *pairs)
{
    struct netsim_pairs read = {0};
    const char *at = behind_blanks(value);
    bool none = strcmp(at, "none") == 0;
    while (!none) {
        unsigned from = 0;
        unsigned to = 0;
        double times = 0;
        at = read_pair(at, &from, &to, &times);
        if (at == NULL || (*at != ',' && *at != '\0'))
            return lh_fail(
                LH_EINVAL,
                "%s \"%.64s\": invalid, a list of sites a to %c that send to others, such as a>c,b>c=2, "
                "where b sends twice workload.load and no more than %g times, or none",
                key, value, 'a' + NETSIM_SITES_MAX - 1, TIMES_MAX);
        if (read.times[from][to] != 0)
            return lh_fail(LH_EINVAL, "%s \"%.64s\": %c>%c twice (give it once, as %c>%c=2)", key, value,
                           'a' + (char)from, 'a' + (char)to, 'a' + (char)from, 'a' + (char)to);
        read.times[from][to] = times;
        read.any = true;
        if (*at == '\0')
            break;
        at = behind_blanks(at + 1);
    }
    *pairs = read;
    return 0;
}
