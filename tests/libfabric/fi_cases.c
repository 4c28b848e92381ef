/*
 * fi_cases.c - cases of two or more ranks. In most of them rank 0 sends, and rank 1 receives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fi_node.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <longhaul/longhaul.h>

#define EAGER_MAX 4056u
#define MASK_ALL  UINT64_MAX

static char context[16]; /* addresses */

static void send_bytes(struct node *node, const void *bytes, size_t count, uint64_t tag)
{
    AGAIN(node, fi_tsend(node->ep[0], bytes, count, NULL, node->peer[1][0], tag, &context[0]));
}

static void post_recv(struct node *node, void *bytes, size_t count, fi_addr_t source, uint64_t tag,
                      uint64_t ignore, int number)
{
    CHECK(!fi_trecv(node->ep[0], bytes, count, NULL, source, tag, ignore, &context[number]));
}

/* ---- sizes, both calls, both orders -------------------------------------------------------------------- */

static void one_size(struct node *node, size_t bytes, bool is_tagged, bool is_early)
{
    uint8_t *buffer = malloc(bytes + 1);
    CHECK(buffer);
    if (node->rank == 0) {
        fill(buffer, bytes, bytes);
        if (is_early)
            barrier(2);
        if (is_tagged)
            send_bytes(node, buffer, bytes, 5);
        else
            AGAIN(node, fi_send(node->ep[0], buffer, bytes, NULL, node->peer[1][0], &context[0]));
        if (!is_early)
            barrier(2);
        expect_completion(node, &context[0]);
    } else {
        if (!is_early)
            barrier(2);
        if (is_tagged)
            post_recv(node, buffer, bytes, node->peer[0][0], 5, 0, 1);
        else
            CHECK(!fi_recv(node->ep[0], buffer, bytes, NULL, FI_ADDR_UNSPEC, &context[1]));
        if (is_early)
            barrier(2);
        struct fi_cq_tagged_entry entry = expect_completion(node, &context[1]);
        CHECK(entry.len == bytes && is_filled(buffer, bytes, bytes));
        CHECK(entry.flags == (FI_RECV | (is_tagged ? FI_TAGGED : FI_MSG)));
    }
    free(buffer);
}

static void case_sizes(struct node *node)
{
    const size_t sizes[] = {0,    1,     64,       EAGER_MAX - 1, EAGER_MAX, EAGER_MAX + 1,
                            4096, 65536, 1u << 20, 64u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < 4; way++)
            one_size(node, sizes[i], way & 1, way & 2);
}

/* ---- tags, sources, masks ------------------------------------------------------------------------------ */

static void case_tags(struct node *node)
{
    enum { LONG = 20000 };
    uint8_t *bytes = calloc(4, LONG);
    CHECK(bytes);
    if (node->rank == 0) {
        for (uint64_t tag = 10; tag < 14; tag++) { /* long and short ones, all unexpected */
            fill(bytes + (tag - 10) * LONG, LONG, tag);
            send_bytes(node, bytes + (tag - 10) * LONG, tag & 1 ? LONG : 100, tag);
        }
        barrier(2);
        for (int i = 0; i < 4; i++)
            expect_completion(node, &context[0]);
    } else {
        barrier(2);
        post_recv(node, bytes, LONG, node->peer[0][0], 13, 0, 1); /* the last one first */
        CHECK(expect_completion(node, &context[1]).tag == 13 && is_filled(bytes, LONG, 13));
        post_recv(node, bytes, LONG, node->peer[1][0], 10, 0, 2); /* of another source: none */
        post_recv(node, bytes + LONG, LONG, FI_ADDR_UNSPEC, 11, 0, 3);
        CHECK(expect_completion(node, &context[3]).tag == 11 && is_filled(bytes + LONG, LONG, 11));
        post_recv(node, bytes, LONG, FI_ADDR_UNSPEC, 0, MASK_ALL, 4); /* any: the first that waits */
        struct fi_cq_tagged_entry entry = expect_completion(node, &context[4]);
        CHECK(entry.tag == 10 && entry.len == 100 && is_filled(bytes, 100, 10));
        post_recv(node, bytes, LONG, FI_ADDR_UNSPEC, 0xc, 3, 5); /* 12 to 15 */
        CHECK(expect_completion(node, &context[5]).tag == 12 && is_filled(bytes, 100, 12));
        CHECK(!fi_cancel(&node->ep[0]->fid, &context[2]));
        CHECK(expect_error(node, &context[2]).err == FI_ECANCELED);
        CHECK(fi_cancel(&node->ep[0]->fid, &context[2]) == -FI_ENOENT);
    }
    barrier(2); /* the close of rank 1 would end what rank 0 has not sent */
    free(bytes);
}

/* Receives that were posted first take what comes, whatever source they name. */
static void case_posted_order(struct node *node)
{
    uint8_t bytes[4][64] = {{0}};
    if (node->rank == 0) {
        barrier(2);
        for (uint64_t i = 0; i < 3; i++) {
            fill(bytes[i], 64, i);
            AGAIN(node, fi_tinject(node->ep[0], bytes[i], 64, node->peer[1][0], 7));
        }
    } else {
        post_recv(node, bytes[0], 64, FI_ADDR_UNSPEC, 7, 0, 0);
        post_recv(node, bytes[1], 64, node->peer[0][0], 7, 0, 1);
        post_recv(node, bytes[2], 64, FI_ADDR_UNSPEC, 0, MASK_ALL, 2);
        barrier(2);
        for (int i = 0; i < 3; i++) {
            expect_completion(node, &context[i]);
            CHECK(is_filled(bytes[i], 64, (uint64_t)i));
        }
    }
    barrier(2);
}

/* ---- peek, claim, discard ------------------------------------------------------------------------------ */

static ssize_t probe(struct node *node, uint64_t tag, uint64_t flags, struct iovec *iov, int number)
{
    const struct fi_msg_tagged msg = {.msg_iov = iov,
                                      .iov_count = iov ? 1 : 0,
                                      .addr = FI_ADDR_UNSPEC,
                                      .tag = tag,
                                      .context = &context[number]};
    return fi_trecvmsg(node->ep[0], &msg, flags);
}

static void await_message(struct node *node, uint64_t tag, uint64_t flags, size_t bytes, int number)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    fi_addr_t source;
    do { /* alarm() bounds it */
        CHECK(!probe(node, tag, FI_PEEK | flags, NULL, number));
    } while (!next_completion(node, &entry, &source, &error) && error.err == FI_ENOMSG);
    CHECK(entry.op_context == &context[number] && entry.len == bytes && entry.tag == tag);
    CHECK(source == node->peer[0][0]);
}

static void case_probe(struct node *node)
{
    enum { LONG = 100000 };
    uint8_t *bytes = malloc(LONG);
    CHECK(bytes);
    fill(bytes, LONG, 1);
    if (node->rank == 0) {
        send_bytes(node, bytes, LONG, 1);
        send_bytes(node, bytes, 10, 2);
        send_bytes(node, bytes, LONG, 3);
        for (int i = 0; i < 3; i++)
            expect_completion(node, &context[0]);
    } else {
        struct iovec iov = {bytes, LONG};
        CHECK(!probe(node, 9, FI_PEEK, NULL, 9));
        CHECK(expect_error(node, &context[9]).err == FI_ENOMSG);
        await_message(node, 1, 0, LONG, 1);
        await_message(node, 1, FI_CLAIM, LONG, 1);
        CHECK(!probe(node, 1, FI_PEEK, NULL, 9)); /* it is claimed */
        CHECK(expect_error(node, &context[9]).err == FI_ENOMSG);
        memset(bytes, 0, LONG);
        CHECK(!probe(node, 1, FI_CLAIM, &iov, 1));
        CHECK(expect_completion(node, &context[1]).len == LONG && is_filled(bytes, LONG, 1));
        await_message(node, 2, FI_CLAIM, 10, 2);
        CHECK(!probe(node, 2, FI_CLAIM | FI_DISCARD, NULL, 2));
        expect_completion(node, &context[2]);
        await_message(node, 3, FI_DISCARD, LONG, 3); /* its sender is done, too */
        CHECK(probe(node, 3, FI_CLAIM, &iov, 3) == -FI_EINVAL);
        CHECK(probe(node, 3, FI_DISCARD, &iov, 3) == -FI_EINVAL);
    }
    barrier(2);
    free(bytes);
}

/* ---- truncation, several receives in a buffer, data, vectors ------------------------------------------- */

static void case_short_buffers(struct node *node)
{
    enum { LONG = 50000 };
    uint8_t *bytes = calloc(1, LONG);
    CHECK(bytes);
    for (int turn = 0; turn < 3; turn++) {
        const size_t sent[] = {100, LONG, LONG}, room[] = {40, 30000, 0};
        if (node->rank == 0) {
            fill(bytes, LONG, 4);
            send_bytes(node, bytes, sent[turn], 4);
            expect_completion(node, &context[0]); /* the sender does not see it */
        } else {
            memset(bytes, 0, LONG);
            post_recv(node, bytes, room[turn], FI_ADDR_UNSPEC, 4, 0, 1);
            struct fi_cq_err_entry error = expect_error(node, &context[1]);
            CHECK(error.err == FI_ETRUNC && error.len == room[turn]);
            CHECK(error.olen == sent[turn] - room[turn]);
            CHECK(is_filled(bytes, room[turn], 4) && bytes[room[turn]] == 0);
        }
    }
    barrier(2);
    free(bytes);
}

static void case_multi_recv(struct node *node)
{
    enum { MESSAGES = 6, ROOM = 40000 };
    const size_t sizes[MESSAGES] = {100, 0, 10000, 4056, 20000, 3000}; /* together 37156 */
    uint8_t *bytes = calloc(1, ROOM);
    size_t least = 3000;
    CHECK(bytes);
    CHECK(!fi_setopt(&node->ep[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    if (node->rank == 0) {
        for (uint64_t i = 0; i < MESSAGES; i++) {
            fill(bytes, sizes[i], i);
            AGAIN(node, fi_send(node->ep[0], bytes, sizes[i], NULL, node->peer[1][0], &context[0]));
            expect_completion(node, &context[0]);
        }
    } else {
        struct iovec iov = {bytes, ROOM};
        const struct fi_msg msg = {
            .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context[1]};
        bool has_come[MESSAGES] = {false};
        CHECK(!fi_recvmsg(node->ep[0], &msg, FI_MULTI_RECV));
        for (int n = 0; n < MESSAGES; n++) { /* completions may come in any order, places are in order */
            struct fi_cq_tagged_entry entry = expect_completion(node, &context[1]);
            uint8_t *at = bytes;
            uint64_t i = 0;
            while (i < MESSAGES - 1 && (entry.buf != at || entry.len != sizes[i]))
                at += sizes[i++];
            CHECK(entry.len == sizes[i] && entry.buf == at && is_filled(at, sizes[i], i) && !has_come[i]);
            CHECK(!(entry.flags & FI_MULTI_RECV) == (n < MESSAGES - 1));
            has_come[i] = true;
        }
    }
    barrier(2);
    free(bytes);
}

static void case_data_and_vectors(struct node *node)
{
    uint8_t bytes[9000] = {0};
    struct iovec iov[3] = {{bytes, 10}, {bytes + 1000, 5000}, {bytes + 8000, 90}};
    if (node->rank == 0) {
        fill(bytes, sizeof bytes, 8);
        AGAIN(node, fi_tsendv(node->ep[0], iov, NULL, 3, node->peer[1][0], 1, &context[0]));
        expect_completion(node, &context[0]);
        AGAIN(node,
              fi_tsenddata(node->ep[0], bytes, 10, NULL, 0xdeadbeef, node->peer[1][0], 2, &context[0]));
        expect_completion(node, &context[0]);
        AGAIN(node, fi_injectdata(node->ep[0], bytes, 10, 77, node->peer[1][0]));
        const struct fi_msg_tagged msg = {
            .msg_iov = iov, .iov_count = 1, .addr = node->peer[1][0], .tag = 3, .context = &context[0]};
        AGAIN(node, fi_tsendmsg(node->ep[0], &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
        struct fi_cq_tagged_entry entry;
        CHECK(fi_cq_read(node->cq, &entry, 1) == -FI_EAGAIN); /* it has no receive */
        barrier(2);
        expect_completion(node, &context[0]);
        CHECK(fi_tsendmsg(node->ep[0], &msg, FI_TRIGGER) == -FI_EBADFLAGS);
        CHECK(fi_tinject(node->ep[0], bytes, EAGER_MAX + 1, node->peer[1][0], 1) == -FI_EMSGSIZE);
        CHECK(fi_tinject(node->ep[0], bytes, 1, 12345, 1) == -FI_EINVAL);
        CHECK(fi_tinject(node->ep[0], NULL, 1, node->peer[1][0], 1) == -FI_EINVAL);
    } else {
        uint8_t expected[9000], whole[5100];
        fill(expected, sizeof expected, 8);
        struct iovec parts[2] = {{whole, 5000}, {whole + 5000, 100}};
        CHECK(!fi_trecvv(node->ep[0], parts, NULL, 2, FI_ADDR_UNSPEC, 1, 0, &context[1]));
        CHECK(expect_completion(node, &context[1]).len == 5100);
        CHECK(!memcmp(whole, expected, 10) && !memcmp(whole + 10, expected + 1000, 5000) &&
              !memcmp(whole + 5010, expected + 8000, 90));
        post_recv(node, bytes, 10, FI_ADDR_UNSPEC, 2, 0, 2);
        struct fi_cq_tagged_entry entry = expect_completion(node, &context[2]);
        CHECK(entry.data == 0xdeadbeef && entry.flags & FI_REMOTE_CQ_DATA);
        CHECK(!fi_recv(node->ep[0], bytes, 10, NULL, FI_ADDR_UNSPEC, &context[3]));
        CHECK(expect_completion(node, &context[3]).data == 77);
        barrier(2);
        post_recv(node, bytes, 10, FI_ADDR_UNSPEC, 3, 0, 4);
        CHECK(expect_completion(node, &context[4]).len == 10 && is_filled(bytes, 10, 8));
    }
    barrier(2);
}

/* ---- waiting: sread, descriptors, counters ----------------------------------------------------------- */

static void case_waiting(struct node *node)
{
    uint8_t bytes[8] = {0};
    struct fi_cq_tagged_entry entry;
    if (node->rank == 0) {
        for (int i = 0; i < 3; i++) {
            barrier(2);
            AGAIN(node, fi_tinject(node->ep[0], bytes, 8, node->peer[1][0], 1));
        }
        CHECK(!fi_cntr_wait(node->sent, 3, -1));
        CHECK(fi_cntr_wait(node->sent, 4, 10) == -FI_ETIMEDOUT);
        CHECK(fi_cq_sread(node->cq, &entry, 1, NULL, 10) == -FI_EAGAIN);
    } else {
        struct fid *fids[] = {&node->cq->fid};
        int fd = -1;
        CHECK(!fi_control(&node->cq->fid, FI_GETWAIT, &fd) && fd >= 0);
        post_recv(node, bytes, 8, FI_ADDR_UNSPEC, 1, 0, 1);
        barrier(2);
        CHECK(fi_cq_sread(node->cq, &entry, 1, NULL, -1) == 1);
        post_recv(node, bytes, 8, FI_ADDR_UNSPEC, 1, 0, 1);
        barrier(2);
        while (fi_trywait(node->fabric, fids, 1) == 0) { /* once or twice */
            struct pollfd wait = {.fd = fd, .events = POLLIN};
            CHECK(poll(&wait, 1, -1) == 1);
        }
        CHECK(fi_cq_read(node->cq, &entry, 1) == 1 && entry.op_context == &context[1]);
        post_recv(node, bytes, 8, FI_ADDR_UNSPEC, 1, 0, 1);
        barrier(2);
        CHECK(!fi_cntr_wait(node->received, 3, -1));
        expect_completion(node, &context[1]);
    }
    barrier(2);
}

/* ---- many messages without a receive; more than the library holds for a connection --------------------- */

static void case_unexpected(struct node *node)
{
    enum { MESSAGES = 6000 };
    uint64_t word;
    uint8_t *large = malloc(1u << 20);
    CHECK(large);
    if (node->rank == 0) {
        fill(large, 1u << 20, 3);
        send_bytes(node, large, 1u << 20, 1); /* it waits until the end, the others do not wait for it */
        for (word = 0; word < MESSAGES; word++)
            AGAIN(node, fi_tinject(node->ep[0], &word, sizeof word, node->peer[1][0], 2));
        AGAIN(node, fi_tinject(node->ep[0], &word, sizeof word, node->peer[1][0], 3));
        expect_completion(node, &context[0]);
    } else {
        post_recv(node, &word, sizeof word, FI_ADDR_UNSPEC, 3, 0, 3); /* the last one */
        expect_completion(node, &context[3]);
        for (uint64_t i = 0; i < MESSAGES; i++) {
            post_recv(node, &word, sizeof word, node->peer[0][0], 2, 0, 2);
            expect_completion(node, &context[2]);
            CHECK(word == i);
        }
        post_recv(node, large, 1u << 20, FI_ADDR_UNSPEC, 1, 0, 1);
        expect_completion(node, &context[1]);
        CHECK(is_filled(large, 1u << 20, 3));
    }
    barrier(2);
    free(large);
}

/* A rendezvous goes on while neither side calls the provider: a thread of its own makes progress. */
static void case_no_polling(struct node *node)
{
    enum { LONG = 1 << 20 };
    uint8_t *bytes = calloc(1, LONG);
    int fd = -1;
    CHECK(bytes && !fi_control(&node->cq->fid, FI_GETWAIT, &fd));
    if (node->rank == 0) {
        fill(bytes, LONG, 9);
        send_bytes(node, bytes, LONG, 1);
    } else {
        post_recv(node, bytes, LONG, FI_ADDR_UNSPEC, 1, 0, 1);
    }
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    CHECK(poll(&wait, 1, -1) == 1);
    expect_completion(node, &context[node->rank]);
    CHECK(is_filled(bytes, LONG, 9));
    barrier(2);
    free(bytes);
}

/* ---- endpoints, addresses ------------------------------------------------------------------------------ */

static void case_endpoints(struct node *node)
{
    const int total = node->ranks * node->endpoints;
    uint64_t words[ENDPOINTS_MAX * RANKS_MAX][ENDPOINTS_MAX];
    static uint64_t sent[ENDPOINTS_MAX];
    for (int to = 0; to < node->endpoints; to++)
        for (int from = 0; from < total; from++)
            CHECK(!fi_trecv(node->ep[to], &words[from][to], 8, NULL,
                            node->peer[from / node->endpoints][from % node->endpoints], 1, 0,
                            &words[from][to]));
    for (int from = 0; from < node->endpoints; from++) {
        sent[from] = (uint64_t)(node->rank * node->endpoints + from);
        for (int to = 0; to < total; to++)
            AGAIN(node, fi_tinject(node->ep[from], &sent[from], 8,
                                   node->peer[to / node->endpoints][to % node->endpoints], 1));
    }
    for (int i = 0; i < total * node->endpoints; i++) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry error = {0};
        fi_addr_t source;
        CHECK(next_completion(node, &entry, &source, &error));
    }
    for (int to = 0; to < node->endpoints; to++)
        for (int from = 0; from < total; from++)
            CHECK(words[from][to] == (uint64_t)from);
    barrier(node->ranks);
}

/* A message comes before its sender's address is inserted. */
static void case_late_insert(struct node *node)
{
    uint8_t bytes[8] = {0}, name[NAME_BYTES], damaged[NAME_BYTES];
    size_t room = sizeof name;
    if (node->rank == 0) {
        node_insert(node);
        struct iovec iov = {bytes, 8};
        const struct fi_msg_tagged msg = {
            .msg_iov = &iov, .iov_count = 1, .addr = node->peer[1][0], .tag = 1, .context = &context[0]};
        AGAIN(node, fi_tsendmsg(node->ep[0], &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE));
        expect_completion(node, &context[0]); /* it has arrived */
        barrier(2);
    } else {
        barrier(2);
        node_insert(node);
        post_recv(node, bytes, 8, node->peer[0][0], 1, 0, 1);
        expect_completion(node, &context[1]);
    }
    CHECK(!fi_av_lookup(node->av, node->peer[0][0], name, &room) && room == sizeof name);
    CHECK(!memcmp(name, node_name(0, 0), sizeof name));
    memcpy(damaged, name, sizeof damaged);
    damaged[0] ^= 1;
    fi_addr_t none = 0;
    CHECK(fi_av_insert(node->av, damaged, 1, &none, 0, NULL) == 0 && none == FI_ADDR_NOTAVAIL);
    fi_addr_t again = 0;
    CHECK(fi_av_insert(node->av, name, 1, &again, 0, NULL) == 1 && again == node->peer[0][0]);
    CHECK(!fi_av_remove(node->av, &again, 1, 0));
    CHECK(!fi_av_lookup(node->av, node->peer[0][0], name, &room)); /* inserted twice, removed once */
    CHECK(!fi_av_remove(node->av, &node->peer[0][0], 1, 0));
    CHECK(fi_av_lookup(node->av, node->peer[0][0], name, &room) == -FI_EINVAL);
    CHECK(fi_tinject(node->ep[0], bytes, 8, node->peer[0][0], 1) == -FI_EINVAL);
    barrier(2);
}

/* ---- strangers ----------------------------------------------------------------------------------------- */

static struct lh_connection *connect_to(const uint8_t *name)
{
    struct lh_connection *connection = NULL;
    struct lh_attr attr;
    char where[64];
    lh_attr_init(&attr);
    snprintf(where, sizeof where, "127.0.0.1:%u", (unsigned)(name[6] << 8 | name[7]));
    CHECK(!lh_connect(where, &attr, 10 * LH_NS_PER_S, &connection));
    return connection;
}

/* Waits until the peer ends the connection. */
static void expect_refusal(struct lh_connection *connection)
{
    struct lh_request *request = NULL;
    struct lh_result result = {0};
    uint8_t answer[64];
    if (!lh_recv(connection, answer, sizeof answer, NULL, &request))
        CHECK(!lh_wait(request, LH_TIME_NEVER, &result) && result.error); /* alarm() bounds it */
    lh_request_free(request);
}

/* Sends a hello, or a part of one, and what follows; waits until the connection is refused. */
static void knock(const uint8_t *name, const uint8_t *hello, size_t bytes, const void *more,
                  size_t more_bytes)
{
    struct lh_connection *connection = connect_to(name);
    struct lh_request *requests[2] = {NULL};
    CHECK(!lh_send(connection, hello, bytes, NULL, &requests[0]));
    if (more) /* it may be refused already */
        lh_send(connection, more, more_bytes, NULL, &requests[1]);
    expect_refusal(connection);
    for (int i = 0; i < 2; i++)
        lh_request_free(requests[i]);
    lh_close(connection);
}

static void case_strangers(struct node *node)
{
    uint8_t bytes[8] = {0};
    if (node->rank == 0) {
        uint8_t hello[72] = {0}, frame[40] = {99};
        const uint8_t *name = node_name(1, 0);
        struct lh_connection *silent[70];
        for (int i = 0; i < 70; i++)
            silent[i] = connect_to(name);
        for (int i = 0; i < 70 - 64; i++) /* more than 64 do not wait for a hello at once */
            expect_refusal(silent[i]);
        knock(name, hello, 10, NULL, 0); /* too short */
        knock(name, hello, sizeof hello, NULL, 0);
        memcpy(hello, name, 4);
        memcpy(hello + 16, node_name(0, 0), NAME_BYTES); /* as rank 0, without rank 1's token, */
        knock(name, hello, sizeof hello, NULL, 0);
        memset(hello + 56, 7, 16); /* with a wrong one */
        knock(name, hello, sizeof hello, NULL, 0);
        memcpy(hello + 56, name + 24, 16); /* with it, but then a frame of no kind */
        knock(name, hello, sizeof hello, frame, sizeof frame);
        frame[0] = 1; /* of a message with a wrong length */
        frame[24] = 1;
        knock(name, hello, sizeof hello, frame, sizeof frame);
        knock(name, hello, sizeof hello, frame, 5);
        AGAIN(node, fi_tinject(node->ep[0], bytes, 8, node->peer[1][0], 1));
        CHECK(!fi_cntr_wait(node->sent, 1, -1));
        for (int i = 0; i < 70; i++)
            lh_close(silent[i]);
    } else {
        post_recv(node, bytes, 8, FI_ADDR_UNSPEC, 1, 0, 1);
        expect_completion(node, &context[1]);
    }
    barrier(2);
}

/* ---- hints --------------------------------------------------------------------------------------------- */

static bool matches(const struct fi_info *hints)
{
    struct fi_info *info = NULL;
    int error = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
    bool is_found = !error && info && !strcmp(info->fabric_attr->prov_name, "longhaul");
    if (!error)
        fi_freeinfo(info);
    return is_found;
}

/* Sets a member to a value that cannot be met, and back. */
#define REFUSED(member, value)                                                                             \
    do {                                                                                                   \
        struct fi_info saved = *hints;                                                                     \
        __typeof__(hints->member) before = hints->member;                                                  \
        hints->member = (value);                                                                           \
        CHECK(!matches(hints));                                                                            \
        hints->member = before;                                                                            \
        (void)saved;                                                                                       \
    } while (0)

static void case_hints(struct node *node)
{
    struct fi_info *hints = fi_allocinfo();
    CHECK(hints);
    CHECK(!matches(hints)); /* not named */
    hints->fabric_attr->prov_name = strdup("longhaul");
    CHECK(matches(hints));
    REFUSED(caps, FI_MSG | FI_ATOMIC);
    REFUSED(caps, FI_MSG | FI_HMEM);
    REFUSED(addr_format, FI_SOCKADDR_IN);
    REFUSED(ep_attr->type, FI_EP_MSG);
    REFUSED(ep_attr->type, FI_EP_DGRAM);
    REFUSED(ep_attr->max_msg_size, SIZE_MAX);
    REFUSED(ep_attr->tx_ctx_cnt, 2);
    REFUSED(tx_attr->msg_order, FI_ORDER_RAW);
    REFUSED(tx_attr->comp_order, FI_ORDER_STRICT);
    REFUSED(tx_attr->inject_size, 1u << 20);
    REFUSED(tx_attr->iov_limit, 100);
    REFUSED(tx_attr->op_flags, FI_COMMIT_COMPLETE);
    REFUSED(rx_attr->msg_order, FI_ORDER_RAS);
    REFUSED(rx_attr->iov_limit, 100);
    REFUSED(domain_attr->cq_data_size, 9);
    REFUSED(domain_attr->max_ep_tx_ctx, 4);
    char none[] = "no-such-interface";
    REFUSED(domain_attr->name, none);
    setenv("LONGHAUL_RELIABILITY", "nonsense", 1);
    CHECK(!matches(hints));
    setenv("LONGHAUL_RELIABILITY", "bounded:deadline=1ms", 1);
    CHECK(!matches(hints));
    unsetenv("LONGHAUL_RELIABILITY");
    CHECK(matches(hints));
    fi_freeinfo(hints);
    barrier(node->ranks);
}

/* ---- a peer that dies ---------------------------------------------------------------------------------- */

static void case_death(struct node *node)
{
    enum { LONG = 1 << 20 };
    uint8_t *bytes = calloc(1, LONG);
    CHECK(bytes);
    if (node->rank == 1) {
        AGAIN(node, fi_tinject(node->ep[0], bytes, 8, node->peer[0][0], 1));
        CHECK(!fi_cntr_wait(node->sent, 1, -1));
        barrier(2);
        pause(); /* rank 0 kills it */
    } else {
        post_recv(node, bytes, 8, FI_ADDR_UNSPEC, 1, 0, 1);
        expect_completion(node, &context[1]);
        post_recv(node, bytes, 8, node->peer[1][0], 2, 0, 2); /* from the peer alone */
        post_recv(node, bytes, 8, FI_ADDR_UNSPEC, 2, 0, 3);   /* from any */
        send_bytes(node, bytes, LONG, 5);                     /* it never gets a receive */
        AGAIN(node, fi_tinject(node->ep[0], bytes, 8, node->peer[1][0], 6));
        CHECK(!fi_cntr_wait(node->sent, 1, -1));
        barrier(2);
        kill((pid_t)*shared_word, SIGKILL);
        for (int ends = 0; ends != 3;) { /* the send and the receive, in any order */
            struct fi_cq_tagged_entry entry;
            struct fi_cq_err_entry error = {0};
            fi_addr_t source;
            CHECK(!next_completion(node, &entry, &source, &error));
            CHECK(error.op_context == &context[0] || error.op_context == &context[2]);
            CHECK(error.err == FI_ECONNRESET || error.err == FI_ETIMEDOUT);
            ends |= error.op_context == &context[0] ? 1 : 2;
        }
        struct iovec iov = {bytes, 8};
        const struct fi_msg_tagged msg = {
            .msg_iov = &iov, .iov_count = 1, .addr = node->peer[1][0], .tag = 7, .context = &context[4]};
        AGAIN(node, fi_tsendmsg(node->ep[0], &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE));
        CHECK(expect_error(node, &context[4]).err); /* no process listens there any more */
        AGAIN(node, fi_tsendmsg(node->ep[0], &msg, FI_COMPLETION | FI_TRANSMIT_COMPLETE | FI_INJECT));
        CHECK(expect_error(node, &context[4]).err);
        post_recv(node, bytes, 8, node->peer[1][0], 2, 0, 5);
        CHECK(expect_error(node, &context[5]).err); /* nor comes anything from it */
        CHECK(!fi_cancel(&node->ep[0]->fid, &context[3]));
        CHECK(expect_error(node, &context[3]).err == FI_ECANCELED);
    }
    free(bytes);
}

/* An endpoint closes while a message lands in a buffer: nothing touches that afterwards. */
static void case_close_midway(struct node *node)
{
    const size_t large = (size_t)64 << 20;
    uint8_t *bytes = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bytes != MAP_FAILED);
    if (node->rank == 0) {
        memset(bytes, 1, large);
        AGAIN(node, fi_tsend(node->ep[0], bytes, large, NULL, node->peer[1][1], 1, &context[0]));
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry error = {0};
        fi_addr_t source;
        if (!next_completion(node, &entry, &source, &error)) /* else all of it was faster */
            CHECK(error.op_context == &context[0] && error.err == FI_ECONNRESET);
    } else {
        CHECK(!fi_trecv(node->ep[1], bytes, large, NULL, FI_ADDR_UNSPEC, 1, 0, &context[1]));
        unsigned char is_there = 0;
        while (!is_there) { /* its first page: something has landed; alarm() bounds it */
            sched_yield();
            CHECK(!mincore(bytes, 1, &is_there));
        }
        CHECK(!fi_close(&node->ep[1]->fid));
        CHECK(!mprotect(bytes, large, PROT_NONE));
        node->endpoints = 1;
    }
    barrier(2);
    munmap(bytes, large);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct node *node);
    struct node_options options;
} table[] = {
    {"hints", case_hints, {0}},
    {"sizes", case_sizes, {0}},
    {"tags", case_tags, {.av_type = FI_AV_MAP}},
    {"posted_order", case_posted_order, {0}},
    {"probe", case_probe, {0}},
    {"short_buffers", case_short_buffers, {0}},
    {"multi_recv", case_multi_recv, {0}},
    {"data_and_vectors", case_data_and_vectors, {0}},
    {"waiting", case_waiting, {.wait_obj = FI_WAIT_FD}},
    {"unexpected", case_unexpected, {0}},
    {"no_polling", case_no_polling, {.wait_obj = FI_WAIT_FD}},
    {"endpoints", case_endpoints, {.endpoints = 8}},
    {"late_insert", case_late_insert, {.insert_late = true}},
    {"strangers", case_strangers, {0}},
    {"close_midway", case_close_midway, {.endpoints = 2}},
    {"death", case_death, {0}},
};

const char *const cases[] = {"hints",       "sizes",         "tags",         "posted_order",
                             "probe",       "short_buffers", "multi_recv",   "data_and_vectors",
                             "waiting",     "unexpected",    "no_polling",   "endpoints",
                             "late_insert", "strangers",     "close_midway", "death",
                             NULL};

void run_case(int rank, int ranks, void *name)
{
    struct node node;
    size_t i = 0;
    while (strcmp(table[i].name, name)) /* it is one of `cases` */
        i++;
    if (rank == 1)
        *shared_word = getpid();
    node_open(&node, rank, ranks, &table[i].options);
    table[i].run(&node);
    node_close(&node);
}
