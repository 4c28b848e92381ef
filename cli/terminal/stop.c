/*
 * Timers: the grace of a process that a signal has stopped, GRACE_S.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/terminal/stop.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#define EXIT_BY_SIGNAL 128
#define GRACE_S        1u

/* Any thread reads them, and any may be the one that a signal interrupts. */
static _Atomic int stop_signal;
static _Atomic int stop_at_once;
static const char *_Atomic unfinished;

static void end_process(int number)
{
    const char *path = unfinished;
    if (path)
        unlink(path);
    _exit(EXIT_BY_SIGNAL + number);
}

static void on_stop_signal(int number)
{
    if (stop_at_once)
        end_process(number);
    stop_signal = number;
}

void cli_stop_install(void)
{
    /* SA_RESTART: the library's threads may be the ones that are interrupted. */
    struct sigaction action = {.sa_handler = on_stop_signal, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    stop_at_once = 1;
    /* SIGINT also when it is ignored, as it is for a script's background jobs: who sends it there means it.
     */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Under nohup SIGHUP stays ignored. */
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void cli_stop_at_once(bool at_once)
{
    stop_at_once = at_once;
}

static void on_grace_over(int number)
{
    (void)number;
    end_process(stop_signal);
}

void cli_stop_leaving(void)
{
    struct sigaction action = {.sa_handler = on_grace_over, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    stop_at_once = 1;
    if (!stop_signal)
        return;
    sigaction(SIGALRM, &action, NULL);
    alarm(GRACE_S);
}

void cli_stop_removes(const char *path)
{
    unfinished = path;
}

int cli_stopped(void)
{
    return stop_signal ? EXIT_BY_SIGNAL + stop_signal : 0;
}
