/*
 * pmpi_job.c - the job: settings and sites of the ranks, exchanged in MPI_Init; the engine, which all
 * groups of a rank share; and the group of each communicator.
 *
 * A group is an attribute of its communicator: MPI_Comm_dup does not copy it, MPI_Comm_free and MPI_Finalize
 * delete it. Each rank of the job knows the site of each other, so all ranks of a communicator choose alike
 * without a message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/mpi/pmpi_shim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/settings/plugin_settings.h"

/* LONGHAUL_MPI_MIN_BYTES. */
#define MIN_BYTES_DEFAULT (UINT64_C(64) << 10)
#define MIN_BYTES_MAX     (UINT64_C(1) << 40)
#define HOST_BYTES        128

#ifdef OPEN_MPI
#define LIBRARY "Open MPI"
#define SHIM    "liblonghaul-pmpi-openmpi.so"
#else
#define LIBRARY "MPICH"
#define SHIM    "liblonghaul-pmpi-mpich.so"
#endif

/* What a rank announces in MPI_Init. */
struct card {
    char release[32];
    char site[LH_GROUP_SITE_MAX]; /* LONGHAUL_SITE */
    char host[HOST_BYTES];
    uint64_t min_bytes;
    char error[256]; /* of a setting; "": none */
};

/* Of a communicator. */
struct member {
    struct member *next; /* the newest first */
    MPI_Comm comm;
    struct lh_group *group;           /* NULL: none, or it could not be created */
    struct pmpi_levels levels;        /* site: MPI_COMM_NULL without */
    char error[MPI_MAX_ERROR_STRING]; /* why it could not; "": no error */
};

static struct {
    bool is_active; /* between MPI_Init and MPI_Finalize of a job with several sites */
    struct plugin_settings settings;
    uint64_t min_bytes;
    char site[LH_GROUP_SITE_MAX]; /* of this rank's groups */
    bool is_one_host;
    int size;
    int *sites;           /* of each rank of MPI_COMM_WORLD: the lowest rank at its site */
    int keyval;           /* of the attribute with a struct member */
    pthread_mutex_t lock; /* of what follows */
    struct lh_engine *engine;
    struct member *members;
    int error_code; /* of MPI; 0: none yet */
} job = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool pmpi_takes(size_t bytes)
{
    return job.is_active && bytes > 0 && bytes >= job.min_bytes;
}

int pmpi_raise(MPI_Comm comm, const char *text)
{
    char shown[MPI_MAX_ERROR_STRING];
    int class, code = MPI_ERR_OTHER;
    snprintf(shown, sizeof shown, "longhaul: %s", text);
    pthread_mutex_lock(&job.lock);
    if (!job.error_code && (PMPI_Add_error_class(&class) || PMPI_Add_error_code(class, &job.error_code)))
        job.error_code = 0;
    if (job.error_code && !PMPI_Add_error_string(job.error_code, shown))
        code = job.error_code;
    pthread_mutex_unlock(&job.lock);
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

/* Those of a communicator's ranks. */
struct sites {
    int count;
    int own; /* this rank's number in job.sites */
};

/* ---- a communicator's group ---------------------------------------------------------------------------- */

/* What ranks gather before each exchange, and at the end: one that fails early keeps no other waiting. */
enum progress { EXCHANGING = 1, CREATED, FAILED };

struct meeting {
    MPI_Comm comm;
    int size;
    bool is_over; /* a rank has announced another progress: all know that there is no group */
};

/* Returns 0 if all ranks are at the same point. */
static int gather_progress(struct meeting *meeting, enum progress mine)
{
    int *all = calloc((size_t)meeting->size, sizeof *all), own = (int)mine;
    char text[96];
    meeting->is_over = true;
    if (!all)
        return lh_error_set(LH_ENOMEM, "no memory for the ranks of a communicator");
    int error = PMPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, meeting->comm)
                    ? lh_error_set(LH_EPEER, "MPI_Allgather has failed")
                    : 0;
    for (int r = 0; !error && r < meeting->size; r++)
        if (all[r] != own) {
            snprintf(text, sizeof text, "rank %d of the communicator could not create its group", r);
            error = lh_error_set(LH_ECANCELED, text);
        }
    free(all);
    meeting->is_over = error != 0;
    return error;
}

static int exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct meeting *meeting = context;
    int error = gather_progress(meeting, EXCHANGING);
    if (error)
        return error;
    if (PMPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, meeting->comm)) {
        meeting->is_over = true;
        return lh_error_set(LH_EPEER, "MPI_Allgather has failed");
    }
    return 0;
}

/* With the lock. */
static int open_engine(void)
{
    struct plugin_device devices[PLUGIN_DEVICES_MAX];
    struct lh_engine_attr attr;
    const char *interfaces = job.settings.interfaces;
    int count;
    if (job.engine)
        return 0;
    int error = plugin_devices(!*interfaces && job.is_one_host ? "lo" : interfaces, devices, &count);
    if (error)
        return error;
    lh_engine_attr_init(&attr);
    attr.device = devices[0].name;
    attr.rate_bps = job.settings.rate_bps;
    return lh_engine_create(&attr, &job.engine);
}

static int create_group(struct meeting *meeting, int rank, struct lh_group **group)
{
    struct lh_group_attr attr;
    struct lh_attr inside, across;
    struct lh_security security;
    pthread_mutex_lock(&job.lock);
    int error = open_engine();
    pthread_mutex_unlock(&job.lock);
    if (error)
        return error;
    plugin_settings_attr(&job.settings, &inside, &security);
    across = inside;
    across.link = job.settings.link;
    lh_group_attr_init(&attr);
    attr.rank = (uint32_t)rank;
    attr.size = (uint32_t)meeting->size;
    attr.exchange = exchange;
    attr.exchange_context = meeting;
    attr.site = *job.site ? job.site : NULL;
    attr.engine = job.engine;
    attr.attr = &inside;
    attr.attr_across = &across;
    attr.peer_timeout_ns = job.settings.peer_timeout_ns;
    attr.thread = true; /* it learns of a rank that dies while this one waits in its site */
    return lh_group_create(&attr, group);
}

/* Splits a group with several ranks at a site. Errors within the site are those of the whole communicator,
 * whose handler gets them. */
static int create_levels(struct member *member, int rank, int site)
{
    int rank_at_site;
    if (PMPI_Comm_split(member->comm, site, rank, &member->levels.site) ||
        PMPI_Comm_set_errhandler(member->levels.site, MPI_ERRORS_RETURN) ||
        PMPI_Comm_rank(member->levels.site, &rank_at_site))
        return lh_error_set(LH_EPEER, "MPI_Comm_split has failed");
    return lh_group_split(member->group, rank_at_site ? LH_GROUP_NO_COLOR : 0, (uint32_t)rank,
                          &member->levels.leaders);
}

static void end_groups(struct member *member)
{
    lh_group_destroy(member->levels.leaders);
    lh_group_destroy(member->group);
    member->levels.leaders = member->group = NULL;
    if (member->levels.site != MPI_COMM_NULL)
        PMPI_Comm_free(&member->levels.site);
}

/* Whether this rank's step and those of all others have succeeded. */
static int agree(struct meeting *meeting, struct member *member, int error)
{
    if (error)
        snprintf(member->error, sizeof member->error, "%s", lh_last_error());
    int differs = meeting->is_over ? error : gather_progress(meeting, error ? FAILED : CREATED);
    if (differs && !error)
        snprintf(member->error, sizeof member->error, "%s", lh_last_error());
    return error ? error : differs;
}

/* All ranks create the group, or none has one. The line is for error handlers that show no text. */
static void meet(struct member *member, int rank, int size, const struct sites *sites)
{
    struct meeting meeting = {.comm = member->comm, .size = size};
    int error = agree(&meeting, member, create_group(&meeting, rank, &member->group));
    if (!error && sites->count < size)
        error = agree(&meeting, member, create_levels(member, rank, sites->own));
    if (!error)
        return;
    end_groups(member);
    fprintf(stderr, "%s: %s\n", SHIM, member->error);
}

/* The sites of a communicator. count: 0 if a rank is of another job. */
static struct sites find_comm_sites(MPI_Comm comm, int rank, int size)
{
    MPI_Group world, group;
    struct sites sites = {0};
    int *ranks = calloc((size_t)size, 2 * sizeof *ranks), *of_world = ranks + size;
    bool is_known = ranks != NULL;
    if (!is_known)
        return sites;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    for (int r = 0; r < size; r++)
        ranks[r] = r;
    PMPI_Group_translate_ranks(group, size, ranks, world, of_world);
    for (int r = 0; r < size; r++) {
        int before = 0;
        is_known &= of_world[r] != MPI_UNDEFINED;
        while (is_known && before < r && job.sites[of_world[before]] != job.sites[of_world[r]])
            before++;
        sites.count += before == r;
    }
    sites.count = is_known ? sites.count : 0;
    sites.own = is_known ? job.sites[of_world[rank]] : 0;
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    free(ranks);
    return sites;
}

static int create_member(MPI_Comm comm, struct member **out)
{
    int is_inter, rank, size;
    struct sites sites = {0};
    struct member *member = calloc(1, sizeof *member);
    if (!member)
        return pmpi_raise(comm, "no memory for a communicator");
    member->comm = comm;
    member->levels.site = MPI_COMM_NULL;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    if (!is_inter && size <= LH_GROUP_RANKS_MAX)
        sites = find_comm_sites(comm, rank, size);
    if (sites.count > 1)
        meet(member, rank, size, &sites);
    pthread_mutex_lock(&job.lock);
    member->next = job.members;
    job.members = member;
    pthread_mutex_unlock(&job.lock);
    *out = member;
    return PMPI_Comm_set_attr(comm, job.keyval, member);
}

int pmpi_group(MPI_Comm comm, struct lh_group **group)
{
    struct member *member = NULL;
    int is_there = 0;
    *group = NULL;
    if (comm == MPI_COMM_NULL)
        return MPI_SUCCESS; /* MPI's own collective has the error */
    int result = PMPI_Comm_get_attr(comm, job.keyval, (void *)&member, &is_there);
    if (!result && !is_there)
        result = create_member(comm, &member);
    if (result)
        return result;
    if (*member->error)
        return pmpi_raise(comm, member->error);
    *group = member->group;
    return MPI_SUCCESS;
}

struct pmpi_levels *pmpi_levels(MPI_Comm comm)
{
    struct member *member = NULL;
    int is_there = 0;
    PMPI_Comm_get_attr(comm, job.keyval, (void *)&member, &is_there);
    return is_there && member->levels.site != MPI_COMM_NULL ? &member->levels : NULL;
}

/* Of the attribute: the communicator ends. */
static int delete_member(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    pthread_mutex_lock(&job.lock);
    struct member **at = &job.members;
    while (*at && *at != value)
        at = &(*at)->next;
    struct member *member = *at;
    if (member)
        *at = member->next;
    pthread_mutex_unlock(&job.lock);
    if (member)
        end_groups(member);
    free(member);
    return MPI_SUCCESS;
}

/* ---- MPI_Init, MPI_Finalize ---------------------------------------------------------------------------- */

/* Handles of another MPI are other types: no call may pass them on. MPI libraries compatible with MPICH
 * name it first, or themselves. */
static void check_library(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int bytes;
    PMPI_Get_library_version(version, &bytes);
    bool is_open_mpi = strncmp(version, "Open MPI", 8) == 0;
    if (is_open_mpi == (strcmp(LIBRARY, "Open MPI") == 0))
        return;
    version[strcspn(version, ",\n")] = '\0';
    fprintf(stderr, "%s: the program uses %.60s (preload the shim of that MPI)\n", SHIM, version);
    exit(EXIT_FAILURE);
}

/* All ranks end the job, without MPI_Abort: then mpirun may lose the line of the rank that has one. */
static void stop(const char *text)
{
    if (text)
        fprintf(stderr, "%s: %s\n", SHIM, text);
    PMPI_Finalize();
    exit(EXIT_FAILURE);
}

static void fill_card(struct card *card)
{
    const struct plugin_host host = {.name = "MPI"};
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int bytes;
    job.min_bytes = MIN_BYTES_DEFAULT;
    int error = plugin_settings_read(&host, &job.settings);
    if (!error)
        error = plugin_read_text("LONGHAUL_SITE", job.site, sizeof job.site);
    if (!error)
        error = plugin_read_size("LONGHAUL_MPI_MIN_BYTES", 0, MIN_BYTES_MAX,
                                 "out of range (use up to 1TiB)", &job.min_bytes);
    *card = (struct card){.min_bytes = job.min_bytes};
    if (error)
        snprintf(card->error, sizeof card->error, "%s", lh_last_error());
    PMPI_Get_processor_name(name, &bytes);
    snprintf(card->host, sizeof card->host, "%s", name);
    snprintf(card->release, sizeof card->release, "%s", lh_version());
    memcpy(card->site, job.site, sizeof card->site);
}

/* The lowest rank with an error shows it. */
static void check_cards(const struct card *cards, int rank)
{
    char text[256], first[32], other[32];
    for (int r = 0; r < job.size; r++)
        if (strcmp(cards[r].release, cards[0].release) != 0) {
            snprintf(text, sizeof text, "release %.31s at rank %d, %.31s at rank 0 (use one)",
                     cards[r].release, r, cards[0].release);
            stop(rank == r ? text : NULL);
        } else if (*cards[r].error) {
            stop(rank == r ? cards[r].error : NULL);
        } else if (cards[r].min_bytes != cards[0].min_bytes) {
            snprintf(text, sizeof text,
                     "LONGHAUL_MPI_MIN_BYTES: %s at rank %d, %s at rank 0 (set the same at all ranks)",
                     lh_format_size(cards[r].min_bytes, other, sizeof other), r,
                     lh_format_size(cards[0].min_bytes, first, sizeof first));
            stop(rank == r ? text : NULL);
        }
}

/* Sites are the names of LONGHAUL_SITE, where a rank has one; else hosts, which get names. Returns their
 * number. */
static int find_sites(const struct card *cards, int rank)
{
    bool is_named = false;
    int count = 0;
    job.is_one_host = true;
    for (int r = 0; r < job.size; r++) {
        is_named |= *cards[r].site != '\0';
        job.is_one_host &= strcmp(cards[r].host, cards[0].host) == 0;
    }
    for (int r = 0; r < job.size; r++) {
        const char *name = is_named ? cards[r].site : cards[r].host;
        int first = 0;
        while (strcmp(is_named ? cards[first].site : cards[first].host, name) != 0)
            first++;
        job.sites[r] = first;
        count += first == r;
    }
    if (!is_named)
        snprintf(job.site, sizeof job.site, "host of rank %d", job.sites[rank]);
    return count;
}

static void tell_start(int sites)
{
    char size[32];
    if (sites < 2)
        fprintf(stderr,
                "%s: all ranks at one site: MPI's own collectives serve them (set LONGHAUL_SITE at each "
                "rank)\n",
                SHIM);
    else
        fprintf(stderr,
                "%s %s: %d ranks at %d sites, collectives from %s on; reliability %s, congestion %s%s\n",
                SHIM, lh_version(), job.size, sites, lh_format_size(job.min_bytes, size, sizeof size),
                job.settings.reliability, *job.settings.congestion ? job.settings.congestion : "default",
                lh_link_is_none(&job.settings.link) ? "" : ", emulated link");
}

/* All ranks of the job call it. */
static void start_job(void)
{
    struct card card, *cards;
    int rank, sites;
    PMPI_Comm_size(MPI_COMM_WORLD, &job.size);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fill_card(&card);
    cards = calloc((size_t)job.size, sizeof *cards);
    job.sites = calloc((size_t)job.size, sizeof *job.sites);
    if (!cards || !job.sites) {
        fprintf(stderr, "%s: no memory for the ranks of the job\n", SHIM);
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    PMPI_Allgather(&card, sizeof card, MPI_BYTE, cards, sizeof card, MPI_BYTE, MPI_COMM_WORLD);
    check_cards(cards, rank);
    sites = find_sites(cards, rank);
    free(cards);
    if (rank == 0 && job.size > 1)
        tell_start(sites);
    if (sites > 1)
        job.is_active =
            PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_member, &job.keyval, NULL) == 0;
}

PMPI_EXPORT int MPI_Init(int *argc, char ***argv)
{
    check_library();
    int result = PMPI_Init(argc, argv);
    if (!result)
        start_job();
    return result;
}

PMPI_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    check_library();
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (!result)
        start_job();
    return result;
}

/* Groups end in the reverse order of their creation, which is the same at all ranks of each. */
PMPI_EXPORT int MPI_Finalize(void)
{
    while (job.is_active && job.members) {
        struct member *member = job.members;
        if (PMPI_Comm_delete_attr(member->comm, job.keyval) || job.members == member)
            delete_member(MPI_COMM_NULL, job.keyval, member, NULL);
    }
    job.is_active = false;
    lh_engine_destroy(job.engine);
    job.engine = NULL;
    free(job.sites);
    job.sites = NULL;
    return PMPI_Finalize();
}
