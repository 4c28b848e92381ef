/*
 * host_ranks.c - ranks as processes: sums over a ring and a tree as NCCL computes them, and processes that
 * die. Handles pass through shared memory, NCCL's bootstrap here.
 *
 * A rank has several communicators, with a thread each, as NCCL has a progress thread for each. A thread
 * polls all its channels in turn. A connection has 8 slots at each end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "nccl_host/host_net.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS           8
#define SLICE_BYTES     (256u << 10)
#define RANKS_MAX       8
#define CHANNELS_MAX    8
#define COMMUNICATORS   2
#define EDGES_MAX       (3 * RANKS_MAX)
#define HANG_S          240
#define DEATH_TIMEOUT   "2s"
#define DEATH_TIMEOUT_S 2.0

struct mail {
    int is_written;
    char handle[NCCL_HANDLE_BYTES];
};

/* Shared by all ranks. */
static struct board {
    struct mail mail[COMMUNICATORS][CHANNELS_MAX][EDGES_MAX];
} * board;

static struct board *new_board(void)
{
    void *memory = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

/* ---- slots: a connection's two ends -------------------------------------------------------------------- */

struct out {
    void *comm, *request[SLOTS];
    unsigned char *slot[SLOTS];
    uint64_t posted, ended;
};

struct in {
    void *comm, *request[SLOTS];
    unsigned char *slot[SLOTS];
    uint64_t posted, taken, total;
    int bytes; /* of the slice that in_peek has returned; below 0: none */
};

static void slots_create(unsigned char **slots)
{
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = malloc(SLICE_BYTES);
        CHECK(slots[i]);
    }
}

static void slots_free(unsigned char **slots)
{
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);
}

/* Sends a slice if a slot is free. */
static bool out_put(const struct net *net, struct out *out, const void *data, size_t bytes)
{
    while (out->ended < out->posted && net_test(net, out->request[out->ended % SLOTS], NULL))
        out->ended++;
    if (out->posted - out->ended == SLOTS)
        return false;
    unsigned char *slot = out->slot[out->posted % SLOTS];
    if (bytes)
        memcpy(slot, data, bytes);
    void *request = net_isend(net, out->comm, slot, bytes, 7);
    if (!request)
        return false;
    out->request[out->posted++ % SLOTS] = request;
    return true;
}

static void out_end(const struct net *net, struct out *out)
{
    while (out->ended < out->posted)
        out->ended += net_test(net, out->request[out->ended % SLOTS], NULL);
}

/* Returns the next slice if it is there; it stays until in_pop. */
static const unsigned char *in_peek(const struct net *net, struct in *in)
{
    while (in->posted < in->total && in->posted - in->taken < SLOTS) {
        void *slot = in->slot[in->posted % SLOTS];
        size_t bytes = SLICE_BYTES;
        int tag = 7;
        void *request = net_irecv(net, in->comm, 1, &slot, &bytes, &tag);
        if (!request)
            break;
        in->request[in->posted++ % SLOTS] = request;
    }
    if (in->bytes < 0 && in->taken < in->posted) {
        int bytes = -1;
        if (net_test(net, in->request[in->taken % SLOTS], &bytes))
            in->bytes = bytes;
    }
    return in->bytes < 0 ? NULL : in->slot[in->taken % SLOTS];
}

static void in_pop(struct in *in)
{
    in->bytes = -1;
    in->taken++;
}

/* ---- a communicator ------------------------------------------------------------------------------------ */

struct edge {
    int from, to;
};

struct channel {
    struct out out[EDGES_MAX]; /* of edges from this rank */
    struct in in[EDGES_MAX];   /* of edges to it */
    uint32_t *data, *wanted;
    size_t first, count; /* of the elements */
    /* ring */
    uint64_t received, sent;
    /* tree */
    uint64_t reduced, settled, down[2];
};

struct communicator {
    const struct net *net;
    int number, rank, ranks, channels, rounds, edges;
    size_t elements;
    struct edge edge[EDGES_MAX];
    struct channel channel[CHANNELS_MAX];
};

/* Edge r of the ring goes to r + 1; edges of the tree follow, up and down of each rank but 0. */
static void lay_edges(struct communicator *c)
{
    for (int r = 0; r < c->ranks; r++)
        c->edge[c->edges++] = (struct edge){r, (r + 1) % c->ranks};
    for (int r = 1; r < c->ranks; r++) {
        c->edge[c->edges++] = (struct edge){r, (r - 1) / 2};
        c->edge[c->edges++] = (struct edge){(r - 1) / 2, r};
    }
}

static int up_edge(const struct communicator *c, int rank)
{
    return c->ranks + 2 * (rank - 1);
}

static bool connect_edge(struct communicator *c, struct channel *channel, int e, void **listen,
                         char *handle)
{
    struct mail *mail = &board->mail[c->number][channel - c->channel][e];
    bool sends = c->edge[e].from == c->rank, receives = c->edge[e].to == c->rank;
    if (receives && !*listen) {
        char own[NCCL_HANDLE_BYTES];
        *listen = net_listen(c->net, own);
        memcpy(mail->handle, own, sizeof own);
        __atomic_store_n(&mail->is_written, 1, __ATOMIC_RELEASE);
    }
    if (receives && !channel->in[e].comm) {
        channel->in[e].comm = net_accept(c->net, *listen);
        if (channel->in[e].comm)
            net_close_listen(c->net, *listen);
    }
    if (sends && !channel->out[e].comm && __atomic_load_n(&mail->is_written, __ATOMIC_ACQUIRE)) {
        memcpy(handle, mail->handle, NCCL_HANDLE_BYTES);
        channel->out[e].comm = net_connect(c->net, handle);
    }
    return (!receives || channel->in[e].comm) && (!sends || channel->out[e].comm);
}

static void connect_all(struct communicator *c)
{
    static char handles[COMMUNICATORS][CHANNELS_MAX][EDGES_MAX][NCCL_HANDLE_BYTES];
    void *listens[CHANNELS_MAX][EDGES_MAX] = {0};
    for (bool ready = false; !ready;) {
        ready = true;
        for (int i = 0; i < c->channels; i++)
            for (int e = 0; e < c->edges; e++)
                ready &= connect_edge(c, &c->channel[i], e, &listens[i][e], handles[c->number][i][e]);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    for (int i = 0; i < c->channels; i++)
        for (int e = 0; e < c->edges; e++) {
            slots_create(c->channel[i].out[e].slot);
            slots_create(c->channel[i].in[e].slot);
            c->channel[i].in[e].bytes = -1;
        }
}

static void close_all(struct communicator *c)
{
    for (int i = 0; i < c->channels; i++)
        for (int e = 0; e < c->edges; e++) {
            struct channel *channel = &c->channel[i];
            if (channel->out[e].comm)
                net_close_send(c->net, channel->out[e].comm);
            if (channel->in[e].comm)
                net_close_recv(c->net, channel->in[e].comm);
            slots_free(channel->out[e].slot);
            slots_free(channel->in[e].slot);
        }
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

#define SLICE_ELEMENTS (SLICE_BYTES / sizeof(uint32_t))

static uint32_t input(int rank, int round, size_t element)
{
    struct dice dice = {(uint64_t)rank << 48 ^ (uint64_t)round << 40 ^ element};
    return (uint32_t)dice_throw(&dice);
}

static void add(uint32_t *to, const unsigned char *from, size_t count)
{
    const uint32_t *values = (const void *)from;
    for (size_t i = 0; i < count; i++)
        to[i] += values[i];
}

/* Slice j of chunk c of n: elements [*first, *first + result). Chunks may end before their last slice. */
static size_t slice_of(size_t count, int chunks, int chunk, uint64_t j, size_t *first)
{
    size_t share = count / (size_t)chunks, rest = count % (size_t)chunks, c = (size_t)chunk;
    size_t begin = share * c + (c < rest ? c : rest), length = share + (c < rest),
           skip = j * SLICE_ELEMENTS;
    *first = begin + (skip < length ? skip : length);
    size_t left = skip < length ? length - skip : 0;
    return left < SLICE_ELEMENTS ? left : SLICE_ELEMENTS;
}

static uint64_t slices(size_t count, int chunks)
{
    size_t longest = count / (size_t)chunks + (count % (size_t)chunks != 0);
    return longest ? (longest + SLICE_ELEMENTS - 1) / SLICE_ELEMENTS : 1;
}

static int chunk_at(const struct communicator *c, uint64_t step)
{
    return (int)(((uint64_t)c->rank + 2 * (uint64_t)c->ranks * (uint64_t)c->ranks - step) %
                 (uint64_t)c->ranks);
}

/* One turn of a ring all-reduce. Returns true at its end. */
static bool ring_turn(struct communicator *c, struct channel *channel)
{
    struct in *in = &channel->in[(c->rank + c->ranks - 1) % c->ranks];
    struct out *out = &channel->out[c->rank];
    uint64_t per_step = slices(channel->count, c->ranks), all = 2 * (uint64_t)(c->ranks - 1) * per_step;
    const unsigned char *slice = channel->received < all ? in_peek(c->net, in) : NULL;
    size_t first;
    if (slice) {
        uint64_t at = channel->received / per_step;
        size_t n =
            slice_of(channel->count, c->ranks, chunk_at(c, at + 1), channel->received % per_step, &first);
        CHECK((size_t)in->bytes == n * sizeof(uint32_t));
        if (at < (uint64_t)c->ranks - 1)
            add(channel->data + first, slice, n);
        else if (n)
            memcpy(channel->data + first, slice, n * sizeof(uint32_t));
        in_pop(in);
        channel->received++;
    }
    if (channel->sent < all && channel->sent < channel->received + per_step) {
        size_t n = slice_of(channel->count, c->ranks, chunk_at(c, channel->sent / per_step),
                            channel->sent % per_step, &first);
        channel->sent += out_put(c->net, out, channel->data + first, n * sizeof(uint32_t));
    }
    return channel->received == all && channel->sent == all;
}

/* One turn of an all-reduce over the tree: up to rank 0, and down again. */
static bool tree_turn(struct communicator *c, struct channel *channel)
{
    uint64_t all = slices(channel->count, 1);
    int children[2] = {2 * c->rank + 1, 2 * c->rank + 2};
    size_t first, n = slice_of(channel->count, 1, 0, channel->reduced, &first);
    bool ready = channel->reduced < all, over;
    for (int i = 0; i < 2; i++)
        ready =
            ready && (children[i] >= c->ranks || in_peek(c->net, &channel->in[up_edge(c, children[i])]));
    if (ready) {
        for (int i = 0; i < 2 && children[i] < c->ranks; i++) {
            struct in *in = &channel->in[up_edge(c, children[i])];
            CHECK((size_t)in->bytes == n * sizeof(uint32_t));
            add(channel->data + first, in->slot[in->taken % SLOTS], n);
            in_pop(in);
        }
        channel->reduced++;
    }
    if (c->rank == 0) {
        channel->settled = channel->reduced;
    } else {
        struct in *in = &channel->in[up_edge(c, c->rank) + 1];
        struct out *out = &channel->out[up_edge(c, c->rank)];
        if (channel->sent < channel->reduced) {
            n = slice_of(channel->count, 1, 0, channel->sent, &first);
            channel->sent += out_put(c->net, out, channel->data + first, n * sizeof(uint32_t));
        }
        const unsigned char *slice = channel->settled < all ? in_peek(c->net, in) : NULL;
        if (slice) {
            n = slice_of(channel->count, 1, 0, channel->settled, &first);
            CHECK((size_t)in->bytes == n * sizeof(uint32_t));
            if (n)
                memcpy(channel->data + first, slice, n * sizeof(uint32_t));
            in_pop(in);
            channel->settled++;
        }
    }
    over = channel->settled == all && (c->rank == 0 || channel->sent == all);
    for (int i = 0; i < 2 && children[i] < c->ranks; i++) {
        n = slice_of(channel->count, 1, 0, channel->down[i], &first);
        if (channel->down[i] < channel->settled)
            channel->down[i] += out_put(c->net, &channel->out[up_edge(c, children[i]) + 1],
                                        channel->data + first, n * sizeof(uint32_t));
        over &= channel->down[i] == all;
    }
    return over;
}

static void begin_round(struct communicator *c, int round)
{
    bool tree = round % 2;
    for (int i = 0; i < c->channels; i++) {
        struct channel *channel = &c->channel[i];
        for (size_t at = 0; at < channel->count; at++) {
            channel->data[at] = input(c->rank, round, channel->first + at);
            channel->wanted[at] = 0;
            for (int rank = 0; rank < c->ranks; rank++)
                channel->wanted[at] += input(rank, round, channel->first + at);
        }
        channel->received = channel->sent = channel->reduced = channel->settled = 0;
        channel->down[0] = channel->down[1] = 0;
        for (int e = 0; e < c->edges; e++) {
            uint64_t ring = 2 * (uint64_t)(c->ranks - 1) * slices(channel->count, c->ranks);
            channel->in[e].total += (e < c->ranks) == tree ? 0 : tree ? slices(channel->count, 1) : ring;
        }
    }
}

static void end_round(struct communicator *c, int round)
{
    for (int i = 0; i < c->channels; i++) {
        struct channel *channel = &c->channel[i];
        for (int e = 0; e < c->edges; e++)
            if (channel->out[e].comm)
                out_end(c->net, &channel->out[e]);
        if (channel->count && memcmp(channel->data, channel->wanted, channel->count * sizeof(uint32_t)))
            fail("rank %d, round %d, channel %d: the sum is wrong", c->rank, round, i);
    }
}

static void *communicator_run(void *context)
{
    struct communicator *c = context;
    lay_edges(c);
    net_init(c->net);
    connect_all(c);
    for (int i = 0; i < c->channels; i++) {
        struct channel *channel = &c->channel[i];
        size_t share = c->elements / (size_t)c->channels;
        channel->first = share * (size_t)i;
        channel->count = i == c->channels - 1 ? c->elements - channel->first : share;
        channel->data = calloc(channel->count + 1, sizeof(uint32_t));
        channel->wanted = calloc(channel->count + 1, sizeof(uint32_t));
        CHECK(channel->data && channel->wanted);
    }
    for (int round = 0; round < c->rounds; round++) {
        begin_round(c, round);
        for (bool over = false; !over;) {
            over = true;
            for (int i = 0; i < c->channels; i++)
                over &= round % 2 ? tree_turn(c, &c->channel[i]) : ring_turn(c, &c->channel[i]);
            if (!over)
                sched_yield();
        }
        end_round(c, round);
    }
    for (int i = 0; i < c->channels; i++) {
        free(c->channel[i].data);
        free(c->channel[i].wanted);
    }
    close_all(c);
    net_finalize(c->net);
    return NULL;
}

static int rank_run(int rank, int ranks, int channels, size_t elements, int rounds)
{
    pthread_t threads[COMMUNICATORS];
    struct communicator *all[COMMUNICATORS];
    const struct net *net = net_load(net_newest(VERSION_LAST));
    for (int i = 0; i < COMMUNICATORS; i++) {
        all[i] = calloc(1, sizeof *all[i]);
        CHECK(all[i]);
        *all[i] = (struct communicator){.net = net,
                                        .number = i,
                                        .rank = rank,
                                        .ranks = ranks,
                                        .channels = channels,
                                        .rounds = rounds,
                                        .elements = elements};
        CHECK(!pthread_create(&threads[i], NULL, communicator_run, all[i]));
    }
    for (int i = 0; i < COMMUNICATORS; i++) {
        pthread_join(threads[i], NULL);
        free(all[i]);
    }
    return 0;
}

/* ranks [RANKS CHANNELS BYTES ROUNDS] */
int ranks_main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 4, channels = argc > 2 ? atoi(argv[2]) : 2, failed = 0;
    pid_t process[RANKS_MAX];
    size_t bytes = argc > 3 ? strtoull(argv[3], NULL, 0) : 2000000;
    int rounds = argc > 4 ? atoi(argv[4]) : 4;
    if (ranks < 2 || ranks > RANKS_MAX || channels < 1 || channels > CHANNELS_MAX)
        fail("use 2 to %d ranks, 1 to %d channels", RANKS_MAX, CHANNELS_MAX);
    board = new_board();
    for (int rank = 0; rank < ranks; rank++) {
        process[rank] = start_process(HANG_S);
        if (process[rank] == 0)
            exit(rank_run(rank, ranks, channels, bytes / sizeof(uint32_t), rounds));
    }
    for (int rank = 0, status = 0; rank < ranks; rank++) {
        pid_t ended = wait(&status);
        if (ended < 0 || (status && !WIFSIGNALED(status)))
            alarm(2); /* the others have that long to fail, too: the first to end may not be the cause */
        for (int i = 0; i < ranks && status; i++)
            if (process[i] == ended)
                fprintf(stderr, "rank %d: status %x\n", i, (unsigned)status);
        failed += ended < 0 || status;
    }
    if (failed)
        fail("%d of %d ranks failed", failed, ranks);
    printf("%d ranks, %d communicators of %d channels, %zu bytes: %d sums over ring and tree were right\n",
           ranks, COMMUNICATORS, channels, bytes, COMMUNICATORS * rounds);
    return 0;
}

/* ---- deaths -------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* An end of two connections, one each way, with random traffic that never ends. */
struct side {
    const struct net *net;
    int number; /* 0 or 1: receives on edge `number`, sends on the other */
    struct dice dice;
    uint64_t calls_left; /* then it dies */
    void *listen, *send, *recv;
    void *sends[SLOTS], *receives[SLOTS];
    char handle[NCCL_HANDLE_BYTES];
    unsigned char *memory;
};

#define DEATH_BYTES ((size_t)1 << 20)

/* Counts a call that comes; the victim dies at a call that the seed decides. */
static void count_call(struct side *side)
{
    if (side->calls_left-- == 0)
        raise(SIGKILL);
}

static int connect_turn(struct side *side)
{
    int result = 0;
    struct mail *own = &board->mail[0][0][side->number], *other = &board->mail[0][0][1 - side->number];
    count_call(side);
    if (!side->listen) {
        char handle[NCCL_HANDLE_BYTES];
        side->listen = net_listen(side->net, handle);
        memcpy(own->handle, handle, sizeof handle);
        __atomic_store_n(&own->is_written, 1, __ATOMIC_RELEASE);
    }
    count_call(side);
    if (!side->recv)
        result = net_try_accept(side->net, side->listen, &side->recv);
    count_call(side);
    if (!result && !side->send && __atomic_load_n(&other->is_written, __ATOMIC_ACQUIRE)) {
        memcpy(side->handle, other->handle, sizeof side->handle);
        result = net_try_connect(side->net, 0, side->handle, &side->send);
    }
    return result;
}

/* Posts into a random slot, or tests the request that is there. */
static int traffic_turn(struct side *side)
{
    int slot = (int)dice_below(&side->dice, SLOTS), done = 0, result;
    bool sends = dice_below(&side->dice, 2);
    void **request = sends ? &side->sends[slot] : &side->receives[slot], *data = side->memory, *made = NULL;
    count_call(side);
    if (*request) {
        result = net_try_test(side->net, *request, &done, NULL);
        *request = done ? NULL : *request;
        return result;
    }
    size_t bytes =
        dice_below(&side->dice, 4) ? dice_below(&side->dice, 5000) : dice_below(&side->dice, DEATH_BYTES);
    int tag = 0;
    if (sends) {
        result = net_try_isend(side->net, side->send, data, bytes, tag, &made);
    } else {
        data = side->memory + DEATH_BYTES;
        bytes = DEATH_BYTES;
        result = net_try_irecv(side->net, side->recv, 1, &data, &bytes, &tag, &made);
    }
    *request = made;
    return result;
}

static void side_begin(struct side *side, uint64_t seed, int number)
{
    setenv("LONGHAUL_PEER_TIMEOUT", DEATH_TIMEOUT, 1);
    *side = (struct side){.net = net_load(VERSION_FIRST + (int)(seed % (VERSION_LAST - VERSION_FIRST + 1))),
                          .number = number,
                          .dice = {seed * 2 + (uint64_t)number},
                          .calls_left = UINT64_MAX,
                          .memory = calloc(2, DEATH_BYTES)};
    CHECK(side->memory);
    net_init(side->net);
}

static int victim_run(uint64_t seed)
{
    struct side side;
    side_begin(&side, seed, 0);
    struct dice dice = {seed ^ UINT64_C(0xDEAD)};
    side.calls_left = dice_below(&dice, (uint64_t)1 << (2 + dice_below(&dice, 14)));
    while (!side.send || !side.recv) {
        CHECK(!connect_turn(&side));
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    for (;;)
        CHECK(!traffic_turn(&side));
}

/* Runs until a call fails. `alive`: a pipe that ends with the victim. */
static int survivor_run(uint64_t seed, int alive)
{
    struct side side;
    char byte;
    double dead_s = 0;
    int result = 0;
    side_begin(&side, seed, 1);
    fcntl(alive, F_SETFL, O_NONBLOCK);
    while (!result) {
        bool connected = side.send && side.recv;
        result = connected ? traffic_turn(&side) : connect_turn(&side);
        if (!connected)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        if (dead_s == 0 && read(alive, &byte, 1) == 0)
            dead_s = seconds();
        /* A client that never comes is no error of the network. */
        if (dead_s > 0 && side.send && !side.recv)
            break;
        if (dead_s > 0 && !__atomic_load_n(&board->mail[0][0][0].is_written, __ATOMIC_ACQUIRE))
            break;
    }
    double late_s = dead_s > 0 ? seconds() - dead_s : 0;
    if (result && result != NCCL_REMOTE_ERROR)
        fail("seed %llu: result %d, not a remote error", (unsigned long long)seed, result);
    if (late_s > 2 * DEATH_TIMEOUT_S)
        fail("seed %llu: the error came %.1f s after the death", (unsigned long long)seed, late_s);
    if (side.send)
        net_close_send(side.net, side.send);
    if (side.recv)
        net_close_recv(side.net, side.recv);
    if (side.listen)
        net_close_listen(side.net, side.listen);
    net_finalize(side.net);
    free(side.memory);
    return 0;
}

static void run_death(uint64_t seed)
{
    int alive[2], status = 0;
    board = new_board();
    CHECK(!pipe(alive));
    pid_t victim = start_process(HANG_S);
    if (victim == 0) {
        close(alive[0]);
        exit(victim_run(seed));
    }
    close(alive[1]);
    pid_t survivor = start_process(HANG_S);
    if (survivor == 0)
        exit(survivor_run(seed, alive[0]));
    close(alive[0]);
    CHECK(waitpid(survivor, &status, 0) == survivor);
    if (status)
        fail("seed %llu: the survivor failed", (unsigned long long)seed);
    CHECK(waitpid(victim, &status, 0) == victim);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        fail("seed %llu: the victim failed", (unsigned long long)seed);
    munmap(board, sizeof *board);
}

/* deaths [FIRST COUNT] */
int deaths_main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 0,
             count = argc > 2 ? strtoull(argv[2], NULL, 0) : 28;
    for (uint64_t seed = first; seed < first + count; seed++)
        run_death(seed);
    printf("%llu deaths from seed %llu on: an error each, none hung\n", (unsigned long long)count,
           (unsigned long long)first);
    return 0;
}
