/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/control_acceptor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct control_acceptor {
    pthread_mutex_t lock; /* of all; no other is taken under it */
    uint32_t users;       /* the listener among them */
    bool closed;
    int wake_fd;
    uint32_t count;
    struct control_stream *streams[CONTROL_ACCEPTOR_MAX];
};

struct control_acceptor *control_acceptor_create(int wake_fd)
{
    struct control_acceptor *acceptor = calloc(1, sizeof *acceptor);
    if (!acceptor)
        return NULL;
    pthread_mutex_init(&acceptor->lock, NULL);
    acceptor->users = 1;
    acceptor->wake_fd = wake_fd;
    return acceptor;
}

struct control_acceptor *control_acceptor_share(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    acceptor->users++;
    pthread_mutex_unlock(&acceptor->lock);
    return acceptor;
}

void control_acceptor_release(struct control_acceptor *acceptor)
{
    if (!acceptor)
        return;
    pthread_mutex_lock(&acceptor->lock);
    bool last = --acceptor->users == 0;
    pthread_mutex_unlock(&acceptor->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&acceptor->lock);
    free(acceptor);
}

uint32_t control_acceptor_users(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    uint32_t users = acceptor->users - !acceptor->closed;
    pthread_mutex_unlock(&acceptor->lock);
    return users;
}

int control_acceptor_wake_fd(const struct control_acceptor *acceptor)
{
    return acceptor->wake_fd;
}

enum control_acceptance control_acceptor_put(struct control_acceptor *acceptor,
                                             struct control_stream *stream)
{
    enum control_acceptance result = CONTROL_ACCEPTED;
    uint64_t one = 1;
    pthread_mutex_lock(&acceptor->lock);
    if (acceptor->closed)
        result = CONTROL_CLOSED;
    else if (acceptor->count == CONTROL_ACCEPTOR_MAX)
        result = CONTROL_FULL;
    else
        acceptor->streams[acceptor->count++] = stream;
    while (result == CONTROL_ACCEPTED && write(acceptor->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    pthread_mutex_unlock(&acceptor->lock);
    return result;
}

struct control_stream *control_acceptor_take(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    struct control_stream *oldest = acceptor->count > 0 ? acceptor->streams[0] : NULL;
    if (oldest)
        memmove(&acceptor->streams[0], &acceptor->streams[1],
                --acceptor->count * sizeof acceptor->streams[0]);
    pthread_mutex_unlock(&acceptor->lock);
    return oldest;
}

void control_acceptor_close(struct control_acceptor *acceptor)
{
    pthread_mutex_lock(&acceptor->lock);
    acceptor->closed = true;
    pthread_mutex_unlock(&acceptor->lock);
}
