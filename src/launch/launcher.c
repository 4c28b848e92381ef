/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/launcher.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <longhaul/group.h>
#include <longhaul/link.h>

#include "base/error.h"

/* ---- host list ------------------------------------------------------------------------------------- */

/* Characters that end the first number of a bracket, and those that end a host outside of one. */
#define NUMBER_ENDS "-,]"
#define DIGITS      "0123456789"

bool host_list_first(const char *list, char *host, size_t size)
{
    assert(size > 0);
    size_t used = 0;
    while (*list && *list != ',') { /* each turn takes a character, or a bracket, of the list */
        bool bracket = *list == '[';
        size_t length = bracket ? strspn(list + 1, DIGITS) : 1;
        if ((bracket && (length == 0 || !strchr(NUMBER_ENDS, list[1 + length]))) || *list == ']')
            return false;
        if (length >= size - used)
            return false;
        memcpy(host + used, list + bracket, length);
        used += length;
        if (bracket) {
            list = strchr(list, ']');
            if (!list)
                return false;
        }
        list += 1;
    }
    host[used] = '\0';
    return used > 0;
}

/* ---- interface filter ------------------------------------------------------------------------------ */

struct filter {
    bool exclude, exact;
    const char *names;
};

static struct filter parse(const char *text)
{
    struct filter filter = {0};
    filter.exclude = *text == '^';
    text += filter.exclude;
    filter.exact = *text == '=';
    filter.names = text + filter.exact;
    return filter;
}

bool interface_filter_valid(const char *text)
{
    const char *at = parse(text).names;
    for (;;) { /* once a name */
        size_t length = strcspn(at, ",");
        if (length == 0)
            return false;
        if (!at[length])
            return true;
        at += length + 1;
    }
}

int interface_filter_match(const char *text, const char *interface)
{
    assert(interface_filter_valid(text));
    struct filter filter = parse(text);
    int place = 0;
    for (const char *at = filter.names; at; place++) {
        size_t length = strcspn(at, ",");
        if (!strncmp(at, interface, length) && (!filter.exact || !interface[length]))
            return filter.exclude ? -1 : place;
        at = at[length] ? at + length + 1 : NULL;
    }
    return filter.exclude ? 0 : -1;
}

/* ---- launcher -------------------------------------------------------------------------------------- */

#define LAUNCHER_SIZE_MAX ((uint32_t)LH_GROUP_RANKS_MAX)
#define LAUNCHER_PORT     29500u /* that of torchrun */

#define PORT_MAX 65535u

struct launcher {
    const char *name, *rank, *size, *other_size, *local_size;
};

/* In this order: mpirun and torchrun also run inside a job of SLURM or Flux; srun and mpirun set PMIX_RANK.
 */
static const struct launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", NULL, "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", NULL, "MPI_LOCALNRANKS"},
    {"Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", NULL, NULL},
    {"SLURM", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", NULL},
    {"PMIx", "PMIX_RANK", "WORLD_SIZE", NULL, NULL},
};

#define BY_HAND 0 /* torchrun's variables */

/* The first that is set makes the port of a job without MASTER_PORT. */
static const char *const job_numbers[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID",
                                          "FLUX_JOB_ID"};
/* What launchers call a job: the innermost one first, as for the ranks. */
static const struct {
    const char *name, *step;
    const char *unset; /* a value that names no job */
} job_names[] = {
    {"TORCHELASTIC_RUN_ID", NULL, "none"},   {"PMIX_NAMESPACE", NULL, NULL},
    {"OMPI_MCA_ess_base_jobid", NULL, NULL}, {"FLUX_JOB_ID", NULL, NULL},
    {"SLURM_JOB_ID", "SLURM_STEP_ID", NULL},
};
static const char *const node_lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct source {
    launcher_get *get;
    void *context;
};

/* An empty variable is one that is not set, as launchers' scripts leave them. */
static const char *value_of(const struct source *source, const char *name)
{
    const char *value = name ? source->get(source->context, name) : NULL;
    return value && *value ? value : NULL;
}

/* What a message shows of a value. */
#define SHOWN "%.80s"

/* Decimal digits alone, at most max. */
static int read_number(const char *name, const char *value, uint32_t min, uint32_t max, uint32_t *number)
{
    uint64_t read = 0;
    size_t digits = strspn(value, "0123456789");
    if (value[digits] || digits == 0 || digits > 10)
        return lh_fail(LH_EINVAL, "%s: \"" SHOWN "\" is not a number (%u to %u)", name, value, min, max);
    for (size_t i = 0; i < digits; i++)
        read = read * 10 + (uint64_t)(value[i] - '0');
    if (read < min || read > max)
        return lh_fail(LH_EINVAL, "%s: %llu is out of range (%u to %u)", name, (unsigned long long)read,
                       min, max);
    *number = (uint32_t)read;
    return 0;
}

static int read_rank(const struct source *source, const struct launcher *launcher,
                     struct launcher_settings *settings)
{
    const char *name = value_of(source, launcher->size) ? launcher->size : launcher->other_size;
    const char *size = value_of(source, name), *rank = value_of(source, launcher->rank);
    if (!size)
        return lh_fail(LH_EINVAL, "%s: not set, but %s is " SHOWN " (set it to the number of ranks)",
                       launcher->size, launcher->rank, rank);
    int error = read_number(name, size, 1, LAUNCHER_SIZE_MAX, &settings->size);
    if (!error)
        error = read_number(launcher->rank, rank, 0, settings->size - 1, &settings->rank);
    settings->launcher = launcher->name;
    return error;
}

/* ---- where rank 0 listens ---------------------------------------------------------------------------- */

/* Whether the launcher announces that all ranks are on this host. */
static bool is_one_host(const struct source *source, const struct launcher *launcher, uint32_t size)
{
    char all[16];
    snprintf(all, sizeof all, "%u", size);
    const char *local = value_of(source, launcher->local_size);
    const char *nodes = value_of(source, "FLUX_JOB_NNODES");
    return size == 1 || (local && !strcmp(local, all)) || (nodes && !strcmp(nodes, "1"));
}

static int find_host(const struct source *source, const struct launcher *launcher, uint32_t size,
                     char *host)
{
    const char *master = value_of(source, "MASTER_ADDR"), *list = NULL;
    if (master) {
        if (strlen(master) >= LAUNCHER_HOST_MAX || strpbrk(master, " /[]"))
            return lh_fail(LH_EINVAL, "MASTER_ADDR: \"" SHOWN "\" is not a host name or address", master);
        strcpy(host, master);
        return 0;
    }
    if (is_one_host(source, launcher, size)) {
        strcpy(host, "127.0.0.1");
        return 0;
    }
    size_t i = 0;
    while (i < COUNT(node_lists) && !list)
        list = value_of(source, node_lists[i++]);
    if (!list && launcher == &launchers[BY_HAND]) /* torchrun sets it */
        return lh_fail(LH_EINVAL, "MASTER_ADDR: not set (set it to the host of rank 0, the same for all "
                                  "ranks; 127.0.0.1 where all are on this machine)");
    if (!list)
        return lh_fail(
            LH_EINVAL,
            "MASTER_ADDR: not set, and %s does not contain the host of rank 0 (set it for all ranks)",
            launcher->name);
    if (!host_list_first(list, host, LAUNCHER_HOST_MAX))
        return lh_fail(LH_EINVAL, "%s: \"" SHOWN "\" is not a list of hosts (set MASTER_ADDR)",
                       node_lists[i - 1], list);
    return 0;
}

/* FNV-1a. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* The same for all ranks of a job, and mostly another for each job. */
static uint32_t make_port(const struct source *source)
{
    const char *job = NULL;
    for (size_t i = 0; i < COUNT(job_numbers) && !job; i++)
        job = value_of(source, job_numbers[i]);
    return job ? LAUNCHER_PORT_FIRST + hash_of(job) % LAUNCHER_PORTS : LAUNCHER_PORT;
}

static int find_port(const struct source *source, uint32_t *port)
{
    const char *master = value_of(source, "MASTER_PORT");
    const char *agent = value_of(source, "TORCHELASTIC_USE_AGENT_STORE");
    bool above = agent && !strcmp(agent, "True");
    *port = make_port(source);
    int error = master ? read_number("MASTER_PORT", master, 1, PORT_MAX - above, port) : 0;
    *port += above;
    return error;
}

/* A name may have several addresses, or one of another host that forwards. */
static bool is_loopback(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "::1") || !strcmp(host, "localhost");
}

static int find_where(const struct source *source, const struct launcher *launcher,
                      struct launcher_settings *settings)
{
    uint32_t port;
    char host[LAUNCHER_HOST_MAX];
    int error = find_host(source, launcher, settings->size, host);
    if (!error)
        error = find_port(source, &port);
    if (error)
        return error;
    snprintf(settings->where, sizeof settings->where, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    if (is_loopback(host))
        strcpy(settings->listen, settings->where);
    else
        snprintf(settings->listen, sizeof settings->listen, ":%u", port);
    return 0;
}

/* ---- the job's name ---------------------------------------------------------------------------------- */

/* "NAME=value.step", printable; what is too long ends with the hash of the whole value. */
static void format_job(const char *name, const char *value, const char *step, char job[LAUNCHER_JOB_MAX])
{
    char whole[2 * LAUNCHER_TEXT_MAX];
    snprintf(whole, sizeof whole, "%s=%.*s%s%.*s", name, (int)LAUNCHER_TEXT_MAX, value, step ? "." : "",
             (int)LAUNCHER_JOB_MAX, step ? step : "");
    for (char *at = whole; *at; at++)
        *at = *at >= ' ' && *at <= '~' ? *at : '?';
    if (strlen(whole) < LAUNCHER_JOB_MAX)
        strcpy(job, whole);
    else
        snprintf(job, LAUNCHER_JOB_MAX, "%.*s#%08x", (int)LAUNCHER_JOB_MAX - 10, whole, hash_of(value));
}

static void find_job(const struct source *source, char job[LAUNCHER_JOB_MAX])
{
    for (size_t i = 0; i < COUNT(job_names) && !*job; i++) {
        const char *value = value_of(source, job_names[i].name);
        if (value && (!job_names[i].unset || strcmp(value, job_names[i].unset) != 0))
            format_job(job_names[i].name, value, value_of(source, job_names[i].step), job);
    }
}

/* ---- this library's own ------------------------------------------------------------------------------ */

static int read_text(const struct source *source, const char *name, char *text, size_t size)
{
    const char *value = value_of(source, name);
    text[0] = '\0';
    if (!value)
        return 0;
    if (strlen(value) >= size)
        return lh_fail(LH_EINVAL, "%s: %zu bytes: too long (at most %zu)", name, strlen(value), size - 1);
    strcpy(text, value);
    return 0;
}

static int read_own(const struct source *source, struct launcher_settings *settings)
{
    char link[LH_LINK_TEXT_MAX];
    int error = read_text(source, "LONGHAUL_SITE", settings->site, sizeof settings->site);
    if (!error)
        error = read_text(source, "LONGHAUL_SECRET", settings->secret, sizeof settings->secret);
    if (!error)
        error = read_text(source, "LONGHAUL_KEY_FILE", settings->key_file, sizeof settings->key_file);
    if (!error)
        error =
            read_text(source, "LONGHAUL_SOCKET_IFNAME", settings->interfaces, sizeof settings->interfaces);
    if (!error)
        error = read_text(source, "LONGHAUL_LINK", link, sizeof link);
    if (error)
        return error;
    if (*settings->interfaces && !interface_filter_valid(settings->interfaces))
        return lh_fail(LH_EINVAL,
                       "LONGHAUL_SOCKET_IFNAME: \"" SHOWN
                       "\" has an empty name (examples: eth,ib =eth0 ^docker)",
                       settings->interfaces);
    if (*link && lh_link_parse(link, &settings->link)) {
        char cause[LAUNCHER_TEXT_MAX];
        snprintf(cause, sizeof cause, "%s", lh_last_error());
        return lh_fail(LH_EINVAL, "LONGHAUL_LINK: %s", cause);
    }
    return 0;
}

int launcher_read(launcher_get *get, void *context, struct launcher_settings *settings)
{
    const struct source source = {get, context};
    *settings = (struct launcher_settings){0};
    size_t i = 0;
    while (i < COUNT(launchers) && !value_of(&source, launchers[i].rank))
        i++;
    if (i == COUNT(launchers))
        return lh_fail(
            LH_ESTATE,
            "no launcher: RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, FLUX_TASK_RANK, SLURM_PROCID and "
            "PMIX_RANK are not set (start the ranks with longhaul run, mpirun, srun or torchrun)");
    int error = read_rank(&source, &launchers[i], settings);
    if (!error)
        error = find_where(&source, &launchers[i], settings);
    find_job(&source, settings->job);
    return error ? error : read_own(&source, settings);
}
