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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/types.h>
#include <longhaul/units.h>

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

/* ---- progress -------------------------------------------------------------------------------------- */

/* ---- progress -------------------------------------------------------------------------------------- */

#define DRAW_EVERY_NS (100 * LH_NS_PER_MS)
/* The rate is that of about the last two seconds. */
#define SAMPLE_EVERY_NS (200 * LH_NS_PER_MS)
#define SAMPLE_WEIGHT   0.1
#define BAR_COLUMNS_MIN 8
/* Of the name, which gets half of what the numbers leave. */
#define LABEL_COLUMNS_MAX 48
#define LABEL_COLUMNS_MIN 12
#define LABEL_MAX         (4 * LABEL_COLUMNS_MAX + 1)
/* Columns right of the bar. */
#define RIGHT_COLUMNS 52

static void sample(struct cli_progress *progress, uint64_t done_bytes, lh_time now)
{
    lh_time elapsed = now - progress->sampled_ns;
    if (elapsed < SAMPLE_EVERY_NS || done_bytes < progress->sampled_bytes)
        return;
    double rate = (double)(done_bytes - progress->sampled_bytes) / (double)elapsed;
    progress->bytes_per_ns +=
        progress->bytes_per_ns > 0 ? SAMPLE_WEIGHT * (rate - progress->bytes_per_ns) : rate;
    progress->sampled_ns = now;
    progress->sampled_bytes = done_bytes;
}

void cli_progress_left(double seconds, char *out, size_t size)
{
    unsigned long left = seconds < 1e8 ? (unsigned long)(seconds + 0.5) : 99999999;
    if (left >= 3600)
        snprintf(out, size, "%lu:%02lu:%02lu left", left / 3600, left / 60 % 60, left % 60);
    else
        snprintf(out, size, "%lu:%02lu left", left / 60, left % 60);
}

void cli_progress_bar(double share, unsigned columns, char out[CLI_BAR_MAX])
{
    unsigned filled = (unsigned)(share * columns);
    memset(out, ' ', columns + 2);
    out[0] = '[';
    memset(out + 1, '=', filled);
    if (filled < columns)
        out[1 + filled] = '>';
    out[columns + 1] = ']';
    out[columns + 2] = 0;
}

/* After that many characters; a byte that is not UTF-8 is one. */
static const char *skip_characters(const char *text, size_t characters)
{
    for (; *text && characters; characters--) {
        size_t bytes = cli_utf8_bytes(text, strlen(text));
        text += bytes ? bytes : 1;
    }
    return text;
}

static size_t count_characters(const char *text)
{
    size_t count = 0;
    for (; *text; count++)
        text = skip_characters(text, 1);
    return count;
}

/* Just that many columns: blanks follow a short label, a long one keeps its head and its tail, which gives
 * files of a series apart. */
static void fit_label(const char *label, size_t columns, char out[LABEL_MAX])
{
    static const char gap[] = "...";
    size_t characters = count_characters(label), shown = columns - strlen(gap), head = (shown + 1) / 2;
    if (characters <= columns)
        snprintf(out, LABEL_MAX, "%s%*s", label, (int)(columns - characters), "");
    else
        snprintf(out, LABEL_MAX, "%.*s%s%s", (int)(skip_characters(label, head) - label), label, gap,
                 skip_characters(label, characters - (shown - head)));
}

/* The line without colours into out[size], less than columns wide; of a label that does not fit, its head and
 * its tail. */
static void cli_progress_line(const struct cli_progress *progress, uint64_t done_bytes, unsigned columns,
                              char *out, size_t size)
{
    char done[LH_FORMAT_MAX], total[LH_FORMAT_MAX], rate[LH_FORMAT_MAX] = "", left[LH_FORMAT_MAX] = "";
    char right[5 * LH_FORMAT_MAX], bar[CLI_BAR_MAX] = "", name[LABEL_MAX];
    double share = progress->total_bytes ? (double)done_bytes / (double)progress->total_bytes : 1;
    if (progress->bytes_per_ns > 0) {
        lh_format_rate(progress->bytes_per_ns * 8e9, rate, sizeof rate);
        double bytes_left = (double)(progress->total_bytes - done_bytes);
        cli_progress_left(bytes_left / progress->bytes_per_ns / 1e9, left, sizeof left);
    }
    lh_format_size(done_bytes, done, sizeof done);
    lh_format_size(progress->total_bytes, total, sizeof total);
    /* Fixed widths: a line that jumps cannot be read. */
    snprintf(right, sizeof right, "%3d %%  %7s of %-7s  %10s  %s", (int)(share * 100), done, total, rate,
             left);
    unsigned room = columns > RIGHT_COLUMNS ? columns - RIGHT_COLUMNS : 0;
    unsigned label = room / 2 < LABEL_COLUMNS_MAX ? room / 2 : LABEL_COLUMNS_MAX;
    label = label > LABEL_COLUMNS_MIN ? label : LABEL_COLUMNS_MIN;
    room -= room > label ? label : room;
    /* Two blanks, two brackets, two blanks. */
    if (room >= BAR_COLUMNS_MIN + 6)
        cli_progress_bar(share, room - 6 < CLI_BAR_COLUMNS_MAX ? room - 6 : CLI_BAR_COLUMNS_MAX, bar);
    fit_label(progress->label, label, name);
    snprintf(out, size, "%s  %s  %s", name, bar, right);
    out[skip_characters(out, columns ? columns - 1 : 0) - out] = 0;
}

/* ---- on the terminal --------------------------------------------------------------------------------- */

/* Those that are shown, under the lock of the output. */
static struct cli_progress *first_shown;
static lh_time drawn_ns;

static void draw(void)
{
    char line[512];
    unsigned columns = cli_terminal_columns(STDERR_FILENO), rows = cli_terminal_rows(STDERR_FILENO),
             number = 0;
    for (const struct cli_progress *each = first_shown; each && number < rows; each = each->next) {
        cli_progress_line(each, each->done_bytes, columns, line, sizeof line);
        cli_output_bar(number++, line);
    }
}

void cli_progress_start(struct cli_progress *progress, const char *label, uint64_t total_bytes,
                        uint64_t done_bytes)
{
    *progress = (struct cli_progress){
        .label = label,
        .total_bytes = total_bytes,
        .shown = isatty(STDERR_FILENO) != 0,
        .sampled_ns = cli_now(),
        .sampled_bytes = done_bytes,
        .done_bytes = done_bytes,
    };
    if (!progress->shown)
        return;
    cli_output_lock();
    struct cli_progress **end = &first_shown;
    while (*end) /* at most as many as there are transfers */
        end = &(*end)->next;
    *end = progress;
    cli_output_unlock();
}

void cli_progress_show(struct cli_progress *progress, uint64_t done_bytes)
{
    lh_time now = cli_now();
    if (!progress->shown)
        return;
    cli_output_lock();
    progress->done_bytes = done_bytes;
    sample(progress, done_bytes, now);
    if (now - drawn_ns >= DRAW_EVERY_NS) {
        drawn_ns = now;
        draw();
    }
    cli_output_unlock();
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (!progress->shown)
        return;
    cli_output_lock();
    cli_output_erase_bars();
    struct cli_progress **at = &first_shown;
    while (*at != progress)
        at = &(*at)->next;
    *at = progress->next;
    progress->shown = false;
    cli_output_unlock();
}

/* ---- table ----------------------------------------------------------------------------------------- */

#define GAP 2

/* Of a title, and more than a cell. */
#define TITLE_MAX 128

static unsigned width_of(const struct cli_column *column)
{
    char shown[TITLE_MAX];
    unsigned title = cli_text_columns(cli_text_shown(column->title, shown, sizeof shown));
    return title > column->width ? title : column->width;
}

/* No blanks at the end of a line: that spoils copies of it. */
static void print_cell(const struct cli_table *table, const struct cli_column *column, const char *text,
                       enum cli_colour colour)
{
    char shown[TITLE_MAX];
    text = cli_text_shown(text, shown, sizeof shown);
    unsigned columns = cli_text_columns(text), width = width_of(column);
    int pad = width > columns ? (int)(width - columns) : 0;
    bool coloured = table->colours && colour != CLI_PLAIN;
    int before = (column == table->columns ? 0 : GAP) + (column->left ? 0 : pad);
    fprintf(table->out, "%*s%s%s%s", before, "", cli_colour(colour, coloured), text,
            cli_colour(CLI_PLAIN, coloured));
    if (column->left && column[1].title)
        fprintf(table->out, "%*s", pad, "");
}

void cli_table_titles(const struct cli_table *table)
{
    fputs(table->indent, table->out);
    for (const struct cli_column *column = table->columns; column->title; column++)
        print_cell(table, column, column->title, CLI_BOLD);
    fputc('\n', table->out);
    cli_output_flush();
}

static unsigned cli_table_width(const struct cli_table *table)
{
    unsigned width = 0;
    for (const struct cli_column *column = table->columns; column->title; column++)
        width += width_of(column) + (column == table->columns ? 0 : GAP);
    return width;
}

void cli_table_rule(const struct cli_table *table)
{
    const char *rule = cli_terminal_utf8() ? "─" : "-";
    fprintf(table->out, "%s%s", table->indent, cli_colour(CLI_DIM, table->colours));
    for (unsigned i = cli_table_width(table); i; i--)
        fputs(rule, table->out);
    fprintf(table->out, "%s\n", cli_colour(CLI_PLAIN, table->colours));
    cli_output_flush();
}

void cli_table_row(const struct cli_table *table, const struct cli_cell *cells)
{
    fputs(table->indent, table->out);
    for (unsigned i = 0; table->columns[i].title; i++)
        print_cell(table, &table->columns[i], cells[i].text, cells[i].colour);
    fputc('\n', table->out);
    cli_output_flush();
}
