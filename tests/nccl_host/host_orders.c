/*
 * host_orders.c - random orders: both ends in one process, driven by one thread, whose next call is drawn
 * from a seed. What the network does in between is the only thing that a seed does not decide, and no check
 * depends on it.
 *
 * A channel is a pair of comms. Its receives have one buffer each, which take messages in the order of the
 * sends whatever their tags, or are groups, whose buffers take the messages of their tags.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "nccl_host/host_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/sanitized.h"

#define MESSAGES_MAX 400
#define GROUP_MAX    8
#define CHANNELS_MAX 3
#define GUARD        16
#define UNTOUCHED    0xEE
#define SENT         0x55
#define VERSIONS     (VERSION_LAST - VERSION_FIRST + 1)
/* Seeds of a process, which has one version and one window. A sanitizer makes them ten times slower; an
 * order of a sanitizer's build is repeated by that build. */
#define SEEDS_A_PROCESS (SANITIZED ? 16u : 64u)
/* Steps without effect, after which the driver sleeps. */
#define IDLE_STEPS 30
/* No order takes that long: it hangs. */
#define HANG_S 120

struct message {
    uint64_t pattern;
    size_t bytes;
    int tag;
    unsigned char *data;
    void *request;
    bool is_posted, is_done;
};

struct receive {
    int n, message[GROUP_MAX];
    size_t capacity[GROUP_MAX];
    unsigned char *data[GROUP_MAX];
    void *request;
    bool is_posted, is_done;
};

struct channel {
    struct net_pair pair;
    int count, receives;
    struct message messages[MESSAGES_MAX];
    struct receive receive[MESSAGES_MAX];
    int order[MESSAGES_MAX]; /* of the sends */
    int sends_posted, receives_posted, sends_done, receives_done;
    int most_sends, most_receives; /* outstanding */
};

static struct channel channels[CHANNELS_MAX];
static unsigned long refusals;

/* ---- the plan ------------------------------------------------------------------------------------------ */

static size_t draw_bytes(struct dice *dice, int *large)
{
    switch (dice_below(dice, 8)) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
        return 1 + dice_below(dice, 128);
    case 4:
        return 4090 + dice_below(dice, 12); /* beside the longest small message */
    case 5:
        return dice_below(dice, 20000);
    case 6:
        return (size_t)65536 * (1 + dice_below(dice, 4)) - 2 +
               dice_below(dice, 4); /* beside a frame's end */
    default:
        if (--*large < 0)
            return 8;
        return dice_below(dice, 3000000);
    }
}

static int add_message(struct channel *channel, struct dice *dice, int tag, int *large)
{
    struct message *message = &channel->messages[channel->count];
    *message = (struct message){.pattern = dice_throw(dice), .bytes = draw_bytes(dice, large), .tag = tag};
    return channel->count++;
}

/* Some tags of eight, in any order. */
static int draw_tags(struct dice *dice, int *tags)
{
    int all[GROUP_MAX], n = 2 + (int)dice_below(dice, GROUP_MAX - 1);
    for (int i = 0; i < GROUP_MAX; i++)
        all[i] = i * 1000003 - 7;
    for (int i = 0; i < n; i++) {
        int pick = i + (int)dice_below(dice, (uint64_t)(GROUP_MAX - i)), moved = all[i];
        tags[i] = all[i] = all[pick];
        all[pick] = moved;
    }
    return n;
}

/* Merges the sequences of the tags at random: a tag's messages keep their order. */
static void merge_tags(struct channel *channel, struct dice *dice)
{
    bool taken[MESSAGES_MAX] = {0};
    for (int i = 0; i < channel->count; i++) {
        int first = 0, pick;
        while (taken[first])
            first++;
        do
            pick = first + (int)dice_below(dice, 12);
        while (pick >= channel->count || taken[pick]);
        for (int j = first; j < pick; j++)
            if (!taken[j] && channel->messages[j].tag == channel->messages[pick].tag)
                pick = j;
        taken[pick] = true;
        channel->order[i] = pick;
    }
}

static void plan(struct channel *channel, struct dice *dice)
{
    bool groups = dice_below(dice, 2), flood = dice_below(dice, 16) == 0;
    int wanted = flood ? 300 : 1 + (int)dice_below(dice, 40), large = flood ? 0 : 3;
    channel->count = channel->receives = 0;
    channel->sends_posted = channel->receives_posted = channel->sends_done = channel->receives_done = 0;
    channel->most_sends = flood ? 400 : 1 + (int)dice_below(dice, 64);
    channel->most_receives = 1 + (int)dice_below(dice, 64);
    while (channel->count < wanted) {
        struct receive *receive = &channel->receive[channel->receives++];
        int tags[GROUP_MAX] = {(int)dice_throw(dice)};
        *receive = (struct receive){.n = groups ? draw_tags(dice, tags) : 1};
        for (int i = 0; i < receive->n; i++) {
            receive->message[i] = add_message(channel, dice, tags[i], &large);
            size_t bytes = channel->messages[receive->message[i]].bytes;
            receive->capacity[i] = bytes + (dice_below(dice, 2) ? dice_below(dice, 100000) : 0);
        }
    }
    for (int i = 0; i < channel->count; i++)
        channel->order[i] = i;
    if (groups)
        merge_tags(channel, dice);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void fill(unsigned char *data, const struct message *message)
{
    uint64_t word = message->pattern;
    for (size_t at = 0; at < message->bytes; at += sizeof word, word += UINT64_C(0x9E3779B97F4A7C15))
        memcpy(data + at, &word, message->bytes - at < sizeof word ? message->bytes - at : sizeof word);
}

static bool is_message(const unsigned char *data, const struct message *message)
{
    uint64_t word = message->pattern;
    for (size_t at = 0; at < message->bytes; at += sizeof word, word += UINT64_C(0x9E3779B97F4A7C15))
        if (memcmp(data + at, &word, message->bytes - at < sizeof word ? message->bytes - at : sizeof word))
            return false;
    return true;
}

static void check_receive(const struct channel *channel, const struct receive *receive, const int *sizes)
{
    for (int i = 0; i < receive->n; i++) {
        const struct message *message = &channel->messages[receive->message[i]];
        if (sizes && sizes[i] != (int)message->bytes)
            fail("buffer %d of %d: %d bytes reported, %zu sent", i, receive->n, sizes[i], message->bytes);
        if (!is_message(receive->data[i], message))
            fail("a message of %zu bytes is wrong", message->bytes);
        for (size_t at = message->bytes; at < receive->capacity[i] + GUARD; at++)
            if (receive->data[i][at] != UNTOUCHED)
                fail("byte %zu behind a message of %zu was changed", at, message->bytes);
    }
}

static bool post_send(const struct net *net, struct channel *channel)
{
    if (channel->sends_posted == channel->count ||
        channel->sends_posted - channel->sends_done >= channel->most_sends)
        return false;
    struct message *message = &channel->messages[channel->order[channel->sends_posted]];
    if (!message->data) {
        message->data = malloc(message->bytes + 1);
        CHECK(message->data);
        fill(message->data, message);
    }
    message->request = net_isend(net, channel->pair.send, message->data, message->bytes, message->tag);
    message->is_posted = message->request != NULL;
    channel->sends_posted += message->is_posted;
    refusals += !message->is_posted;
    return message->is_posted;
}

static bool post_receive(const struct net *net, struct channel *channel)
{
    if (channel->receives_posted == channel->receives ||
        channel->receives_posted - channel->receives_done >= channel->most_receives)
        return false;
    struct receive *receive = &channel->receive[channel->receives_posted];
    int tags[GROUP_MAX];
    for (int i = 0; i < receive->n; i++) {
        tags[i] = channel->messages[receive->message[i]].tag;
        if (!receive->data[i]) {
            receive->data[i] = malloc(receive->capacity[i] + GUARD);
            CHECK(receive->data[i]);
            memset(receive->data[i], UNTOUCHED, receive->capacity[i] + GUARD);
        }
    }
    if (receive->n == 1 && tags[0] % 2)
        tags[0]++; /* of no matter */
    receive->request =
        net_irecv(net, channel->pair.recv, receive->n, (void **)receive->data, receive->capacity, tags);
    receive->is_posted = receive->request != NULL;
    channel->receives_posted += receive->is_posted;
    refusals += !receive->is_posted;
    return receive->is_posted;
}

static bool test_send(const struct net *net, struct channel *channel, int which)
{
    struct message *message = &channel->messages[channel->order[which]];
    int size = -1;
    if (!message->is_posted || message->is_done ||
        !net_test(net, message->request, which % 2 ? &size : NULL))
        return false;
    CHECK(which % 2 == 0 || size == (int)message->bytes);
    message->is_done = true;
    channel->sends_done++;
    memset(message->data, SENT, message->bytes); /* as NCCL, which reuses the buffer at once */
    free(message->data);
    message->data = NULL;
    return true;
}

static bool test_receive(const struct net *net, struct channel *channel, int which)
{
    struct receive *receive = &channel->receive[which];
    int sizes[GROUP_MAX];
    if (!receive->is_posted || receive->is_done || !net_test(net, receive->request, sizes))
        return false;
    receive->is_done = true;
    channel->receives_done++;
    check_receive(channel, receive, sizes);
    CHECK(!net_flush(net, channel->pair.recv, receive->data[0], sizes[0]));
    return true;
}

/* ---- an order ------------------------------------------------------------------------------------------ */

static bool test_all(const struct net *net, struct channel *channel)
{
    bool changed = false;
    for (int i = 0; i < channel->sends_posted; i++)
        changed |= test_send(net, channel, i);
    for (int i = 0; i < channel->receives_posted; i++)
        changed |= test_receive(net, channel, i);
    return changed;
}

static bool step(const struct net *net, struct channel *channel, struct dice *dice)
{
    switch (dice_below(dice, 6)) {
    case 0:
        return post_send(net, channel);
    case 1:
        return post_receive(net, channel);
    case 2:
        return channel->sends_posted > 0 &&
               test_send(net, channel, (int)dice_below(dice, (uint64_t)channel->sends_posted));
    case 3:
        return channel->receives_posted > 0 &&
               test_receive(net, channel, (int)dice_below(dice, (uint64_t)channel->receives_posted));
    case 4: { /* many sends first */
        bool changed = false;
        while (post_send(net, channel))
            changed = true;
        return changed;
    }
    default:
        return test_all(net, channel);
    }
}

static bool is_over(const struct channel *channel)
{
    return channel->sends_done == channel->count && channel->receives_done == channel->receives;
}

static void end_order(struct channel *channel)
{
    for (int i = 0; i < channel->receives; i++) {
        struct receive *receive = &channel->receive[i];
        if (receive->is_done) /* nothing was written since */
            check_receive(channel, receive, NULL);
        for (int j = 0; j < receive->n; j++)
            free(receive->data[j]);
    }
    for (int i = 0; i < channel->count; i++)
        free(channel->messages[i].data);
}

/* Closes in either order, with whatever is in flight. */
static void reconnect(const struct net *net, struct channel *channel, struct dice *dice)
{
    if (dice_below(dice, 2)) {
        net_close_send(net, channel->pair.send);
        net_close_recv(net, channel->pair.recv);
    } else {
        net_close_recv(net, channel->pair.recv);
        net_close_send(net, channel->pair.send);
    }
    channel->pair = net_connect_pair(net);
}

static void run_order(const struct net *net, uint64_t seed)
{
    struct dice dice = {seed};
    int count = 1 + (int)dice_below(&dice, CHANNELS_MAX), over = 0, idle = 0;
    uint64_t abort_after = dice_below(&dice, 24) ? UINT64_MAX : dice_below(&dice, 200);
    snprintf(net_activity, sizeof net_activity, "seed %llu", (unsigned long long)seed);
    alarm(HANG_S);
    for (int i = 0; i < count; i++)
        plan(&channels[i], &dice);
    for (uint64_t turn = 0; over < count && turn < abort_after; turn++) {
        bool changed = step(net, &channels[dice_below(&dice, (uint64_t)count)], &dice);
        idle = changed ? 0 : idle + 1;
        if (idle >= IDLE_STEPS) /* beside a busy machine the engine's worker needs this processor */
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        over = 0;
        for (int i = 0; i < count; i++)
            over += is_over(&channels[i]);
    }
    for (int i = 0; i < count; i++) {
        bool aborted = !is_over(&channels[i]);
        if (aborted || dice_below(&dice, 32) == 0)
            reconnect(net, &channels[i], &dice);
        end_order(&channels[i]);
    }
}

/* The seeds of a process. */
static int run_some(uint64_t first, uint64_t end)
{
    static const char *const windows[] = {"1MiB", "2MiB", "16MiB"};
    uint64_t process = first / SEEDS_A_PROCESS;
    setenv("LONGHAUL_WINDOW", windows[process % 3], 1);
    const struct net *net = net_load(VERSION_FIRST + (int)(process % VERSIONS));
    CHECK(net);
    net_init(net);
    for (int i = 0; i < CHANNELS_MAX; i++)
        channels[i].pair = net_connect_pair(net);
    for (uint64_t seed = first; seed < end; seed++)
        run_order(net, seed);
    for (int i = 0; i < CHANNELS_MAX; i++)
        net_close_pair(net, channels[i].pair);
    net_finalize(net);
    return net_warnings()
           ? fail("seeds from %llu on: a warning: %s", (unsigned long long)first, net_last_warning()),
           1 : 0;
}

/* orders [FIRST COUNT] */
int orders_main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 0,
             count = argc > 2 ? strtoull(argv[2], NULL, 0) : VERSIONS * SEEDS_A_PROCESS;
    uint64_t end = first + count;
    for (uint64_t seed = first, next; seed < end; seed = next) {
        int status = 1;
        next = seed - seed % SEEDS_A_PROCESS + SEEDS_A_PROCESS;
        next = next < end ? next : end;
        pid_t child = start_process(HANG_S);
        if (child == 0)
            exit(run_some(seed, next));
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            fail("seeds %llu to %llu: status %d", (unsigned long long)seed, (unsigned long long)next - 1,
                 status);
    }
    printf("%llu orders from seed %llu on: every byte was right\n", (unsigned long long)count,
           (unsigned long long)first);
    return 0;
}
