/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/jobs.h"

#include "cli/options/listening.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/wait.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define FULL_PAUSE_NS (5 * 1000000L) /* looks for a place this often */

struct job {
    const struct cli_file_receiver *receiver;
    struct lh_connection *connection; /* NULL: the place is free */
    pthread_t thread;
    _Atomic bool ended; /* the thread does nothing more */
};

static void *run(void *argument)
{
    struct job *job = argument;
    cli_file_receive(job->receiver, job->connection);
    lh_close(job->connection);
    atomic_store(&job->ended, true);
    return NULL;
}

/* Frees the places of those that have ended. Returns how many have not. */
static unsigned reap(struct job *jobs, unsigned count)
{
    unsigned running = 0;
    for (unsigned i = 0; i < count; i++) {
        if (jobs[i].connection && atomic_load(&jobs[i].ended)) {
            pthread_join(jobs[i].thread, NULL);
            jobs[i].connection = NULL;
        }
        running += jobs[i].connection != NULL;
    }
    return running;
}

static int start(struct job *job, const struct cli_file_receiver *receiver,
                 struct lh_connection *connection)
{
    *job = (struct job){.receiver = receiver, .connection = connection};
    int failed = pthread_create(&job->thread, NULL, run, job);
    if (!failed)
        return CLI_PROCEED;
    cli_failed("cannot start a thread for %s: %s", lh_peer_name(connection), strerror(failed));
    lh_close(connection);
    job->connection = NULL;
    return CLI_PROCEED; /* the next one may find a thread */
}

/* Looks for the next sender, and for a place. Without a transfer a signal ends the process at once. */
static int serve_next(struct lh_listener *listener, const struct cli_file_receiver *receiver,
                      struct job *jobs, unsigned count, unsigned running)
{
    struct lh_connection *connection;
    if (running == count) {
        nanosleep(&(struct timespec){.tv_nsec = FULL_PAUSE_NS}, NULL);
        return CLI_PROCEED;
    }
    int status = running ? cli_listening_look(listener, &connection)
                         : cli_listening_accept(listener, LH_TIME_NEVER, &connection);
    if (status != CLI_PROCEED || !connection)
        return status;
    while (jobs->connection)
        jobs++;
    return start(jobs, receiver, connection);
}

int cli_jobs_serve(struct lh_listener *listener, const struct cli_file_receiver *receiver, unsigned count)
{
    struct job jobs[CLI_JOBS_MAX] = {0};
    int status = CLI_PROCEED;
    while (status == CLI_PROCEED && !cli_stopped())
        status = serve_next(listener, receiver, jobs, count, reap(jobs, count));
    while (reap(jobs, count) > 0)
        nanosleep(&(struct timespec){.tv_nsec = FULL_PAUSE_NS}, NULL);
    return cli_stopped() ? cli_stopped() : status;
}
