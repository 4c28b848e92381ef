/*
 * test_cli_hostile_tree.c - longhaul recv, send, serve and get against peers that speak the stream of trees,
 * and speak it wrongly.
 *
 * The command runs as a process of its own ($LONGHAUL); this test is the peer. Beside the receiver's folder
 * lies another that must stay empty.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_records.h"

#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/file/file_blocks.h"

#define PATIENCE (20 * LH_NS_PER_S)
#define BYTES    65536u

static char folder[] = "/tmp/test_cli_hostile_tree.XXXXXX";
static char receiver_where[64], server_where[64];
static const char *where = receiver_where; /* that connect_peer() connects to */
static pid_t receiver, server;

/* ---- the command as a process ------------------------------------------------------------------------ */

static char *command(void)
{
    char *path = getenv("LONGHAUL");
    return path ? path : (char *)"build/longhaul";
}

/* Starts it in the folder, with that stream of it in a pipe. */
static pid_t start(char *const arguments[], int stream, int *from)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t process = fork();
    if (!process) {
        dup2(ends[1], stream);
        if (chdir(folder))
            _exit(126);
        execv(arguments[0], arguments);
        _exit(127);
    }
    close(ends[1]);
    *from = ends[0];
    return process;
}

static int run(const char *line)
{
    char text[512];
    snprintf(text, sizeof text, "cd %s && %s", folder, line);
    return system(text);
}

/* Of the folder served, for two clients at once. */
static int start_server(void)
{
    char line[128] = "";
    int out;
    char *arguments[] = {command(),        (char *)"serve",    (char *)"--read",
                         (char *)"served", (char *)"--listen", (char *)"[::1]:0",
                         (char *)"--jobs", (char *)"2",        NULL};
    server = start(arguments, STDOUT_FILENO, &out);
    return read(out, line, sizeof line - 1) > 0 && sscanf(line, "listening on %60s", server_where) == 1
               ? 0
               : -1;
}

static int start_receiver(void **state)
{
    char line[128] = "", inbox[64];
    int out;
    char *arguments[] = {command(),
                         (char *)"recv",
                         (char *)"--keep",
                         (char *)"--jobs",
                         (char *)"1",
                         (char *)"--listen",
                         (char *)"[::1]:0",
                         (char *)"--force",
                         (char *)"-o",
                         inbox,
                         NULL};
    (void)state;
    if (!mkdtemp(folder) || run("mkdir -p in got elsewhere/inside tree served/d && echo content "
                                ">served/file && echo content >tree/file && "
                                "ln -s ../elsewhere served/out && ln -s /etc/passwd served/passwd && "
                                "head -c 30000000 /dev/zero | tr '\\0' x >served/d/big"))
        return -1;
    snprintf(inbox, sizeof inbox, "%s/in", folder);
    receiver = start(arguments, STDOUT_FILENO, &out);
    return read(out, line, sizeof line - 1) > 0 && sscanf(line, "listening on %60s", receiver_where) == 1
               ? start_server()
               : -1;
}

static int stop_receiver(void **state)
{
    int status, server_status;
    (void)state;
    kill(receiver, SIGTERM);
    kill(server, SIGTERM);
    waitpid(receiver, &status, 0);
    waitpid(server, &server_status, 0);
    char line[64];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line) || !WIFEXITED(status) || WEXITSTATUS(status) != 143 || !WIFEXITED(server_status) ||
           WEXITSTATUS(server_status) != 143;
}

/* ---- a peer by hand ---------------------------------------------------------------------------------- */

static uint8_t sent[BYTES], received[BYTES];
static size_t used;

static void add(struct cli_tree_record record)
{
    record.attributes.known = true;
    record.attributes.mode = 0644;
    size_t bytes = cli_tree_encode(&record, sent + used, sizeof sent - used);
    assert_int_not_equal(bytes, 0);
    used += bytes;
}

static void add_path(enum cli_tree_kind kind, const char *path, const char *rest, uint64_t size)
{
    add((struct cli_tree_record){.kind = kind,
                                 .path = path,
                                 .path_bytes = strlen(path),
                                 .rest = rest,
                                 .rest_bytes = strlen(rest),
                                 .size_bytes = size});
}

static void add_number(enum cli_tree_kind kind, uint64_t number)
{
    add((struct cli_tree_record){.kind = kind, .number = number});
}

static void add_data(const char *text)
{
    add((struct cli_tree_record){.kind = CLI_TREE_DATA, .rest = text, .rest_bytes = strlen(text)});
}

/* A whole file of that text. */
static void add_file(const char *path, const char *text)
{
    struct cli_tree_record end = {.kind = CLI_TREE_FILE_END};
    cli_digest_of(text, strlen(text), end.digest);
    add_path(CLI_TREE_FILE, path, "", strlen(text));
    add_data(text);
    add(end);
}

static void add_root(void)
{
    used = 0;
    add_number(CLI_TREE_ROOT, CLI_TREE_VERSION);
}

/* What was sent last stays until the connection is left. */
static struct lh_request *request_sent;

static struct lh_connection *connect_peer(void)
{
    struct lh_connection *connection;
    struct lh_attr attr;
    lh_attr_init(&attr);
    int code = lh_connect(where, &attr, 3 * PATIENCE, &connection);
    if (code)
        fail_msg("connecting to %s: %s", where, lh_last_error());
    return connection;
}

static void leave(struct lh_connection *connection)
{
    lh_close(connection);
    lh_request_free(request_sent);
    request_sent = NULL;
}

static void send_all(struct lh_connection *connection)
{
    assert_int_equal(lh_send(connection, sent, used, NULL, &request_sent), 0);
}

/* The next message of the peer; 0: none came. */
static size_t hear(struct lh_connection *connection)
{
    struct lh_request *request;
    struct lh_result result;
    if (lh_recv(connection, received, sizeof received, NULL, &request))
        return 0;
    int code = lh_wait(request, PATIENCE, &result);
    lh_request_free(request);
    return code || result.error ? 0 : (size_t)result.bytes;
}

/* Whether a record of that kind is in the message that was received. */
static bool has(enum cli_tree_kind kind, size_t bytes)
{
    struct cli_tree_record record;
    assert_int_not_equal(bytes, 0);
    for (size_t at = 0; at < bytes;) {
        int64_t length = cli_tree_decode(received + at, bytes - at, &record);
        assert_true(length > 0);
        if (record.kind == kind)
            return true;
        at += (size_t)length;
    }
    return false;
}

/* Sends the records of `sent`, and looks for the verdict: why it ended ("": to its end), and how many entries
 * failed. */
static uint64_t verdict_on_sent(char reason[CLI_TREE_TEXT_MAX + 1])
{
    struct cli_tree_record record = {.kind = CLI_TREE_IDLE};
    struct lh_connection *connection = connect_peer();
    send_all(connection);
    while (record.kind != CLI_TREE_VERDICT) {
        size_t bytes = hear(connection), at = 0;
        if (!bytes)
            fail_msg("no verdict");
        while (at < bytes) {
            int64_t length = cli_tree_decode(received + at, bytes - at, &record);
            assert_true(length > 0);
            at += (size_t)length;
        }
    }
    memcpy(reason, record.rest, record.rest_bytes);
    reason[record.rest_bytes] = 0;
    uint64_t failed = record.number;
    leave(connection);
    assert_int_equal(run("test -z \"$(find elsewhere -mindepth 1 ! -name inside)\""), 0);
    return failed;
}

static void expect_end(const char *about, const char *expected)
{
    char reason[CLI_TREE_TEXT_MAX + 1];
    verdict_on_sent(reason);
    if (!strstr(reason, expected))
        fail_msg("%s: the receiver said \"%s\"", about, reason);
    assert_int_equal(run("rm -rf in/* in/.[!.]*"), 0);
}

/* ---- at longhaul recv -------------------------------------------------------------------------------- */

static void right_streams_go_through(void **state)
{
    char reason[CLI_TREE_TEXT_MAX + 1];
    (void)state;
    add_root();
    add_path(CLI_TREE_FOLDER, "d", "", 0);
    add_file("d/f", "hello");
    add_path(CLI_TREE_HARD_LINK, "h", "d/f", 5);
    add_path(CLI_TREE_FOLDER_END, "d", "", 0);
    add_number(CLI_TREE_END, 0);
    assert_int_equal(verdict_on_sent(reason), 0);
    assert_string_equal(reason, "");
    assert_int_equal(run("test \"$(cat in/d/f in/h)\" = hellohello && rm -r in/*"), 0);
}

static void paths_that_lead_out_end_it(void **state)
{
    static const char *const paths[] = {"..",  "../elsewhere/f", "/tmp/f", "d/../../elsewhere/f", "",
                                        "d//f"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        add_root();
        add_file(paths[i], "hello");
        expect_end(paths[i], "violated the file protocol");
    }
    add_root();
    add((struct cli_tree_record){.kind = CLI_TREE_LISTED, .path = "a\0b", .path_bytes = 3});
    expect_end("a zero in a path", "violated the file protocol");
    used = 0;
    add((struct cli_tree_record){
        .kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .path = "../elsewhere", .path_bytes = 12});
    expect_end("a folder outside", "violated the file protocol");
}

/* The link is made; what lies behind it is refused, one by one. */
static void a_link_out_is_not_followed(void **state)
{
    char reason[CLI_TREE_TEXT_MAX + 1];
    (void)state;
    add_root();
    add_path(CLI_TREE_LINK, "l", "../elsewhere", 0);
    add_file("l/f", "hello");
    add_file("l/inside/f", "hello");
    add_path(CLI_TREE_FOLDER, "l/inside/d", "", 0);
    add_path(CLI_TREE_FOLDER, "l/d", "", 0);
    add_path(CLI_TREE_LINK, "l/l", "x", 0);
    add_file("g", "hello");
    add_path(CLI_TREE_HARD_LINK, "l/h", "g", 5);
    add_path(CLI_TREE_FOLDER_END, "l", "", 0);
    add_number(CLI_TREE_END, 0);
    assert_int_equal(verdict_on_sent(reason), 7);
    assert_string_equal(reason, "");
    assert_int_equal(run("test \"$(cat in/g)\" = hello && test \"$(ls in | wc -l)\" -eq 2 && rm -r in/*"),
                     0);
    add((struct cli_tree_record){.kind = CLI_TREE_IDLE});
    assert_int_equal(run("ln -s ../elsewhere in/l"), 0);
    used = 0;
    add((struct cli_tree_record){
        .kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .path = "l/d", .path_bytes = 3});
    expect_end("a link on the path of the folder", "the folder cannot be opened");
}

static void records_out_of_order_end_it(void **state)
{
    static const enum cli_tree_kind kinds[] = {CLI_TREE_HOLE, CLI_TREE_FILE_END, CLI_TREE_CANCEL,
                                               CLI_TREE_ROOT, CLI_TREE_RESUME};
    (void)state;
    used = 0;
    add_number(CLI_TREE_END, 0);
    expect_end("no root", "violated");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        add_root();
        add_number(kinds[i], 5);
        expect_end("between files", "violated");
    }
    add_root();
    add_path(CLI_TREE_FILE, "f", "", 5);
    add_path(CLI_TREE_FILE, "g", "", 5);
    expect_end("a file in a file", "violated");
    add_root();
    add_path(CLI_TREE_FILE, "f", "", 5);
    add_number(CLI_TREE_END, 0);
    expect_end("the end in a file", "violated");
    add_root();
    add_number(CLI_TREE_END, 0);
    add((struct cli_tree_record){.kind = CLI_TREE_IDLE});
    expect_end("more after the end", "violated");
    used = 0;
    add_number(CLI_TREE_ROOT, CLI_TREE_VERSION + 1);
    expect_end("another version", "version 2 of the file protocol required");
    memset(sent, 0xA5, 1000);
    used = 1000;
    expect_end("noise", "violated");
}

/* Nobody has allowed it. */
static void a_sender_sets_no_attributes(void **state)
{
    static const enum cli_tree_kind kinds[] = {CLI_TREE_XATTR, CLI_TREE_OWNER};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct cli_tree_record record = {
            .kind = kinds[i], .rest = i ? "a:b" : "user.x", .rest_bytes = i ? 3 : 7};
        add_root();
        add_path(CLI_TREE_FILE, "f", "", 5);
        add(record);
        expect_end("an attribute of a file", "violated");
        used = 0;
        add((struct cli_tree_record){.kind = CLI_TREE_ROOT,
                                     .number = CLI_TREE_VERSION,
                                     .flags = i ? CLI_TREE_OWNERS : CLI_TREE_XATTRS});
        add(record);
        expect_end("what is not taken", "are taken here");
    }
}

static void a_sender_deletes_nothing(void **state)
{
    (void)state;
    assert_int_equal(run("mkdir in/d && touch in/d/f"), 0);
    used = 0;
    add((struct cli_tree_record){
        .kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .flags = CLI_TREE_DELETES});
    add_path(CLI_TREE_LIST, "d", "", 0);
    add((struct cli_tree_record){.kind = CLI_TREE_FATES, .rest = "\1", .rest_bytes = 1});
    add_number(CLI_TREE_END, 0);
    char reason[CLI_TREE_TEXT_MAX + 1];
    verdict_on_sent(reason);
    assert_string_equal(reason, "nothing is deleted here (--allow-delete at the receiver)");
    add_root();
    add_path(CLI_TREE_LIST, "d", "", 0);
    verdict_on_sent(reason);
    assert_non_null(strstr(reason, "violated"));
    add_root();
    add((struct cli_tree_record){.kind = CLI_TREE_FATES, .rest = "\1", .rest_bytes = 1});
    verdict_on_sent(reason);
    assert_non_null(strstr(reason, "violated"));
    assert_int_equal(run("test -e in/d/f && rm -r in/d"), 0);
}

/* Where it is allowed: not by a sender that has said, or says at the end, that an entry failed. */
static void nothing_is_deleted_after_a_failure(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        char reason[CLI_TREE_TEXT_MAX + 1], line[128] = "", place[64], words[256];
        int out;
        char *arguments[] = {(char *)"/bin/sh", (char *)"-c", words, NULL};
        snprintf(words, sizeof words, "exec %s recv --allow-delete --listen [::1]:0 -o in", command());
        pid_t allowing = start(arguments, STDOUT_FILENO, &out);
        assert_true(read(out, line, sizeof line - 1) > 0 && sscanf(line, "listening on %60s", place) == 1);
        assert_int_equal(run("mkdir in/d && touch in/d/f"), 0);
        used = 0;
        add((struct cli_tree_record){.kind = CLI_TREE_ROOT, .number = 2, .flags = CLI_TREE_DELETES});
        if (!i)
            add((struct cli_tree_record){.kind = CLI_TREE_FAULT, .path = "x", .path_bytes = 1});
        add_path(CLI_TREE_LIST, "d", "", 0);
        add((struct cli_tree_record){.kind = CLI_TREE_FATES, .rest = "\1", .rest_bytes = 1});
        add_number(CLI_TREE_END, 1);
        where = place;
        verdict_on_sent(reason);
        where = receiver_where;
        assert_string_equal(reason, "the sender violated the file protocol");
        waitpid(allowing, NULL, 0);
        assert_int_equal(run("test -e in/d/f && rm -r in/d"), 0);
    }
}

/* Each of these is a fault of the file; the next one arrives. */
static void wrong_files_are_left_out(void **state)
{
    char reason[CLI_TREE_TEXT_MAX + 1];
    (void)state;
    add_root();
    add_path(CLI_TREE_FILE, "long", "", 3);
    add_data("more than three");
    add_data("and more");
    add((struct cli_tree_record){.kind = CLI_TREE_FILE_END});
    add_path(CLI_TREE_FILE, "short", "", 30);
    add_data("less");
    add((struct cli_tree_record){.kind = CLI_TREE_FILE_END});
    add_path(CLI_TREE_FILE, "hole", "", 30);
    add_number(CLI_TREE_HOLE, UINT64_MAX);
    add((struct cli_tree_record){.kind = CLI_TREE_FILE_END});
    add_path(CLI_TREE_FILE, ".x.longhaul-partial", "", 1);
    add((struct cli_tree_record){.kind = CLI_TREE_CANCEL});
    add_file("right", "hello");
    add_number(CLI_TREE_END, 0);
    assert_int_equal(verdict_on_sent(reason), 4);
    assert_string_equal(reason, "");
    assert_int_equal(run("test \"$(ls -A in)\" = right && test \"$(cat in/right)\" = hello && rm in/right"),
                     0);
    add_root();
    add_path(CLI_TREE_FILE, "huge", "", INT64_MAX);
    expect_end("a file that is larger than the disk", "No space left");
}

static void leaving_in_a_file_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct lh_connection *connection = connect_peer();
        add_root();
        add_path(CLI_TREE_FILE, "f", "", 5);
        if (i)
            add_data("he");
        send_all(connection);
        lh_wait(request_sent, PATIENCE, NULL);
        leave(connection);
    }
    right_streams_go_through(NULL); /* the receiver is done with us when it serves the next one */
    assert_int_equal(run("test -z \"$(ls -A in)\""), 0);
}

/* First messages of other programs, of an older release, and none. */
static void no_beginning_is_refused(void **state)
{
    static const char old_offer[48] = "LHFILE\x01\x01";
    (void)state;
    memset(sent, 0xA5, sizeof sent);
    used = sizeof sent;
    expect_end("much noise", "violated the file protocol");
    used = 0;
    expect_end("an empty message", "violated the file protocol");
    memcpy(sent, old_offer, sizeof old_offer);
    used = sizeof old_offer;
    expect_end("an offer of an older release", "version 2 of the file protocol required");
    struct lh_connection *connection = connect_peer();
    if (!has(CLI_TREE_VERDICT, hear(connection)))
        fail_msg("silence: no verdict");
    leave(connection);
    used = 0;
    add_number(CLI_TREE_GET, CLI_TREE_VERSION);
    add_path(CLI_TREE_WANT, "f", "", 0);
    expect_end("who asks a receiver", "nothing is served here");
}

static void names_with_a_dot_are_left_out(void **state)
{
    static const char *const names[] = {".bashrc", "...", "..a", ".ssh/config"};
    char reason[CLI_TREE_TEXT_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        add_root();
        add_file(names[i], "hello");
        add_path(CLI_TREE_LISTED, names[i], "", 5);
        add_path(CLI_TREE_FOLDER, names[i], "", 0);
        add_path(CLI_TREE_LINK, names[i], "/etc", 0);
        add_number(CLI_TREE_END, 0);
        assert_int_equal(verdict_on_sent(reason), 4);
        assert_int_equal(run("test -z \"$(ls -A in)\""), 0);
    }
    used = 0;
    add((struct cli_tree_record){
        .kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .path = ".config", .path_bytes = 7});
    expect_end("a folder with a dot", "begins with a dot");
}

/* Permissions and times that no sender has, in a record that is right otherwise. */
static void hostile_attributes_end_it(void **state)
{
    static const struct {
        int64_t seconds;
        uint32_t nanoseconds, mode;
    } wrong[] = {
        {0, 0, 0x80000000 | 04755},  {0, 0, 0x80000000 | 02755}, {0, 0, 0x80000000 | 01777}, {0, 0, 0644},
        {0, 1000000000, 0x80000000}, {INT64_MAX, 0, 0x80000000}, {INT64_MIN, 0, 0x80000000}, {0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        add_root();
        size_t at = used + 16; /* behind the header and the size */
        add_file("f", "hello");
        cli_put_u64(sent + at, (uint64_t)wrong[i].seconds);
        cli_put_u32(sent + at + 8, wrong[i].nanoseconds);
        cli_put_u32(sent + at + 12, wrong[i].mode);
        expect_end("attributes", "violated the file protocol");
    }
}

/* What a file has on disk is little, however much it promises. */
static void a_promise_holds_little(void **state)
{
    (void)state;
    struct lh_connection *connection = connect_peer();
    add_root();
    add_path(CLI_TREE_FILE, "f", "", (uint64_t)512 << 20);
    add_data("hello");
    send_all(connection);
    assert_int_equal(
        run("for i in $(seq 1000); do test -s in/.f.longhaul-partial && break; sleep 0.02; done;"
            "test \"$(du -sk in | cut -f1)\" -lt 262144"),
        0);
    leave(connection);
    right_streams_go_through(NULL);
    assert_int_equal(run("test -z \"$(ls -A in)\""), 0);
}

/* More entries that cannot be sent than the end counts; a reason with control characters. */
static void faults_of_the_sender_are_counted(void **state)
{
    char reason[CLI_TREE_TEXT_MAX + 1];
    (void)state;
    for (uint64_t counted = 0; counted < 3; counted++) {
        add_root();
        add((struct cli_tree_record){
            .kind = CLI_TREE_FAULT, .path = "\033x", .path_bytes = 2, .rest = "\033[2J", .rest_bytes = 4});
        add_number(CLI_TREE_END, counted);
        assert_int_equal(verdict_on_sent(reason), 0);
        assert_string_equal(reason, counted ? "" : "the sender violated the file protocol");
    }
    add_root();
    add((struct cli_tree_record){.kind = CLI_TREE_VERDICT, .rest = "no", .rest_bytes = 2});
    expect_end("a verdict of the sender's", "violated the file protocol");
}

/* ---- at longhaul send -------------------------------------------------------------------------------- */

/* Starts longhaul send towards a listener of ours, and takes what it sends until it waits for a decision. */
static struct lh_connection *take_sender(pid_t *sender, int stream, int *from)
{
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct lh_attr attr;
    char port[32];
    char *arguments[] = {command(), (char *)"send", (char *)"tree", port, NULL};
    lh_attr_init(&attr);
    assert_int_equal(lh_listen("[::1]:0", &attr, &listener), 0);
    snprintf(port, sizeof port, "[::1]:%u", lh_listener_port(listener));
    *sender = start(arguments, stream, from);
    assert_int_equal(lh_accept(listener, PATIENCE, &connection), 0);
    lh_listener_close(listener);
    while (!has(CLI_TREE_LISTED, hear(connection)))
        continue;
    return connection;
}

static char said[2048]; /* by the last process that ended */

/* It ends with that status, and what it says is clean. */
static void expect_status(pid_t sender, int errors, int expected, const char *about)
{
    size_t bytes = 0;
    ssize_t got;
    int status;
    while ((got = read(errors, said + bytes, sizeof said - 1 - bytes)) > 0)
        bytes += (size_t)got;
    said[bytes] = 0;
    close(errors);
    assert_int_equal(waitpid(sender, &status, 0), sender);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        fail_msg("%s: longhaul send ended with status %x: %s", about, (unsigned)status, said);
    if (strchr(said, '\033'))
        fail_msg("%s: a control character in %s", about, said);
}

/* Sends the answers of `sent` to a sender that waits for one decision. */
static void expect_after_answers(int expected, const char *about)
{
    pid_t sender;
    int errors;
    struct lh_connection *connection = take_sender(&sender, STDERR_FILENO, &errors);
    send_all(connection);
    lh_wait(request_sent, PATIENCE, NULL);
    if (expected == 3)
        leave(connection);
    expect_status(sender, errors, expected, about);
    if (expected != 3)
        leave(connection);
}

static void wrong_answers_end_the_sender(void **state)
{
    (void)state;
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .rest = "\1\1\1", .rest_bytes = 3});
    expect_after_answers(1, "three decisions on one file");
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .rest = "\2", .rest_bytes = 1});
    expect_after_answers(1, "an unknown decision");
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_RESUME, .number = 7});
    expect_after_answers(1, "an offset in a block");
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_VERDICT});
    expect_after_answers(1, "a good verdict before the end");
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_VERDICT, .rest = "\033[2Jno", .rest_bytes = 6});
    expect_after_answers(1, "a bad verdict");
    used = 0;
    add((struct cli_tree_record){
        .kind = CLI_TREE_FAULT, .path = "\033x", .path_bytes = 2, .rest = "\033[2J", .rest_bytes = 4});
    add_number(CLI_TREE_END, 0);
    expect_after_answers(1, "a record of senders");
    used = 0;
    add((struct cli_tree_record){
        .kind = CLI_TREE_CHANGES, .rest = "seedseedhashhashhashhash", .rest_bytes = 24});
    expect_after_answers(1, "hashes of a file that is too small for them");
    used = 0;
    add_path(CLI_TREE_HELD, "file", "", 0);
    expect_after_answers(1, "an entry that it has, unasked");
    used = 0;
    add_number(CLI_TREE_HELD_END, 0);
    expect_after_answers(1, "the end of a list, unasked");
    memset(sent, 0x5A, 100);
    used = 100;
    expect_after_answers(1, "noise");
}

/* It skips the file, and says at the end that so many entries failed. */
static void expect_after_verdict(uint64_t failed, int expected, const char *about)
{
    pid_t sender;
    int errors;
    struct lh_connection *connection = take_sender(&sender, STDERR_FILENO, &errors);
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .rest = "", .rest_bytes = 1});
    send_all(connection);
    while (!has(CLI_TREE_END, hear(connection)))
        continue;
    lh_request_free(request_sent);
    used = 0;
    add_number(CLI_TREE_VERDICT, failed);
    send_all(connection);
    lh_wait(request_sent, PATIENCE, NULL);
    expect_status(sender, errors, expected, about);
    leave(connection);
}

static void a_verdict_counts_what_was_reported(void **state)
{
    (void)state;
    expect_after_verdict(0, 0, "nothing failed");
    expect_after_verdict(1, 1, "an entry failed, and no word on it");
}

/* An offset beyond the file is the start of another: it is sent from its beginning. */
static void a_lost_receiver_is_3(void **state)
{
    (void)state;
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_RESUME, .number = CLI_BLOCK_BYTES});
    expect_after_answers(3, "closed in the middle");
}

/* It has sent all, and learns nothing of what became of it. */
static void what_is_not_confirmed_is_not_claimed(void **state)
{
    pid_t sender;
    int output;
    struct lh_connection *connection = take_sender(&sender, STDOUT_FILENO, &output);
    (void)state;
    used = 0;
    add((struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .rest = "\1", .rest_bytes = 1});
    send_all(connection);
    while (!has(CLI_TREE_END, hear(connection)))
        continue;
    leave(connection);
    expect_status(sender, output, 3, "no verdict");
    if (strncmp(said, "not confirmed: sent 1 file", 26) != 0)
        fail_msg("it claims: %s", said);
}

/* ---- at longhaul serve ----------------------------------------------------------------------------- */

static void add_get(void)
{
    used = 0;
    add_number(CLI_TREE_GET, CLI_TREE_VERSION);
}

static void add_want(const char *path, size_t bytes)
{
    add((struct cli_tree_record){.kind = CLI_TREE_WANT, .path = path, .path_bytes = bytes});
}

/* Until there is a record of that kind: it is left in *record. What has content comes on the way, never. */
static void await_kind(struct lh_connection *connection, enum cli_tree_kind kind,
                       struct cli_tree_record *record)
{
    for (;;) {
        size_t bytes = hear(connection);
        if (!bytes)
            fail_msg("no record of kind %d", (int)kind);
        for (size_t at = 0; at < bytes;) {
            int64_t length = cli_tree_decode(received + at, bytes - at, record);
            assert_true(length > 0);
            if (record->kind == kind)
                return;
            assert_int_not_equal(record->kind, CLI_TREE_DATA);
            at += (size_t)length;
        }
    }
}

/* What was sent to the server is answered by a record of that kind, with that reason. */
static void expect_from_server(enum cli_tree_kind kind, const char *about, const char *expected)
{
    char text[CLI_TREE_TEXT_MAX + 1];
    struct cli_tree_record record;
    where = server_where;
    struct lh_connection *connection = connect_peer();
    where = receiver_where;
    send_all(connection);
    await_kind(connection, kind, &record);
    memcpy(text, record.rest, record.rest_bytes);
    text[record.rest_bytes] = 0;
    if (!strstr(text, expected))
        fail_msg("%s: the server said \"%s\"", about, text);
    leave(connection);
}

static void what_is_asked_wrongly_is_refused(void **state)
{
    static const char *const paths[] = {"..", "../elsewhere", "/etc/passwd", "d/../../x", "d//big",
                                        ".",  "d/."};
    char name[257];
    (void)state;
    memset(name, 'n', sizeof name);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        add_get();
        add_want(paths[i], strlen(paths[i]));
        expect_from_server(CLI_TREE_VERDICT, paths[i], "violated the file protocol");
    }
    add_get();
    add_want("a\0b", 3);
    expect_from_server(CLI_TREE_VERDICT, "a zero in a path", "violated the file protocol");
    add_get();
    add_want(name, 256);
    expect_from_server(CLI_TREE_VERDICT, "256 bytes", "violated the file protocol");
    add_get();
    add_want(name, 255);
    expect_from_server(CLI_TREE_FAULT, "255 bytes", "No such file");
    add_get();
    expect_from_server(CLI_TREE_VERDICT, "nothing asked for", "violated the file protocol");
    add_get();
    add_want("file", 4);
    add_root();
    expect_from_server(CLI_TREE_VERDICT, "who sends", "nothing is taken here");
    add_get();
    add_want("file", 4);
    add_number(CLI_TREE_END, 0);
    expect_from_server(CLI_TREE_VERDICT, "another record behind it", "violated the file protocol");
    add_get();
    for (unsigned i = 0; i < 257; i++)
        add_want("file", 4);
    expect_from_server(CLI_TREE_VERDICT, "too much", "more than 256 paths");
}

/* Links are sent as such; what they lead to is not. */
static void links_that_lead_out_are_not_followed(void **state)
{
    static const char *const paths[] = {"out/inside", "passwd/x", "file/x", "d/big/x"};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        add_get();
        add_want(paths[i], strlen(paths[i]));
        expect_from_server(CLI_TREE_FAULT, paths[i], "a link or a file is in place of a folder");
    }
    add_get();
    add_want("passwd", 6);
    expect_from_server(CLI_TREE_LINK, "a link", "/etc/passwd");
}

/* Clients that ask for the large file, and then: do nothing, leave, answer wrongly. */
static void clients_that_stall_hold_no_other(void **state)
{
    struct cli_tree_record record;
    (void)state;
    add_get();
    add_want("d", 1);
    where = server_where;
    struct lh_connection *stalled = connect_peer();
    send_all(stalled);
    await_kind(stalled, CLI_TREE_LISTED, &record);
    struct lh_request *of_stalled = request_sent;
    static uint8_t kept[BYTES];
    size_t kept_bytes = used;
    memcpy(kept, sent, kept_bytes);
    for (unsigned i = 0; i < 4; i++) {
        struct lh_connection *connection = connect_peer();
        request_sent = NULL;
        memcpy(sent, kept, kept_bytes);
        used = kept_bytes;
        send_all(connection);
        await_kind(connection, CLI_TREE_LISTED, &record);
        used = 0;
        lh_request_free(request_sent);
        if (i & 1)
            add((struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .rest = "\7", .rest_bytes = 1});
        else
            add((struct cli_tree_record){.kind = CLI_TREE_DECISIONS, .rest = "\1", .rest_bytes = 1});
        send_all(connection);
        lh_wait(request_sent, PATIENCE, NULL);
        leave(connection);
    }
    where = receiver_where;
    request_sent = of_stalled;
    leave(stalled);
}

/* ---- at longhaul get ------------------------------------------------------------------------------- */

/* Starts longhaul get of the paths dir and file, takes what it asks for, and answers by `sent`. It ends with
 * that status, and what it has is what `check` lets pass. */
static void expect_at_getter(int expected, const char *about, const char *check)
{
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct lh_attr attr;
    struct cli_tree_record verdict;
    char first[48], second[48];
    pid_t getter;
    int errors;
    char *arguments[] = {command(), (char *)"get", first, second, (char *)"got/", NULL};
    lh_attr_init(&attr);
    assert_int_equal(lh_listen("[::1]:0", &attr, &listener), 0);
    snprintf(first, sizeof first, "[::1]:%u:dir", lh_listener_port(listener));
    snprintf(second, sizeof second, "[::1]:%u:x/file", lh_listener_port(listener));
    getter = start(arguments, STDERR_FILENO, &errors);
    assert_int_equal(lh_accept(listener, PATIENCE, &connection), 0);
    lh_listener_close(listener);
    assert_true(has(CLI_TREE_WANT, hear(connection)));
    send_all(connection);
    await_kind(connection, CLI_TREE_VERDICT, &verdict);
    expect_status(getter, errors, expected, about);
    leave(connection);
    if (run(check) || run("test -z \"$(find elsewhere -mindepth 1 ! -name inside)\""))
        fail_msg("%s: it has other files", about);
    assert_int_equal(run("rm -rf got && mkdir got"), 0);
}

static void names_that_nobody_asked_for_are_left_out(void **state)
{
    static const char *const names[] = {"other", ".profile", "x", "x/file", "dir2/f", "filex", ".ssh/keys"};
    (void)state;
    add_root();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        add_path(CLI_TREE_LISTED, names[i], "", 5);
        add_file(names[i], "hello");
        add_path(CLI_TREE_FOLDER, names[i], "", 0);
        add_path(CLI_TREE_LINK, names[i], "/etc", 0);
    }
    add_file("file", "hello");
    add_path(CLI_TREE_HARD_LINK, "other", "file", 5);
    add_path(CLI_TREE_HARD_LINK, "dir", "other", 5);
    add_number(CLI_TREE_END, 0);
    expect_at_getter(1, "other names", "test \"$(ls -A got)\" = file");
    add_root();
    for (unsigned i = 0; i < 1500; i++)
        add_path(CLI_TREE_LISTED, "y", "", 5);
    add_number(CLI_TREE_END, 0);
    expect_at_getter(1, "a long list", "test -z \"$(ls -A got)\"");
}

static void a_server_leads_nobody_out(void **state)
{
    (void)state;
    add_root();
    add_path(CLI_TREE_LINK, "dir", "../elsewhere", 0);
    add_file("dir/f", "hello");
    add_file("dir/inside/f", "hello");
    add_path(CLI_TREE_FOLDER, "dir/d", "", 0);
    add_number(CLI_TREE_END, 0);
    expect_at_getter(1, "a link in place of a folder", "test \"$(ls -A got)\" = dir && test -L got/dir");
    add_root();
    add_file("dir/../../elsewhere/f", "hello");
    expect_at_getter(1, "a path that leads out", "test -z \"$(ls -A got)\"");
}

static void wrong_servers_end_the_getter(void **state)
{
    static const struct cli_tree_record wrong[] = {
        {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .path = "elsewhere", .path_bytes = 9},
        {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .flags = CLI_TREE_PIPE},
        {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .flags = CLI_TREE_DRY_RUN},
        {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION, .flags = CLI_TREE_DELETES},
        {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION + 1},
        {.kind = CLI_TREE_GET, .number = CLI_TREE_VERSION},
        {.kind = CLI_TREE_VERDICT},
        {.kind = CLI_TREE_VERDICT, .rest = "\033[2Jno", .rest_bytes = 6},
        {.kind = CLI_TREE_END},
        {.kind = CLI_TREE_FAULT, .path = "x", .path_bytes = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        used = 0;
        add(wrong[i]);
        expect_at_getter(1, "the first record", "test -z \"$(ls -A got)\"");
    }
    memset(sent, 0x3C, 1000);
    used = 1000;
    expect_at_getter(1, "noise", "test -z \"$(ls -A got)\"");
    add_root();
    add((struct cli_tree_record){.kind = CLI_TREE_VERDICT, .rest = "no", .rest_bytes = 2});
    expect_at_getter(1, "a verdict behind the root", "test -z \"$(ls -A got)\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_streams_go_through),
        cmocka_unit_test(paths_that_lead_out_end_it),
        cmocka_unit_test(no_beginning_is_refused),
        cmocka_unit_test(names_with_a_dot_are_left_out),
        cmocka_unit_test(hostile_attributes_end_it),
        cmocka_unit_test(a_promise_holds_little),
        cmocka_unit_test(faults_of_the_sender_are_counted),
        cmocka_unit_test(a_link_out_is_not_followed),
        cmocka_unit_test(records_out_of_order_end_it),
        cmocka_unit_test(a_sender_sets_no_attributes),
        cmocka_unit_test(a_sender_deletes_nothing),
        cmocka_unit_test(nothing_is_deleted_after_a_failure),
        cmocka_unit_test(wrong_files_are_left_out),
        cmocka_unit_test(leaving_in_a_file_leaves_nothing),
        cmocka_unit_test(right_streams_go_through),
        cmocka_unit_test(wrong_answers_end_the_sender),
        cmocka_unit_test(a_lost_receiver_is_3),
        cmocka_unit_test(what_is_not_confirmed_is_not_claimed),
        cmocka_unit_test(a_verdict_counts_what_was_reported),
        cmocka_unit_test(what_is_asked_wrongly_is_refused),
        cmocka_unit_test(links_that_lead_out_are_not_followed),
        cmocka_unit_test(clients_that_stall_hold_no_other),
        cmocka_unit_test(names_that_nobody_asked_for_are_left_out),
        cmocka_unit_test(a_server_leads_nobody_out),
        cmocka_unit_test(wrong_servers_end_the_getter),
    };
    return cmocka_run_group_tests(tests, start_receiver, stop_receiver);
}
