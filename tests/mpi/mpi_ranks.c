/*
 * mpi_ranks.c - a rank of the tests of the shim for MPI, which is preloaded. run.sh starts it.
 *
 * usage: mpi_ranks orders SEED COUNT    random collectives, each compared with that of PMPI_
 *        mpi_ranks sites                which communicators the shim takes
 *        mpi_ranks death                the last rank is killed amid collectives; the others append what they
 *                                       get to the file $DEATH_LOG
 *        mpi_ranks idle                 nothing: for settings that end the job
 *
 * All ranks draw the same numbers. Each sets LONGHAUL_SITE of its own before MPI_Init.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMMS_MAX   6
#define GUARD_BYTES 64
#define GUARD       0xa5
#define DEATH_S     8 /* of the error: twice the peer timeout of run.sh, and the machine is busy */

static int world_rank, world_size, failures;
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % below);
}

static void fail(const char *what, long step)
{
    printf("rank %d: step %ld: %s\n", world_rank, step, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE); /* others may wait for this rank */
}

/* ---- buffers ------------------------------------------------------------------------------------------- */

/* What a call reads and writes, and the same for PMPI_. */
struct buffers {
    size_t in_bytes, out_bytes;
    unsigned char *in, *out, *expected;
};

static unsigned char *allocate(size_t bytes)
{
    unsigned char *memory = malloc(bytes + GUARD_BYTES);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memset(memory, GUARD, bytes + GUARD_BYTES);
    return memory;
}

static void check(const struct buffers *buffers, int result, const char *what, long step)
{
    if (result)
        fail("an error", step);
    if (memcmp(buffers->out, buffers->expected, buffers->out_bytes + GUARD_BYTES) != 0)
        fail(what, step);
}

/* ---- types --------------------------------------------------------------------------------------------- */

static const struct {
    MPI_Datatype type;
    size_t bytes;
    char kind; /* f: float, i: integer, b: bytes */
} TYPES[] = {
    {MPI_FLOAT, 4, 'f'},         {MPI_DOUBLE, 8, 'f'},        {MPI_INT, 4, 'i'},
    {MPI_LONG, 8, 'i'},          {MPI_SHORT, 2, 'i'},         {MPI_SIGNED_CHAR, 1, 'i'},
    {MPI_UNSIGNED_CHAR, 1, 'i'}, {MPI_UNSIGNED, 4, 'i'},      {MPI_UINT16_T, 2, 'i'},
    {MPI_UINT64_T, 8, 'i'},      {MPI_LONG_LONG, 8, 'i'},     {MPI_BYTE, 1, 'b'},
    {MPI_AINT, 8, 'i'},          {MPI_UNSIGNED_LONG, 8, 'i'},
};
#define TYPE_COUNT (sizeof TYPES / sizeof *TYPES)

static const struct {
    MPI_Op op;
    const char *kinds;
} OPS[] = {
    {MPI_SUM, "fi"}, {MPI_PROD, "fi"}, {MPI_MIN, "fi"}, {MPI_MAX, "fi"}, {MPI_BAND, "ib"},
    {MPI_BOR, "ib"}, {MPI_BXOR, "ib"}, {MPI_LAND, "i"}, {MPI_LOR, "i"},
};
#define OP_COUNT (sizeof OPS / sizeof *OPS)

/* Floats whose sums and products are exact in any order. Integers of any value, but for short ones, whose
 * sums some MPIs saturate (Open MPI 4.1). */
static void fill(unsigned char *at, size_t count, size_t type, long step)
{
    uint64_t own = (uint64_t)step * 7919 + (uint64_t)world_rank * 104729;
    for (size_t i = 0; i < count; i++) {
        own = own * 6364136223846793005u + 1442695040888963407u;
        uint64_t value = TYPES[type].bytes > 2 ? own >> 20 : (own >> 20) % 4;
        float single = (float)(1 + value % 4) * (value & 64 ? -1.0f : 1.0f);
        double twice = single;
        if (TYPES[type].type == MPI_FLOAT)
            memcpy(at + 4 * i, &single, 4);
        else if (TYPES[type].type == MPI_DOUBLE)
            memcpy(at + 8 * i, &twice, 8);
        else
            memcpy(at + TYPES[type].bytes * i, &value, TYPES[type].bytes);
    }
}

/* ---- reductions ---------------------------------------------------------------------------------------- */

static size_t draw_count(void)
{
    static const uint32_t bounds[] = {4, 100, 3000, 60000};
    return 1 + draw(bounds[draw(4)]);
}

static void reduce_once(MPI_Comm comm, long step)
{
    int rank, size, result;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    size_t type = draw(TYPE_COUNT), count = draw_count();
    uint32_t op, call = draw(4), root = draw(16) % (uint32_t)size;
    do
        op = draw(OP_COUNT);
    while (!strchr(OPS[op].kinds, TYPES[type].kind));
    bool in_place = draw(2), scatters = call >= 2;
    /* MPICH 4.0 itself fails to reduce in place at another root: only where the shim takes the call. */
    if (call == 1 && root > 0 && (comm != MPI_COMM_WORLD || OPS[op].op != MPI_SUM))
        in_place = false;
    size_t bytes = count * TYPES[type].bytes, whole = scatters ? bytes * (size_t)size : bytes;
    struct buffers buffers = {whole, whole, allocate(whole), allocate(whole), allocate(whole)};
    fill(buffers.in, whole / TYPES[type].bytes, type, step);
    bool is_in_place = in_place && (call != 1 || rank == (int)root);
    if (is_in_place)
        memcpy(buffers.out, buffers.in, whole);
    const void *in = is_in_place ? MPI_IN_PLACE : buffers.in;
    MPI_Datatype as = TYPES[type].type;
    int *counts = calloc((size_t)size, sizeof *counts), number = (int)count;
    for (int r = 0; r < size; r++)
        counts[r] = number;
    if (call == 0) {
        result = MPI_Allreduce(in, buffers.out, number, as, OPS[op].op, comm);
        PMPI_Allreduce(buffers.in, buffers.expected, number, as, OPS[op].op, comm);
    } else if (call == 1) {
        result = MPI_Reduce(in, buffers.out, number, as, OPS[op].op, (int)root, comm);
        PMPI_Reduce(buffers.in, buffers.expected, number, as, OPS[op].op, (int)root, comm);
        buffers.out_bytes = rank == (int)root ? whole : 0;
    } else {
        result = call == 2 ? MPI_Reduce_scatter_block(in, buffers.out, number, as, OPS[op].op, comm)
                           : MPI_Reduce_scatter(in, buffers.out, counts, as, OPS[op].op, comm);
        PMPI_Reduce_scatter_block(buffers.in, buffers.expected, number, as, OPS[op].op, comm);
    }
    if (is_in_place && scatters) /* MPI leaves the rest unspecified */
        memcpy(buffers.out + bytes, buffers.expected + bytes, whole - bytes);
    check(&buffers, result, "a reduction differs", step);
    free(counts), free(buffers.in), free(buffers.out), free(buffers.expected);
}

/* ---- data that is moved -------------------------------------------------------------------------------- */

/* A type of the same signature as 6 ints: of another layout each time. */
static MPI_Datatype draw_type(uint32_t kind, MPI_Count *count)
{
    MPI_Datatype type;
    const int lengths[] = {2, 1, 3}, places[] = {7, 0, 2};
    *count = 1;
    if (kind == 0) {
        *count = 6;
        return MPI_INT;
    }
    if (kind == 1)
        MPI_Type_contiguous(6, MPI_INT, &type);
    else if (kind == 2)
        MPI_Type_vector(3, 2, 3, MPI_INT, &type);
    else
        MPI_Type_indexed(3, lengths, places, MPI_INT, &type); /* neither sorted nor dense */
    MPI_Type_commit(&type);
    return type;
}

/* Each rank has types of its own, whose signatures are equal. */
static void move_once(MPI_Comm comm, long step)
{
    int rank, size, result;
    MPI_Count in_count, out_count;
    MPI_Aint low, in_extent, out_extent;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    uint32_t call = draw(3), root = draw(16) % (uint32_t)size, kinds = draw(1 << 16);
    int times = 1 + (int)draw(2000);
    bool in_place = draw(2) && call > 0;
    MPI_Datatype in_type = draw_type((kinds >> 2 * world_rank) % 4, &in_count),
                 out_type = draw_type((kinds >> (2 * world_rank + 5)) % 4, &out_count);
    MPI_Type_get_extent(in_type, &low, &in_extent);
    MPI_Type_get_extent(out_type, &low, &out_extent);
    int sent = times * (int)in_count, received = times * (int)out_count;
    size_t in_bytes = (size_t)size * (size_t)sent * (size_t)in_extent,
           out_bytes = (size_t)size * (size_t)received * (size_t)out_extent;
    struct buffers buffers = {in_bytes, out_bytes, allocate(in_bytes), allocate(out_bytes),
                              allocate(out_bytes)};
    fill(buffers.in, in_bytes / sizeof(int), 2, step);
    fill(buffers.out, out_bytes / sizeof(int), 2, step + 1);
    memcpy(buffers.expected, buffers.out, out_bytes);
    const void *in = in_place ? MPI_IN_PLACE : buffers.in;
    void *out = buffers.out, *expected = buffers.expected;
    if (call == 0) {
        result = MPI_Bcast(out, received, out_type, (int)root, comm);
        PMPI_Bcast(expected, received, out_type, (int)root, comm);
    } else if (call == 1) {
        result = MPI_Allgather(in, sent, in_type, out, received, out_type, comm);
        PMPI_Allgather(in, sent, in_type, expected, received, out_type, comm);
    } else {
        result = MPI_Alltoall(in, sent, in_type, out, received, out_type, comm);
        PMPI_Alltoall(in, sent, in_type, expected, received, out_type, comm);
    }
    check(&buffers, result,
          call == 0   ? "a broadcast differs"
          : call == 1 ? "an allgather differs"
                      : "an alltoall differs",
          step);
    if (in_type != MPI_INT)
        MPI_Type_free(&in_type);
    if (out_type != MPI_INT)
        MPI_Type_free(&out_type);
    free(buffers.in), free(buffers.out), free(buffers.expected);
}

/* Types of absolute addresses, at some ranks. */
static void move_addresses(MPI_Comm comm, long step)
{
    int values[10], rank, length = 10;
    MPI_Aint place;
    MPI_Datatype type;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < length; i++)
        values[i] = rank == 0 ? (int)step + i : -1;
    MPI_Get_address(values, &place);
    MPI_Type_create_hindexed(1, &length, &place, MPI_INT, &type);
    MPI_Type_commit(&type);
    if ((world_rank + step) % 2)
        MPI_Bcast(MPI_BOTTOM, 1, type, 0, comm);
    else
        MPI_Bcast(values, length, MPI_INT, 0, comm);
    MPI_Type_free(&type);
    for (int i = 0; i < length; i++)
        if (values[i] != (int)step + i)
            fail("a broadcast of absolute addresses differs", step);
}

/* ---- communicators ------------------------------------------------------------------------------------- */

static void replace_comm(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
    uint32_t kind = draw(3), color = draw(3);
    if (kind == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, (int)((color >> (world_rank % 2)) & 1),
                       kind == 1 ? world_rank : world_size - world_rank, comm);
}

/* A rank waits in a receive for a long message, which another one has sent before its collective: MPI has
 * to make progress there. */
static void exchange_beside(MPI_Comm comm, long step)
{
    enum { INTS = 1 << 20 };
    int rank, size, sum = 0, one = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size < 2)
        return;
    int *message = calloc(INTS, sizeof *message);
    MPI_Request request = MPI_REQUEST_NULL, reduction;
    if (rank == 0) {
        for (int i = 0; i < INTS; i++)
            message[i] = i;
        MPI_Isend(message, INTS, MPI_INT, 1, 5, comm, &request);
    } else if (rank == 1) {
        MPI_Recv(message, INTS, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE);
    }
    int before = 0;
    MPI_Iallreduce(&one, &before, 1, MPI_INT, MPI_SUM, comm, &reduction);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&reduction, MPI_STATUS_IGNORE);
    if (sum != size || before != size || (rank == 1 && message[INTS - 1] != INTS - 1))
        fail("a collective beside messages differs", step);
    free(message);
}

/* Between two halves of the ranks: MPI's own. */
static void intercommunicate(long step)
{
    MPI_Comm half, both;
    int is_upper = world_rank >= world_size / 2, one = 1, sum = 0;
    MPI_Comm_split(MPI_COMM_WORLD, is_upper, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_upper ? 0 : world_size / 2, 9, &both);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, both);
    if (sum != (is_upper ? world_size / 2 : world_size - world_size / 2))
        fail("a sum between communicators differs", step);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* Errors of arguments are MPI's, as without the shim. Debian's MPICH checks none: it crashes. */
static void misuse(MPI_Comm comm, long step)
{
    float in[4] = {0}, out[4];
    MPI_Errhandler handler;
#ifndef OPEN_MPI
    return;
#endif
    MPI_Comm_get_errhandler(comm, &handler);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int count = MPI_Allreduce(in, out, -1, MPI_FLOAT, MPI_SUM, comm);
    int op = MPI_Allreduce(in, out, 4, MPI_FLOAT, MPI_BAND, comm);
    int root = MPI_Bcast(in, 4, MPI_FLOAT, 1000, comm);
    if (!count || !op || !root)
        fail("an invalid argument was accepted", step);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
}

static void run_orders(uint64_t seed, long steps)
{
    MPI_Comm comms[COMMS_MAX];
    state = seed;
    for (int i = 0; i < COMMS_MAX; i++)
        comms[i] = MPI_COMM_NULL;
    for (long step = 0; step < steps && failures == 0; step++) {
        uint32_t which = draw(COMMS_MAX + 1), kind = draw(40);
        if (which < COMMS_MAX && (comms[which] == MPI_COMM_NULL || draw(25) == 0))
            replace_comm(&comms[which]);
        MPI_Comm comm = which < COMMS_MAX ? comms[which] : MPI_COMM_WORLD;
        /* Ranks of different communicators go on alike: what they draw depends on no communicator. */
        uint64_t before = state;
        if (kind == 0)
            exchange_beside(comm, step);
        else if (kind == 1)
            intercommunicate(step);
        else if (kind == 2)
            misuse(comm, step);
        else if (kind == 3)
            move_addresses(comm, step);
        else if (kind < 22)
            reduce_once(comm, step);
        else
            move_once(comm, step);
        state = before;
        draw(2);
    }
    for (int i = 0; i < COMMS_MAX; i += 2) /* MPI_Finalize ends the others */
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[i]);
}

/* ---- other modes --------------------------------------------------------------------------------------- */

static int threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* An engine has threads: communicators of one site have none, those of several sites do. */
static void run_sites(void)
{
    MPI_Comm site;
    int color = world_rank % 2, one = 1, sum = 0, before = threads();
    MPI_Comm_split(MPI_COMM_WORLD, color, 0, &site);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, site);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    if (threads() != before)
        fail("a communicator within a site has an engine", 0);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != world_size)
        fail("a sum differs", 0);
    if (threads() <= before)
        fail("a communicator of two sites has no engine", 0);
    MPI_Comm_free(&site);
}

/* 64 MiB: Open MPI's non-blocking reductions of that size within a site run out of stack. */
static void run_large(void)
{
    enum { INTS = 16 << 20 };
    unsigned *in = malloc(INTS * sizeof *in), *out = malloc(INTS * sizeof *out);
    if (!in || !out) {
        fail("no memory", 0);
        return;
    }
    for (unsigned i = 0; i < INTS; i++)
        in[i] = (i + 1) * ((unsigned)world_rank + 1);
    MPI_Allreduce(in, out, INTS, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    unsigned ranks = (unsigned)world_size, wrong = 0;
    for (unsigned i = 0; i < INTS; i++)
        wrong += out[i] != (i + 1) * (ranks * (ranks + 1) / 2);
    MPI_Bcast(in, INTS, MPI_UNSIGNED, world_size - 1, MPI_COMM_WORLD);
    for (unsigned i = 0; i < INTS; i++)
        wrong += in[i] != (i + 1) * ranks;
    if (wrong)
        fail("large collectives differ", 0);
    free(in);
    free(out);
}

/* The survivors get an error, and do not end with MPI_Finalize. */
static void run_death(void)
{
    enum { INTS = 1 << 20 };
    int *in = calloc(INTS, sizeof *in), *out = calloc(INTS, sizeof *out), error = 0, bytes = 0;
    char text[MPI_MAX_ERROR_STRING] = "";
    struct timespec began, ended;
    signal(SIGUSR1, SIG_IGN); /* MPICH's mpirun signals a death with it */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3 && !error; i++)
        error = MPI_Allreduce(in, out, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (error)
        fail("an error before the death", 0);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == world_size - 1)
        raise(SIGKILL);
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (!error)
        error = MPI_Allreduce(in, out, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    MPI_Error_string(error, text, &bytes);
    /* To a file: mpirun may pass nothing on after a death. */
    FILE *log = fopen(getenv("DEATH_LOG"), "a");
    bool is_late = ended.tv_sec - began.tv_sec > DEATH_S;
    if (log && fprintf(log, "rank %d%s: %s\n", world_rank, is_late ? ", late" : "", text) > 0)
        fclose(log);
    _exit(EXIT_SUCCESS);
}

/* Before MPI_Init: from the launcher's variables. SITES: how many. */
static void set_site(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *sites = getenv("SITES");
    char site[16];
    if (!rank)
        rank = getenv("PMI_RANK");
    if (!rank || !sites)
        return;
    snprintf(site, sizeof site, "site%d", atoi(rank) % atoi(sites));
    setenv("LONGHAUL_SITE", site, 1);
}

int main(int argc, char **argv)
{
    int provided;
    set_site();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc == 4 && !strcmp(argv[1], "orders"))
        run_orders(strtoull(argv[2], NULL, 10), atol(argv[3]));
    else if (argc == 2 && !strcmp(argv[1], "sites"))
        run_sites();
    else if (argc == 2 && !strcmp(argv[1], "large"))
        run_large();
    else if (argc == 2 && !strcmp(argv[1], "death"))
        run_death();
    else if (argc != 2 || strcmp(argv[1], "idle") != 0)
        failures = 1;
    int mine = failures;
    PMPI_Allreduce(&mine, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return failures != 0;
}
