/* SPDX-License-Identifier: BSD-3-Clause */
#include "world/batch.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MAX 64u
/* Real time, for what never comes back from one call; everything else is counted in turns. Far more than a
 * run takes, on a busy machine and under any sanitizer. */
#define HANG_SECONDS 300u

/* What the processes share. */
struct shared {
    _Atomic uint64_t next;
    uint64_t end;
    _Atomic bool stop;
    _Atomic uint64_t current[JOBS_MAX];
    _Atomic uint32_t lock;
    struct batch_result result;
    struct world_report report; /* batch_run_alone */
    struct plan plan[JOBS_MAX];
};

/* The batch that runs, for the handler. */
static struct shared *stoppable;

/* The processes end their runs and see it; a handler that only noted it would wait for one of them to
 * die, as waitpid() goes on after a signal. */
static void on_stop(int number)
{
    (void)number;
    atomic_store(&stoppable->stop, true);
}

static void stop_on_signals(struct shared *shared)
{
    stoppable = shared;
    signal(SIGINT, shared ? on_stop : SIG_DFL);
    signal(SIGTERM, shared ? on_stop : SIG_DFL);
}

static struct shared *share(void)
{
    void *memory =
        mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return memory;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- one process of many ----------------------------------------------------------------------------- */

static void add_failure(struct shared *shared, uint64_t seed, const char *checker, const char *failure)
{
    struct batch_result *result = &shared->result;
    if (result->failures < BATCH_FAILURES_MAX) {
        struct batch_failure *failed = &result->failed[result->failures];
        failed->seed = seed;
        snprintf(failed->checker, sizeof failed->checker, "%s", checker);
        snprintf(failed->failure, sizeof failed->failure, "%s", failure);
    }
    fprintf(stderr, "seed %llu fails\n", (unsigned long long)seed); /* a soak reports only when stopped */
    if (++result->failures >= BATCH_FAILURES_MAX)
        atomic_store(&shared->stop, true);
}

static void lock(struct shared *shared)
{
    while (atomic_exchange(&shared->lock, 1) != 0)
        continue; /* for some additions */
}

static void add_report(struct shared *shared, uint64_t seed, const struct world_report *report)
{
    struct batch_result *result = &shared->result;
    lock(shared);
    result->seeds++;
    result->turns += report->turns;
    result->delivered += report->delivered;
    result->canceled += report->canceled;
    result->truncated += report->truncated;
    result->exchanged += report->exchanged;
    result->operated += report->operated;
    result->lied += report->lied;
    if (report->heal_share > result->heal_share) {
        result->heal_share = report->heal_share;
        result->heal_seed = seed;
    }
    if (report->checker[0])
        add_failure(shared, seed, report->checker, report->failure);
    atomic_store(&shared->lock, 0);
}

static void work(struct shared *shared, unsigned job)
{
    for (;;) {
        uint64_t seed = atomic_fetch_add(&shared->next, 1);
        if (seed >= shared->end || atomic_load(&shared->stop))
            break;
        struct world_report report;
        atomic_store(&shared->current[job], seed);
        alarm(HANG_SECONDS);
        plan_draw(seed, &shared->plan[job]);
        world_run(&shared->plan[job], CANARY_none, NULL, &report);
        add_report(shared, seed, &report);
    }
    _exit(0);
}

static pid_t start(struct shared *shared, unsigned job)
{
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(2);
    }
    if (child == 0) {
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would take its results */
        work(shared, job);
    }
    return child;
}

static void note_death(struct shared *shared, unsigned job, int status)
{
    char words[WORLD_FAILURE_MAX];
    const char *checker = "abort";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        checker = "hang";
    if (WIFSIGNALED(status))
        snprintf(words, sizeof words, "the process died of signal %d", WTERMSIG(status));
    else
        snprintf(words, sizeof words, "the process ended with %d", WEXITSTATUS(status));
    lock(shared);
    shared->result.seeds++;
    add_failure(shared, atomic_load(&shared->current[job]), checker, words);
    atomic_store(&shared->lock, 0);
}

void batch_run(uint64_t first, uint64_t seeds, unsigned jobs, struct batch_result *result)
{
    struct shared *shared = share();
    pid_t children[JOBS_MAX];
    unsigned alive = 0;
    double started = now_seconds();
    jobs = jobs > JOBS_MAX ? JOBS_MAX : jobs;
    atomic_store(&shared->next, first);
    shared->end = seeds > UINT64_MAX - first ? UINT64_MAX : first + seeds;
    stop_on_signals(shared);
    for (unsigned job = 0; job < jobs; job++, alive++)
        children[job] = start(shared, job);
    while (alive > 0) {
        int status;
        pid_t dead = waitpid(-1, &status, 0);
        if (dead < 0)
            continue;
        unsigned job = 0;
        while (job < jobs && children[job] != dead)
            job++;
        if (job == jobs)
            continue;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            alive--;
            continue;
        }
        note_death(shared, job, status);
        children[job] = start(shared, job);
    }
    *result = shared->result;
    result->seconds = now_seconds() - started;
    stop_on_signals(NULL);
    munmap(shared, sizeof *shared);
}

/* ---- one process of its own -------------------------------------------------------------------------- */

/* The last line with text: an assertion, or a sanitizer's summary. */
static void take_failure(FILE *errors, struct world_report *report, int status)
{
    char line[WORLD_FAILURE_MAX];
    rewind(errors);
    snprintf(report->failure, sizeof report->failure, "the process ended with status %d", status);
    while (fgets(line, sizeof line, errors))
        if (strstr(line, "Assertion") || strstr(line, "ERROR") || strstr(line, "runtime error") ||
            strstr(line, "arena")) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(report->failure, sizeof report->failure, "%s", line);
            return;
        }
}

void batch_run_alone(const struct plan *plan, enum world_canary canary, struct world_report *report)
{
    struct shared *shared = share();
    FILE *errors = tmpfile();
    if (errors == NULL) {
        perror("tmpfile");
        exit(2);
    }
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(errors), STDERR_FILENO);
        alarm(HANG_SECONDS);
        world_run(plan, canary, NULL, &shared->report);
        _exit(0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0)
        continue;
    *report = shared->report;
    if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bool hang = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        snprintf(report->checker, sizeof report->checker, "%s", hang ? "hang" : "abort");
        take_failure(errors, report, status);
    }
    fclose(errors);
    munmap(shared, sizeof *shared);
}
