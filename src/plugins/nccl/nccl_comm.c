/*
 * nccl_comm.c - the data path of a connection, in one direction.
 *
 * A message travels as frames. A receiving comm keeps the receives of all its frames posted, so that their
 * clear-to-sends are at the sender before NCCL has a message. A send is copied to frames of the sending comm,
 * and is done when its last frame is there; the engine's worker delivers it. A frame that arrived waits in
 * its place until a receive of NCCL takes it, and its place is posted again.
 *
 * The tag of a Longhaul message describes the frame: NCCL's tag, whether it is the last one of its message,
 * and a sequence number, which only detects faults.
 *
 * A connection keeps the order of frames, and NCCL's receives of one buffer take messages in that order. In a
 * group each buffer takes the next message with its tag. A message whose tag no posted receive waits for
 * would block those behind it: it is parked on the heap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/nccl/nccl_plugin.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* ---- frames -------------------------------------------------------------------------------------------- */

#define TAG_LAST           (UINT64_C(1) << 32)
#define TAG_SEQUENCE_SHIFT 33
#define TAG_SEQUENCE_MASK  ((UINT64_C(1) << 31) - 1)

/* The user value of a completion that is no frame's. */
#define USER_HELLO UINT64_MAX

/* Frames that a call takes, so that test stays short. */
#define TURN_FRAMES 4
/* Completions taken at once. */
#define TURN_COMPLETIONS 64
/* What parked messages may take. NCCL's senders are at most 8 steps of 1 MiB ahead, for each tag. */
#define PARKED_BYTES ((size_t)NCCL_GROUP_MAX * 8 << 20)
/* How many may be parked: a peer could send empty ones without end. */
#define PARKED_MAX 4096u
/* How long memory may be missing, with nothing in flight, before that is an error. */
#define MEMORY_PATIENCE_S 10

struct frame {
    bool arrived; /* receiving: completed, not taken yet */
    int error;
    uint64_t bytes, tag;
};

/* ---- requests ------------------------------------------------------------------------------------------ */

struct part {
    char *data;
    size_t capacity, got;
    int tag;
    bool taken; /* has a message */
};

enum kind { REQUEST_FREE, REQUEST_SEND, REQUEST_RECV };

struct request {
    struct nccl_comm *comm;
    struct request *next; /* of the free ones, or of those that wait */
    enum kind kind;
    bool done;
    /* send */
    const char *data;
    size_t bytes, copied;
    int tag;
    /* receive */
    int n, whole;
    struct part parts[NCCL_GROUP_MAX];
};

struct queue {
    struct request *first, **end;
};

struct parked {
    struct parked *next;
    int tag;
    char *data;
    size_t bytes, room;
    bool whole;
};

/* Where the message goes whose frames arrive: to a part of a request, or to the last parked message. */
struct target {
    struct request *request;
    struct part *part;
    struct parked *parked;
};

struct nccl_comm {
    pthread_mutex_t lock;
    struct lh_connection *connection;
    struct lh_completion_queue *completions;
    struct lh_memory *registered;
    char *memory; /* frames * frame_bytes */
    size_t frame_bytes;
    uint32_t frames;
    struct frame *frame;
    uint64_t sequence; /* frames sent, or taken */
    int failed;        /* enum nccl_result */
    bool is_sending;
    bool is_closing; /* NCCL has closed it: errors have no reader */
    struct timespec starved;
    bool is_starved;

    /* sending */
    uint32_t *unused; /* indices of frames; the last one is used first, for its memory is warm */
    uint32_t unused_count;
    uint32_t in_flight; /* frames, and the hello */

    /* receiving */
    uint64_t posted; /* receives */
    struct target target;
    struct parked *parked, **parked_end;
    size_t parked_bytes;
    uint32_t parked_count;

    struct queue waiting; /* requests: to be copied to frames, or without all their messages */
    struct request *free;
    struct request requests[NCCL_REQUESTS];
};

static void queue_add(struct queue *queue, struct request *request)
{
    request->next = NULL;
    *queue->end = request;
    queue->end = &request->next;
}

static void queue_remove(struct queue *queue, const struct request *request)
{
    struct request **at = &queue->first;
    while (*at != request) /* it is in the queue */
        at = &(*at)->next;
    *at = request->next;
    if (!*at)
        queue->end = at;
}

static struct request *request_new(struct nccl_comm *comm, enum kind kind)
{
    struct request *request = comm->free;
    if (!request)
        return NULL;
    comm->free = request->next;
    *request = (struct request){.comm = comm, .kind = kind};
    return request;
}

static void request_free(struct request *request)
{
    request->kind = REQUEST_FREE;
    request->next = request->comm->free;
    request->comm->free = request;
}

/* The first reason is logged and kept. */
static int fail(struct nccl_comm *comm, enum nccl_result result, const char *what, const char *why)
{
    if (!comm->failed) {
        nccl_log(comm->is_closing ? NCCL_LOG_INFO : NCCL_LOG_WARN, "%s: %s: %s",
                 lh_peer_name(comm->connection), what, why);
        comm->failed = (int)result;
    }
    return comm->failed;
}

/* Exhaustion passes: it is an error only if nothing is in flight whose end would give memory back. */
static int starve(struct nccl_comm *comm, int error, bool in_flight)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!comm->is_starved || in_flight)
        comm->starved = now;
    comm->is_starved = true;
    if (now.tv_sec - comm->starved.tv_sec > MEMORY_PATIENCE_S)
        return fail(comm, NCCL_SYSTEM_ERROR, "out of resources", lh_strerror(error));
    return NCCL_SUCCESS;
}

static bool is_exhaustion(int error)
{
    return error == -LH_EAGAIN || error == -LH_ENOMEM;
}

static char *frame_at(const struct nccl_comm *comm, uint64_t index)
{
    return comm->memory + index % comm->frames * comm->frame_bytes;
}

/* Copies in the order of addresses. A GPU that reads NCCL's LL lines (8 bytes) or LL128 lines (128 bytes, the
 * last 8 are the flag) may read while they arrive: a line must not be seen before what precedes it. */
static void copy_in_order(char *to, const char *from, size_t bytes)
{
    typedef uint64_t __attribute__((may_alias)) word;
    enum { LINE = 128 };
    for (; bytes > 0 && (uintptr_t)to % sizeof(word); bytes--)
        *to++ = *from++;
    for (; bytes >= sizeof(word); bytes -= sizeof(word), to += sizeof(word), from += sizeof(word)) {
        uint64_t value;
        memcpy(&value, from, sizeof value);
        if ((uintptr_t)to % LINE == LINE - sizeof(word))
            __atomic_store_n((word *)(void *)to, value, __ATOMIC_RELEASE);
        else
            __atomic_store_n((word *)(void *)to, value, __ATOMIC_RELAXED);
    }
    for (; bytes > 0; bytes--)
        *to++ = *from++;
}

/* ---- creation, end ------------------------------------------------------------------------------------- */

void nccl_comm_destroy(struct nccl_comm *comm)
{
    lh_close(comm->connection);
    if (comm->completions)
        lh_completion_queue_destroy(comm->completions);
    if (comm->registered)
        lh_deregister(comm->registered);
    if (comm->memory)
        munmap(comm->memory, comm->frames * comm->frame_bytes);
    for (struct parked *parked = comm->parked, *next; parked; parked = next) {
        next = parked->next;
        free(parked->data);
        free(parked);
    }
    free(comm->frame);
    free(comm->unused);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

/* Memory is taken from the system as frames are used. */
static char *map_frames(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int create(struct lh_connection *connection, struct lh_engine *engine,
                  const struct nccl_landing *landing, struct nccl_comm **out)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);
    if (!comm) {
        lh_close(connection);
        nccl_log(NCCL_LOG_WARN, "comm: out of memory");
        return NCCL_SYSTEM_ERROR;
    }
    pthread_mutex_init(&comm->lock, NULL);
    comm->connection = connection;
    comm->frames = landing->frames;
    comm->frame_bytes = landing->frame_bytes;
    comm->waiting.end = &comm->waiting.first;
    comm->parked_end = &comm->parked;
    for (int i = NCCL_REQUESTS - 1; i >= 0; i--) {
        comm->requests[i].comm = comm;
        request_free(&comm->requests[i]);
    }
    comm->memory = map_frames(comm->frames * comm->frame_bytes);
    comm->frame = calloc(comm->frames, sizeof *comm->frame);
    comm->unused = calloc(comm->frames, sizeof *comm->unused);
    bool made = comm->memory && comm->frame && comm->unused &&
                !lh_completion_queue_create(engine, comm->frames + 1, &comm->completions) &&
                !lh_register(connection, comm->memory, comm->frames * comm->frame_bytes, &comm->registered);
    if (!made) {
        nccl_log(NCCL_LOG_WARN, "comm: out of memory (LONGHAUL_WINDOW is %u times %u bytes)", comm->frames,
                 landing->frame_bytes);
        nccl_comm_destroy(comm);
        return NCCL_SYSTEM_ERROR;
    }
    *out = comm;
    return NCCL_SUCCESS;
}

int nccl_comm_send_create(struct lh_connection *connection, struct lh_engine *engine,
                          const struct nccl_landing *landing, uint64_t token, struct nccl_comm **out)
{
    struct nccl_comm *comm = NULL;
    int result = create(connection, engine, landing, &comm);
    if (result)
        return result;
    comm->is_sending = true;
    for (uint32_t i = 0; i < comm->frames; i++)
        comm->unused[comm->unused_count++] = comm->frames - 1 - i;
    struct lh_message hello = {.tag = token, .queue = comm->completions, .user = USER_HELLO};
    if (lh_sendmsg(connection, &hello, NULL)) {
        fail(comm, NCCL_REMOTE_ERROR, "connect", lh_last_error());
        nccl_comm_destroy(comm);
        return NCCL_REMOTE_ERROR;
    }
    comm->in_flight = 1;
    *out = comm;
    return NCCL_SUCCESS;
}

/* Posts the receives of all places that have been taken. */
static int post_frames(struct nccl_comm *comm)
{
    while (comm->posted < comm->sequence + comm->frames) {
        uint64_t index = comm->posted % comm->frames;
        int error = lh_post_recv(comm->connection, frame_at(comm, index), comm->frame_bytes,
                                 comm->registered, comm->completions, index, NULL);
        if (error && lh_connection_error(comm->connection))
            return NCCL_SUCCESS; /* frames that arrived before are delivered; then the next one is missing */
        if (is_exhaustion(error))
            return starve(comm, error, comm->posted > comm->sequence);
        if (error)
            return fail(comm, NCCL_REMOTE_ERROR, "receive", lh_last_error());
        comm->posted++;
        comm->is_starved = false;
    }
    return NCCL_SUCCESS;
}

int nccl_comm_recv_create(struct lh_connection *connection, struct lh_engine *engine,
                          const struct nccl_landing *landing, struct nccl_comm **out)
{
    struct nccl_comm *comm = NULL;
    int result = create(connection, engine, landing, &comm);
    if (result)
        return result;
    result = post_frames(comm);
    if (result) {
        nccl_comm_destroy(comm);
        return result;
    }
    *out = comm;
    return NCCL_SUCCESS;
}

/* ---- sending ------------------------------------------------------------------------------------------- */

static int lost_connection(struct nccl_comm *comm, const char *what, int error)
{
    int cause = lh_connection_error(comm->connection);
    const char *why = cause && *lh_last_error() ? lh_last_error() : lh_strerror(error);
    return fail(comm, NCCL_REMOTE_ERROR, what, why);
}

/* Gives delivered frames back. */
static int reap_sends(struct nccl_comm *comm)
{
    struct lh_completion entries[TURN_COMPLETIONS];
    int count = lh_poll(comm->completions, entries, TURN_COMPLETIONS);
    for (int i = 0; i < count; i++) {
        comm->in_flight--;
        if (entries[i].user != USER_HELLO)
            comm->unused[comm->unused_count++] = (uint32_t)entries[i].user;
        if (entries[i].result.error)
            lost_connection(comm, "send", entries[i].result.error);
    }
    return comm->failed;
}

/* Copies the next frame of a request, and sends it. *sent: false if the library has no room. */
static int send_frame(struct nccl_comm *comm, struct request *request, bool *sent)
{
    size_t bytes = request->bytes - request->copied;
    bool last = bytes <= comm->frame_bytes;
    bytes = last ? bytes : comm->frame_bytes;
    uint32_t index = comm->unused[comm->unused_count - 1];
    char *place = frame_at(comm, index);
    if (bytes)
        memcpy(place, request->data + request->copied, bytes);
    struct lh_part part = {.address = place, .bytes = bytes, .memory = comm->registered};
    struct lh_message message = {.parts = &part,
                                 .count = 1,
                                 .tag = (uint64_t)(uint32_t)request->tag | (last ? TAG_LAST : 0) |
                                        (comm->sequence & TAG_SEQUENCE_MASK) << TAG_SEQUENCE_SHIFT,
                                 .queue = comm->completions,
                                 .user = index};
    int error = lh_sendmsg(comm->connection, &message, NULL);
    if (is_exhaustion(error))
        return starve(comm, error, comm->in_flight > 0);
    if (error)
        return fail(comm, NCCL_REMOTE_ERROR, "send", lh_last_error());
    comm->unused_count--;
    comm->in_flight++;
    comm->sequence++;
    comm->is_starved = false;
    request->copied += bytes;
    request->done = last;
    *sent = true;
    return NCCL_SUCCESS;
}

static int progress_send(struct nccl_comm *comm)
{
    int result = comm->failed ? comm->failed : reap_sends(comm);
    bool sent = true;
    for (int turn = 0; !result && sent && turn < TURN_FRAMES && comm->waiting.first && comm->unused_count;
         turn++) {
        struct request *request = comm->waiting.first;
        sent = false;
        result = send_frame(comm, request, &sent);
        if (request->done)
            queue_remove(&comm->waiting, request);
    }
    return result;
}

int nccl_comm_isend(struct nccl_comm *comm, const void *data, size_t bytes, int tag, void **out)
{
    *out = NULL;
    if (nccl_is_inherited())
        return nccl_refuse_child();
    if (bytes > INT_MAX) {
        nccl_log(NCCL_LOG_WARN, "isend: %zu bytes: too long (use at most 2147483647)", bytes);
        return NCCL_INVALID_USAGE;
    }
    pthread_mutex_lock(&comm->lock);
    struct request *request = comm->failed ? NULL : request_new(comm, REQUEST_SEND);
    int result = comm->failed;
    if (request) {
        request->data = data;
        request->bytes = bytes;
        request->tag = tag;
        queue_add(&comm->waiting, request);
        result = progress_send(comm);
        *out = result && !request->done ? NULL : request;
    }
    pthread_mutex_unlock(&comm->lock);
    return *out ? NCCL_SUCCESS : result;
}

/* ---- receiving ----------------------------------------------------------------------------------------- */

static int take_arrivals(struct nccl_comm *comm)
{
    struct lh_completion entries[TURN_COMPLETIONS];
    int count = lh_poll(comm->completions, entries, TURN_COMPLETIONS);
    for (int i = 0; i < count; i++) {
        struct frame *frame = &comm->frame[entries[i].user];
        *frame = (struct frame){.arrived = true,
                                .error = entries[i].result.error,
                                .bytes = entries[i].result.bytes,
                                .tag = entries[i].result.tag};
    }
    return post_frames(comm);
}

/* The first buffer, in the order of receives, that waits for a message with this tag. */
static struct target find_part(const struct nccl_comm *comm, int tag)
{
    for (struct request *request = comm->waiting.first; request; request = request->next)
        for (int i = 0; i < request->n; i++) {
            struct part *part = &request->parts[i];
            if (!part->taken && (request->n == 1 || part->tag == tag))
                return (struct target){.request = request, .part = part};
        }
    return (struct target){0};
}

static int oversize(struct nccl_comm *comm, size_t bytes, size_t capacity)
{
    nccl_log(NCCL_LOG_WARN, "irecv: %zu bytes: shorter than its message of at least %zu", capacity, bytes);
    return fail(comm, NCCL_INVALID_USAGE, "irecv", "message is longer than the receive buffer");
}

static int part_append(struct nccl_comm *comm, struct part *part, const char *data, size_t bytes)
{
    if (bytes > part->capacity - part->got)
        return oversize(comm, part->got + bytes, part->capacity);
    copy_in_order(part->data + part->got, data, bytes);
    part->got += bytes;
    return NCCL_SUCCESS;
}

static void part_end(struct nccl_comm *comm, struct request *request)
{
    request->whole++;
    request->done = request->whole == request->n;
    if (request->done)
        queue_remove(&comm->waiting, request);
}

static int park(struct nccl_comm *comm, int tag, struct parked **out)
{
    if (comm->parked_count == PARKED_MAX)
        return fail(comm, NCCL_INTERNAL_ERROR, "irecv",
                    "more than 4096 messages have other tags than those of the receives");
    struct parked *parked = calloc(1, sizeof *parked);
    if (!parked)
        return fail(comm, NCCL_SYSTEM_ERROR, "irecv", "out of memory");
    parked->tag = tag;
    *comm->parked_end = parked;
    comm->parked_end = &parked->next;
    comm->parked_count++;
    *out = parked;
    return NCCL_SUCCESS;
}

static int parked_append(struct nccl_comm *comm, struct parked *parked, const char *data, size_t bytes)
{
    if (comm->parked_bytes + bytes > PARKED_BYTES)
        return fail(comm, NCCL_INTERNAL_ERROR, "irecv",
                    "messages with other tags than those of the receives take more than 64 MiB");
    if (parked->bytes + bytes > parked->room) {
        size_t room = 2 * parked->room > parked->bytes + bytes ? 2 * parked->room : parked->bytes + bytes;
        char *grown = realloc(parked->data, room);
        if (!grown)
            return fail(comm, NCCL_SYSTEM_ERROR, "irecv", "out of memory");
        parked->data = grown;
        parked->room = room;
    }
    if (bytes)
        memcpy(parked->data + parked->bytes, data, bytes);
    parked->bytes += bytes;
    comm->parked_bytes += bytes;
    return NCCL_SUCCESS;
}

/* A new receive takes parked messages, the oldest first. One that is still arriving goes on there. */
static int take_parked(struct nccl_comm *comm)
{
    struct parked **at = &comm->parked;
    int result = NCCL_SUCCESS;
    while (*at && !result) {
        struct parked *parked = *at;
        struct target found = find_part(comm, parked->tag);
        if (!found.part) {
            at = &parked->next;
            continue;
        }
        found.part->taken = true;
        result = part_append(comm, found.part, parked->data, parked->bytes);
        if (!result && parked->whole)
            part_end(comm, found.request);
        else if (!result)
            comm->target = found;
        comm->parked_bytes -= parked->bytes;
        comm->parked_count--;
        *at = parked->next;
        if (!*at)
            comm->parked_end = at;
        free(parked->data);
        free(parked);
    }
    return result;
}

/* Decides where the next message goes. *found: false if it has to wait for a receive. */
static int find_target(struct nccl_comm *comm, int tag, bool *found)
{
    comm->target = find_part(comm, tag);
    if (comm->target.part)
        comm->target.part->taken = true;
    else if (comm->waiting.first) /* a receive waits for another tag, which may be behind this message */
        return park(comm, tag, &comm->target.parked);
    *found = comm->target.part != NULL;
    return NCCL_SUCCESS;
}

/* Takes the next frame. *taken: false if none arrived, or no receive waits for it. */
static int take_frame(struct nccl_comm *comm, bool *taken)
{
    struct frame *frame = &comm->frame[comm->sequence % comm->frames];
    if (!frame->arrived) {
        /* Without a posted receive only the connection itself tells that it has ended. */
        int error = comm->posted == comm->sequence ? lh_connection_error(comm->connection) : 0;
        return error ? lost_connection(comm, "receive", error) : NCCL_SUCCESS;
    }
    if (frame->error)
        return lost_connection(comm, "receive", frame->error);
    if (frame->tag >> TAG_SEQUENCE_SHIFT != (comm->sequence & TAG_SEQUENCE_MASK))
        return fail(comm, NCCL_REMOTE_ERROR, "receive", "the peer's frames are out of order");
    struct target *target = &comm->target;
    bool found = target->part || target->parked;
    int result = found ? NCCL_SUCCESS : find_target(comm, (int)(uint32_t)frame->tag, &found);
    if (result || !(target->part || target->parked))
        return result;
    const char *data = frame_at(comm, comm->sequence);
    result = target->part ? part_append(comm, target->part, data, frame->bytes)
                          : parked_append(comm, target->parked, data, frame->bytes);
    if (result)
        return result;
    if (frame->tag & TAG_LAST) {
        if (target->part)
            part_end(comm, target->request);
        else
            target->parked->whole = true;
        *target = (struct target){0};
    }
    frame->arrived = false;
    comm->sequence++;
    *taken = true;
    return NCCL_SUCCESS;
}

static int progress_recv(struct nccl_comm *comm)
{
    int result = comm->failed ? comm->failed : take_arrivals(comm);
    bool taken = true;
    for (int turn = 0; !result && taken && turn < TURN_FRAMES && comm->waiting.first; turn++) {
        taken = false;
        result = take_frame(comm, &taken);
        if (!result && taken)
            result = post_frames(comm);
    }
    return result;
}

/* test reports sizes as int. */
static size_t longest(size_t bytes)
{
    return bytes < INT_MAX ? bytes : INT_MAX;
}

int nccl_comm_irecv(struct nccl_comm *comm, int n, void *const *data, const size_t *sizes, const int *tags,
                    void **out)
{
    *out = NULL;
    if (nccl_is_inherited())
        return nccl_refuse_child();
    if (n < 1 || n > NCCL_GROUP_MAX) {
        nccl_log(NCCL_LOG_WARN, "irecv: %d buffers: out of range (use 1 to %d)", n, NCCL_GROUP_MAX);
        return NCCL_INVALID_USAGE;
    }
    pthread_mutex_lock(&comm->lock);
    int result = comm->failed;
    struct request *request = result ? NULL : request_new(comm, REQUEST_RECV);
    if (request) {
        request->n = n;
        for (int i = 0; i < n; i++)
            request->parts[i] =
                (struct part){.data = data[i], .capacity = longest(sizes[i]), .tag = tags ? tags[i] : 0};
        queue_add(&comm->waiting, request);
        result = take_parked(comm);
        if (!result)
            result = progress_recv(comm);
        *out = result && !request->done ? NULL : request;
    }
    pthread_mutex_unlock(&comm->lock);
    return *out ? NCCL_SUCCESS : result;
}

/* ---- both ---------------------------------------------------------------------------------------------- */

static void report_sizes(const struct request *request, int *sizes)
{
    if (request->kind == REQUEST_SEND)
        sizes[0] = (int)request->bytes;
    for (int i = 0; i < request->n; i++)
        sizes[i] = (int)request->parts[i].got;
}

int nccl_comm_test(void *handle, int *done, int *sizes)
{
    struct request *request = handle;
    struct nccl_comm *comm = request->comm;
    *done = 0;
    if (nccl_is_inherited())
        return nccl_refuse_child();
    pthread_mutex_lock(&comm->lock);
    assert(request->kind != REQUEST_FREE);
    int result = request->kind == REQUEST_SEND ? progress_send(comm) : progress_recv(comm);
    *done = request->done;
    if (request->done) { /* it is, whatever happened to others since */
        result = NCCL_SUCCESS;
        if (sizes)
            report_sizes(request, sizes);
        request_free(request);
    }
    pthread_mutex_unlock(&comm->lock);
    return result;
}

bool nccl_comm_is_drained(struct nccl_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    comm->is_closing = true;
    if (comm->is_sending && !comm->failed)
        reap_sends(comm);
    bool drained = !comm->is_sending || comm->failed || comm->in_flight == 0;
    pthread_mutex_unlock(&comm->lock);
    return drained;
}
