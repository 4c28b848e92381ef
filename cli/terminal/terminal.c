/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>

/* ---- terminal -------------------------------------------------------------------------------------- */

#define USUAL_COLUMNS 80
#define USUAL_ROWS    24

/* Launchers of MPI give a rank a terminal of their own, and copy it to what may be a file. */
static bool is_launched(void)
{
    return getenv("PMIX_RANK") || getenv("OMPI_COMM_WORLD_RANK");
}

bool cli_terminal_colours(int descriptor)
{
    const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (!isatty(descriptor) || (refused && *refused) || is_launched())
        return false;
    return terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

unsigned cli_terminal_columns(int descriptor)
{
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) || !size.ws_col)
        return USUAL_COLUMNS;
    return size.ws_col;
}

unsigned cli_terminal_rows(int descriptor)
{
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) || !size.ws_row)
        return USUAL_ROWS;
    return size.ws_row;
}

const char *cli_colour(enum cli_colour colour, bool colours)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "\033[0m",  [CLI_BOLD] = "\033[1m",    [CLI_DIM] = "\033[2m",
        [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m", [CLI_RED] = "\033[31m",
    };
    return colours ? codes[colour] : "";
}

bool cli_terminal_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *locale = getenv(names[i]);
        if (locale && *locale)
            return strcasestr(locale, "UTF-8") || strcasestr(locale, "UTF8");
    }
    return false; /* the locale C */
}

const char *cli_text_shown(const char *text, char *out, size_t size)
{
    static const char *const signs[][2] = {
        {"─", "-"}, {"→", ">"}, {"×", "x"}, {"±", "+-"}, {"≥", ">="}, {"…", "..."}, {"µ", "u"},
    };
    size_t used = 0;
    if (cli_terminal_utf8())
        return text;
    while (*text && used + sizeof "..." < size) {
        size_t i = 0;
        while (i < sizeof signs / sizeof signs[0] && strncmp(text, signs[i][0], strlen(signs[i][0])) != 0)
            i++;
        bool found = i < sizeof signs / sizeof signs[0];
        used += (size_t)snprintf(out + used, size - used, "%.*s", found ? INT_MAX : 1,
                                 found ? signs[i][1] : text);
        text += found ? strlen(signs[i][0]) : 1;
    }
    out[used] = '\0';
    return out;
}

const char *cli_plural(double count)
{
    return count == 1 ? "" : "s";
}

unsigned cli_text_columns(const char *text)
{
    unsigned columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xC0) != 0x80; /* not a continuation byte */
    return columns;
}

/* Bytes of the control character that text starts with; 0: none. C1 controls are C2 80 to C2 9F in UTF-8.
 */
static size_t control_bytes(const char *text, size_t bytes)
{
    unsigned char first = (unsigned char)text[0], second = bytes > 1 ? (unsigned char)text[1] : 0;
    if (first < 0x20 || first == 0x7F)
        return 1;
    return first == 0xC2 && second >= 0x80 && second <= 0x9F ? 2 : 0;
}

bool cli_text_is_clean(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (control_bytes(text + i, bytes - i))
            return false;
    return true;
}

void cli_text_clean(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memset(text + i, '?', control_bytes(text + i, bytes - i));
}

/* ---- output ---------------------------------------------------------------------------------------- */

/* errno of the first flush that failed. stdio itself drops what it could not write and forgets why. */
static int first_error;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned bars; /* on the terminal; the cursor stands in the last */

void cli_output_lock(void)
{
    pthread_mutex_lock(&lock);
}

void cli_output_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void go_to_first_bar(void)
{
    fputc('\r', stderr);
    if (bars > 1)
        fprintf(stderr, "\033[%uA", bars - 1);
}

void cli_output_bar(unsigned number, const char *line)
{
    if (number == 0)
        go_to_first_bar();
    fprintf(stderr, "%s%s\033[K", number ? "\n" : "", line);
    fflush(stderr);
    bars = number + 1;
}

void cli_output_erase_bars(void)
{
    if (!bars)
        return;
    go_to_first_bar();
    fputs("\033[J", stderr);
    fflush(stderr);
    bars = 0;
}

void cli_output_start(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void cli_output_flush(void)
{
    cli_output_lock();
    if (fflush(stdout) && !first_error)
        first_error = errno;
    cli_output_unlock();
}

int cli_output_end(void)
{
    /* What failed within a printf() left no reason: a further write has it. */
    if (ferror(stdout))
        fputc('\n', stdout);
    cli_output_flush();
    /* Some file systems report a full disk no earlier. */
    if (close(STDOUT_FILENO) && !first_error)
        first_error = errno;
    return first_error || !ferror(stdout) ? first_error : EIO;
}

/* ---- stop ------------------------------------------------------------------------------------------ */

/* Timers: the grace of a process that a signal has stopped, GRACE_S. */

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

/* ---- wait ------------------------------------------------------------------------------------------ */

lh_time cli_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (lh_time)now.tv_sec * LH_NS_PER_S + (lh_time)now.tv_nsec;
}

double cli_seconds(lh_time ns)
{
    return (double)ns / (double)LH_NS_PER_S;
}

int cli_wait(struct lh_request *request, lh_time timeout_ns, struct lh_result *result)
{
    lh_time started = cli_now();
    if (!timeout_ns)
        return lh_test(request, result) ? 0 : -LH_ETIMEDOUT;
    for (;;) {
        int code = lh_wait(request, CLI_SLICE_NS, result);
        if (code != -LH_ETIMEDOUT)
            return code;
        if (cli_stopped())
            return -LH_ECANCELED;
        if (cli_now() - started >= timeout_ns)
            return -LH_ETIMEDOUT;
    }
}

/* ---- diagnostic ------------------------------------------------------------------------------------ */

/* A path and some words fit. */
#define LINE_MAX_BYTES 4608

static const char *command_name = "";

/* " (rank N)", or "". */
static char rank_words[24];

void cli_diagnostic_rank(unsigned rank)
{
    snprintf(rank_words, sizeof rank_words, " (rank %u)", rank);
}

void cli_diagnostic_command(const char *command)
{
    command_name = command;
}

static void print_line(const char *prefix, const char *format, va_list arguments)
{
    char text[LINE_MAX_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    /* One line without control characters: paths and texts of the peer may contain any. */
    cli_text_clean(text, strlen(text));
    cli_output_lock();
    cli_output_erase_bars();
    /* Keeps the order of the two streams, also in one file. */
    cli_output_flush();
    /* In one piece: several processes may share a log. */
    fprintf(stderr, "longhaul%s%s%s: %s%s\n", *command_name ? " " : "", command_name, rank_words, prefix,
            text);
    cli_output_unlock();
}

int cli_failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
    return CLI_EXIT_FAILED;
}

int cli_misused(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
    return CLI_EXIT_USAGE;
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("note: ", format, arguments);
    va_end(arguments);
}

int cli_library_failed(const char *what, const char *where, int code)
{
    const char *reason = lh_last_error();
    if (!*reason)
        reason = lh_strerror(code);
    /* Most reasons name the address. */
    bool named = strstr(reason, where) != NULL;
    bool misused = code == -LH_EINVAL || code == -LH_ERANGE || code == -LH_EDEVICE;
    int (*fail)(const char *, ...) = misused ? cli_misused : cli_failed;
    return fail("%s: %s%s%s", what, named ? "" : where, named ? "" : ": ", reason);
}

const char *cli_connection_strerror(struct lh_connection *connection, int code)
{
    bool ended = code == -LH_EPATH || code == -LH_EPEER;
    if (!ended || lh_connection_error(connection) != code)
        return lh_strerror(code);
    return lh_last_error();
}

/* ---- characters -------------------------------------------------------------------------------------- */

size_t cli_utf8_bytes(const char *text, size_t bytes)
{
    /* The smallest character of each length. */
    static const uint32_t minimum[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    if (!bytes)
        return 0;
    size_t length = at[0] < 0x80             ? 1
                    : (at[0] & 0xE0) == 0xC0 ? 2
                    : (at[0] & 0xF0) == 0xE0 ? 3
                    : (at[0] & 0xF8) == 0xF0 ? 4
                                             : 0;
    if (length <= 1 || length > bytes)
        return length > bytes ? 0 : length;
    uint32_t character = at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3Fu);
    }
    if (character < minimum[length] || character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
        return 0;
    return length;
}
