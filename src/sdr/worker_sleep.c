/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/worker_sleep.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <longhaul/types.h>

#include "base/error.h"

/* ---- watch ----------------------------------------------------------------------------------------- */

void watch_init(struct watch *watch)
{
    *watch = (struct watch){.fd = -1};
}

void watch_close(struct watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
    free(watch->users);
    watch->users = NULL;
}

static bool is_among(int fd, const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fds[i] == fd)
            return true;
    return false;
}

#define USERS_ROOM_MIN 64u

/* Entries are aligned: the lowest bit of a pointer tells them from the others. */
#define OTHER ((uintptr_t)1)

static int add(struct watch *watch, uintptr_t what, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = what};
    if (watch->fd < 0)
        watch->fd = epoll_create1(EPOLL_CLOEXEC);
    if (watch->fd < 0)
        return lh_fail(LH_ESYSTEM, "epoll_create: %s; raise the limit of open files", strerror(errno));
    if (epoll_ctl(watch->fd, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
        return lh_fail(LH_ESYSTEM, "cannot wait for a socket: %s; raise fs.epoll.max_user_watches",
                       strerror(errno));
    return 0;
}

/* Descriptors are small numbers. False: no memory. */
static bool count_user(struct watch *watch, int fd)
{
    uint32_t at = (uint32_t)fd;
    if (at >= watch->users_room) {
        uint32_t room = watch->users_room ? watch->users_room : USERS_ROOM_MIN;
        while (room <= at)
            room *= 2;
        uint32_t *users = realloc(watch->users, room * sizeof *users);
        if (!users)
            return false;
        memset(users + watch->users_room, 0, (room - watch->users_room) * sizeof *users);
        watch->users = users;
        watch->users_room = room;
    }
    watch->users[at]++;
    return true;
}

static void remove_user(struct watch *watch, int fd)
{
    epoll_ctl(watch->fd, EPOLL_CTL_DEL, fd, NULL); /* it may be closed */
    assert(watch->users[fd] > 0);
    if (--watch->users[fd] == 0)
        return;
    assert(watch->removed_count < WATCH_REMOVED_MAX);
    watch->removed[watch->removed_count++] = fd;
}

int watch_set(struct watch *watch, struct run_entry *entry, struct watch_fds *registered, const int *fds,
              uint32_t count)
{
    const struct watch_fds before = *registered;
    int error = 0;
    assert(count <= WATCH_FDS_MAX);
    for (uint32_t i = 0; i < before.count; i++)
        if (!is_among(before.fds[i], fds, count))
            remove_user(watch, before.fds[i]);
    registered->count = 0;
    for (uint32_t i = 0; i < count && !error; i++) {
        bool counted = is_among(fds[i], before.fds, before.count) || count_user(watch, fds[i]);
        error = counted ? add(watch, (uintptr_t)entry, fds[i])
                        : lh_fail(LH_ENOMEM, "no memory to wait for a socket");
        if (counted)
            registered->fds[registered->count++] = fds[i];
    }
    return error;
}

int watch_add_other(struct watch *watch, struct watch_other *other)
{
    int error = add(watch, (uintptr_t)other | OTHER, other->fd);
    other->watched = !error;
    watch->others += !error;
    return error;
}

void watch_remove_other(struct watch *watch, struct watch_other *other)
{
    if (!other->watched)
        return;
    epoll_ctl(watch->fd, EPOLL_CTL_DEL, other->fd, NULL);
    other->watched = false;
    watch->others--;
}

void watch_writable(const struct watch *watch, struct watch_other *other, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0),
                                .data.u64 = (uintptr_t)other | OTHER};
    epoll_ctl(watch->fd, EPOLL_CTL_MOD, other->fd, &event);
}

void watch_look(struct watch *watch, struct watch_report *report)
{
    struct epoll_event events[WATCH_BATCH];
    int count = watch->fd < 0 ? 0 : epoll_wait(watch->fd, events, WATCH_BATCH, 0);
    report->count = 0;
    report->other_count = 0;
    for (int i = 0; i < count; i++)
        if (events[i].data.u64 & OTHER)
            report->others[report->other_count++] =
                (struct watch_other *)(uintptr_t)(events[i].data.u64 & ~(uint64_t)OTHER);
        else
            report->ready[report->count++] = (struct run_entry *)(uintptr_t)events[i].data.u64;
}

/* ---- keepalive groups ------------------------------------------------------------------------------ */

#define SPREAD 1024u /* moments of an interval at which those may ping that begin together */

void keepalive_table_init(struct keepalive_table *table)
{
    *table = (struct keepalive_table){0};
    pthread_mutex_init(&table->lock, NULL);
}

void keepalive_table_destroy(struct keepalive_table *table)
{
    pthread_mutex_destroy(&table->lock);
}

/* Peers name their own addresses: they can fill a list, which costs whoever looks through it, and no more. */
static struct keepalive_member **list_of(struct keepalive_table *table,
                                         const uint8_t key[KEEPALIVE_KEY_BYTES])
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < KEEPALIVE_KEY_BYTES; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x100000001B3);
    return &table->lists[(hash ^ hash >> 32) % KEEPALIVE_LISTS];
}

static bool same_peer(const struct keepalive_member *one, const struct keepalive_member *other)
{
    return memcmp(one->key, other->key, sizeof one->key) == 0;
}

static struct keepalive_member **tokens_of(struct keepalive_table *table, uint32_t token)
{
    return &table->tokens[token % KEEPALIVE_TOKENS]; /* this side's own, and random */
}

static void remove_token(struct keepalive_table *table, struct keepalive_member *member)
{
    struct keepalive_member **at = tokens_of(table, member->token);
    while (*at != member) /* bounded by the QPs */
        at = &(*at)->next_token;
    *at = member->next_token;
}

/* Those of one peer follow their representative. */
void keepalive_table_add(struct keepalive_table *table, struct keepalive_member *member,
                         const uint8_t key[KEEPALIVE_KEY_BYTES])
{
    assert(!member->listed);
    memcpy(member->key, key, sizeof member->key);
    pthread_mutex_lock(&table->lock);
    struct keepalive_member **list = list_of(table, key);
    struct keepalive_member *before = *list;
    while (before && !(atomic_load(&before->keeps) && same_peer(before, member))) /* bounded by the QPs */
        before = before->next;
    member->previous = before;
    member->next = before ? before->next : *list;
    if (member->next)
        member->next->previous = member;
    if (before)
        before->next = member;
    else
        *list = member;
    struct keepalive_member **tokens = tokens_of(table, member->token);
    member->next_token = *tokens;
    *tokens = member;
    member->alone = true; /* until the next question */
    member->asked = 0;
    member->listed = true;
    atomic_store(&member->keeps, before == NULL);
    pthread_mutex_unlock(&table->lock);
}

struct keepalive_member *keepalive_table_remove(struct keepalive_table *table,
                                                struct keepalive_member *member)
{
    struct keepalive_member *successor = NULL;
    pthread_mutex_lock(&table->lock);
    if (member->listed) {
        remove_token(table, member);
        if (member->previous)
            member->previous->next = member->next;
        else
            *list_of(table, member->key) = member->next;
        if (member->next)
            member->next->previous = member->previous;
        if (atomic_load(&member->keeps) && member->next && same_peer(member->next, member))
            successor = member->next;
        member->listed = false;
        atomic_store(&member->keeps, false);
        if (successor)
            atomic_store(&successor->keeps, true);
    }
    pthread_mutex_unlock(&table->lock);
    return successor;
}

/* ---- who waits --------------------------------------------------------------------------------------- */

/* Many may begin at once: spread over an interval, none of their pings is dropped for the others', again and
 * again. */
static void spread_pings(struct keepalive_member *member, lh_time now)
{
    member->ping_from = now + atomic_load(&member->interval_ns) / SPREAD * (member->token % SPREAD);
}

void keepalive_member_wait(struct keepalive_member *member, bool waits, lh_time now)
{
    if (waits && !member->waits)
        spread_pings(member, now);
    member->waits = waits;
}

bool keepalive_member_is_alone(const struct keepalive_member *member)
{
    return !member->asked_for || member->alone || atomic_load(&member->keeps);
}

/* ---- questions --------------------------------------------------------------------------------------- */

/* The next one of that peer. */
static struct keepalive_member *next_of(struct keepalive_table *table, const struct keepalive_member *self,
                                        const struct keepalive_member *at)
{
    pthread_mutex_lock(&table->lock);
    struct keepalive_member *next = at->next && same_peer(at->next, self) ? at->next : NULL;
    pthread_mutex_unlock(&table->lock);
    return next;
}

/* The one with that token and the same peer; NULL: there is none. */
static struct keepalive_member *find(struct keepalive_table *table, const struct keepalive_member *self,
                                     uint32_t token)
{
    pthread_mutex_lock(&table->lock);
    struct keepalive_member *at = *tokens_of(table, token);
    while (at && !(at->token == token && same_peer(at, self))) /* bounded by the QPs */
        at = at->next_token;
    pthread_mutex_unlock(&table->lock);
    return at;
}

static bool is_in_time(const struct keepalive_member *self, const struct keepalive_member *other)
{
    return atomic_load(&other->interval_ns) >= atomic_load(&self->interval_ns);
}

static void leave_alone(struct keepalive_query *question, struct keepalive_member *other)
{
    if (other->alone)
        return;
    other->alone = true;
    spread_pings(other, question->now);
    other->next_alone = question->alone;
    question->alone = other;
}

/* Whether it is asked for. Where both sides wait, the questions of one are enough. */
static bool evaluate(struct keepalive_query *question, struct keepalive_member *other)
{
    bool in_time = is_in_time(question->self, other);
    lh_time alive_ns = atomic_load(&other->alive_ns);
    bool known = alive_ns != 0 && question->now < alive_ns + atomic_load(&other->interval_ns) / 2;
    if (!other->waits || known)
        other->asked = 0;
    if (!in_time || other->asked > 0)
        leave_alone(question, other);
    else
        other->alone = false; /* many that begin to wait at once do not ping, but are asked for in time */
    if (!other->waits || (in_time && known))
        return false;
    other->asked += other->asked < UINT32_MAX;
    return in_time && other->asked_for;
}

struct keepalive_query keepalive_table_query(struct keepalive_table *table, struct keepalive_member *self,
                                             lh_time now)
{
    assert(atomic_load(&self->interval_ns) > 0);
    self->ask_at = now + atomic_load(&self->interval_ns);
    return (struct keepalive_query){.self = self, .at = next_of(table, self, self), .now = now};
}

uint32_t keepalive_table_fill_query(struct keepalive_table *table, struct keepalive_query *question,
                                    uint32_t *tokens, uint32_t room)
{
    uint32_t count = 0;
    while (question->at && count < room) { /* bounded by the QPs */
        if (evaluate(question, question->at))
            tokens[count++] = question->at->peer_token;
        question->at = next_of(table, question->self, question->at);
    }
    return count;
}

static void note_alive(const struct keepalive_member *self, struct keepalive_member *other, lh_time now)
{
    other->asked = 0;
    other->alone = !is_in_time(self, other);
    atomic_store(&other->alive_ns, now);
}

uint32_t keepalive_table_answer(struct keepalive_table *table, const struct keepalive_member *self,
                                const uint32_t *asked, uint32_t count, lh_time now, uint32_t *tokens)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct keepalive_member *other = find(table, self, asked[i]);
        if (!other)
            continue;
        note_alive(self, other, now); /* who asks for it is there */
        tokens[found++] = other->peer_token;
    }
    return found;
}

void keepalive_table_on_alive(struct keepalive_table *table, const struct keepalive_member *self,
                              const uint32_t *tokens, uint32_t count, lh_time now)
{
    for (uint32_t i = 0; i < count; i++) {
        struct keepalive_member *other = find(table, self, tokens[i]);
        if (other)
            note_alive(self, other, now);
    }
}

/* ---- waker ----------------------------------------------------------------------------------------- */

void waker_wake(struct waker *waker)
{
    atomic_store(&waker->kicked, true);
    if (!atomic_load(&waker->asleep))
        return;
    uint64_t one = 1;
    /* A full counter means that it is being woken already. */
    while (write(waker->fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}
