/*
 * fi_host.c - a program of libfabric that tests the provider: docs/libfabric.md.
 *   fi_host cases [NAME...]        each thing that the provider does
 *   fi_host orders [SEED [COUNT]]  random messages of 3 ranks, received by tag and source in random orders
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fi_node.h"

#include <string.h>
#include <time.h>

/* ---- random orders ------------------------------------------------------------------------------------- */

#define ORDER_RANKS 3
#define ORDER_TAGS  4
#define MESSAGES    60 /* of a sender to a receiver */
#define LONGEST     30000

struct random {
    uint64_t state;
};

static uint64_t next(struct random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

struct message {
    int tag;
    size_t bytes;
};

/* What a sender sends to a receiver: both know it by the seed. */
static struct message planned(uint64_t seed, int from, int to, int index)
{
    struct random random = {seed * 1000003 + (uint64_t)(from * 64 + to * 8 + 1) * 7919 + (uint64_t)index};
    for (int i = 0; i < 8; i++)
        next(&random);
    struct message message = {.tag = (int)(next(&random) % ORDER_TAGS)};
    size_t limit = next(&random) % 3 ? 64 : LONGEST;
    message.bytes = 16 + next(&random) % limit;
    return message;
}

/* Each message begins with its sender and its index. */
struct head {
    uint64_t from, index;
};

struct receive {
    int from, tag; /* below 0: any */
    uint8_t bytes[LONGEST + 32];
};

static void send_all(struct node *node, uint64_t seed, uint8_t (*buffers)[LONGEST + 32])
{
    for (int i = 0; i < MESSAGES; i++)
        for (int to = 0; to < ORDER_RANKS; to++) {
            struct message message = planned(seed, node->rank, to, i);
            uint8_t *bytes = buffers[i * ORDER_RANKS + to];
            const struct head head = {(uint64_t)node->rank, (uint64_t)i};
            fill(bytes, message.bytes, (uint64_t)i);
            memcpy(bytes, &head, sizeof head);
            AGAIN(node, fi_tsend(node->ep[0], bytes, message.bytes, NULL, node->peer[to][0],
                                 (uint64_t)message.tag, NULL));
        }
}

/* A receive has a message that it wants, whole, and nobody else has it. */
static void check(uint64_t seed, const struct node *node, const struct receive *receive,
                  const struct fi_cq_tagged_entry *entry, fi_addr_t source, bool *has_come)
{
    struct head head;
    memcpy(&head, receive->bytes, sizeof head);
    CHECK(entry->len >= sizeof head && head.from < ORDER_RANKS && head.index < MESSAGES);
    int from = (int)head.from, index = (int)head.index;
    struct message message = planned(seed, from, node->rank, index);
    CHECK(message.bytes == entry->len && (uint64_t)message.tag == entry->tag);
    CHECK(source == node->peer[from][0] && (receive->from < 0 || receive->from == from));
    CHECK(receive->tag < 0 || receive->tag == message.tag);
    uint8_t expected[LONGEST + 32];
    fill(expected, message.bytes, head.index);
    CHECK(!memcmp(expected + sizeof head, receive->bytes + sizeof head, message.bytes - sizeof head));
    CHECK(!has_come[from * MESSAGES + index]);
    has_come[from * MESSAGES + index] = true;
}

/* Receives that take all messages: for each message one, which names its source and tag, or neither. Those
 * that name less may take the message of one that names more, so the latter are posted first. */
static int make_receives(uint64_t seed, int rank, struct random *random, struct receive *receives)
{
    int count = 0;
    for (int from = 0; from < ORDER_RANKS; from++) {
        bool is_named = next(random) % 2; /* else all of this sender's are received by tag or by any */
        for (int i = 0; i < MESSAGES; i++) {
            receives[count].from = is_named ? from : -1;
            receives[count++].tag = is_named ? planned(seed, from, rank, i).tag : -1;
        }
    }
    return count;
}

static void post(struct node *node, struct receive *receive)
{
    CHECK(!fi_trecv(node->ep[0], receive->bytes, sizeof receive->bytes, NULL,
                    receive->from < 0 ? FI_ADDR_UNSPEC : node->peer[receive->from][0],
                    receive->tag < 0 ? 0 : (uint64_t)receive->tag, receive->tag < 0 ? UINT64_MAX : 0,
                    receive));
}

static void take(struct node *node, uint64_t seed, int count, bool *has_come)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    fi_addr_t source;
    for (int received = 0, sent = 0; received < count || sent < count;) {
        CHECK(next_completion(node, &entry, &source, &error));
        if (entry.flags & FI_RECV) {
            check(seed, node, entry.op_context, &entry, source, has_come);
            received++;
        } else {
            sent++;
        }
    }
}

/* Messages of a sender are in the order of their sends, in receives that want the same, in the order of
 * posting. The i-th receive that names a sender and a tag was made for its i-th message. */
static void check_order(const struct receive *receives, int count)
{
    int64_t last[ORDER_RANKS] = {-1, -1, -1};
    for (int i = 0; i < count; i++) {
        struct head head;
        memcpy(&head, receives[i].bytes, sizeof head);
        if (receives[i].from >= 0) {
            CHECK(head.index == (uint64_t)(i % MESSAGES));
            continue;
        }
        CHECK((int64_t)head.index > last[head.from]);
        last[head.from] = (int64_t)head.index;
    }
}

static void run_order(int rank, int ranks, void *seed_of)
{
    uint64_t seed = *(uint64_t *)seed_of;
    const struct node_options options = {0};
    struct random random = {seed * 31 + (uint64_t)rank + 1};
    struct receive *receives = calloc(ORDER_RANKS * MESSAGES, sizeof *receives);
    uint8_t(*buffers)[LONGEST + 32] = calloc(ORDER_RANKS * MESSAGES, sizeof *buffers);
    bool has_come[ORDER_RANKS * MESSAGES] = {false};
    struct node node;
    CHECK(receives && buffers);
    node_open(&node, rank, ranks, &options);
    int count = make_receives(seed, rank, &random, receives);
    bool is_early = next(&random) % 2;
    if (!is_early)
        send_all(&node, seed, buffers);
    for (int pass = 0; pass < 2; pass++) /* those that name less come last */
        for (int i = 0; i < count; i++)
            if ((receives[i].from < 0) == (pass == 1))
                post(&node, &receives[i]);
    if (is_early)
        send_all(&node, seed, buffers);
    take(&node, seed, count, has_come);
    check_order(receives, count);
    barrier(ranks);
    node_close(&node);
    free(receives);
    free(buffers);
}

/* ---- the program --------------------------------------------------------------------------------------- */

static int run_cases(char **names)
{
    int failed = 0;
    for (int i = 0; cases[i]; i++) {
        bool is_chosen = !*names;
        for (char **name = names; *name; name++)
            is_chosen |= !strcmp(*name, cases[i]);
        if (!is_chosen)
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s", cases[i]);
        int victim = !strcmp(name, "death") ? 1 : -1;
        bool has_failed = run_ranks(2, victim, run_case, name) > 0;
        printf("%-20s %s\n", name, has_failed ? "FAILED" : "ok");
        failed += has_failed;
    }
    return failed;
}

static int run_orders(uint64_t seed, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t now = seed + i;
        if (run_ranks(ORDER_RANKS, -1, run_order, &now)) {
            printf("failed: fi_host orders %llu 1\n", (unsigned long long)now);
            return 1;
        }
    }
    printf("%llu orders from seed %llu: ok\n", (unsigned long long)count, (unsigned long long)seed);
    return 0;
}

int main(int argc, char **argv)
{
    setenv("LONGHAUL_SOCKET_IFNAME", "lo", 0);
    setenv("LONGHAUL_PEER_TIMEOUT", "2s", 0);
    if (argc >= 2 && !strcmp(argv[1], "cases"))
        return run_cases(argv + 2) ? 1 : 0;
    if (argc >= 2 && !strcmp(argv[1], "orders")) {
        uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL) % 100000;
        return run_orders(seed, argc > 3 ? strtoull(argv[3], NULL, 10) : 20);
    }
    fprintf(stderr, "usage: %s cases [NAME...] | orders [SEED [COUNT]]\n", argv[0]);
    return 2;
}
