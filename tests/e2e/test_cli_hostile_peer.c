/*
 * test_cli_hostile_peer.c - longhaul recv and longhaul send against peers that speak their protocol, and
 * speak it wrongly.
 *
 * The command runs as a process of its own ($LONGHAUL); this test is the peer. After everything that it
 * does, nothing must stand in the receiver's folder, and a right transfer must still go through.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/file_blocks.c"
#include "cli/file/file_messages.h"

#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#define PATIENCE (20 * LH_NS_PER_S)
#define BLOCK    CLI_BLOCK_BYTES

static char folder[] = "/tmp/test_cli_hostile.XXXXXX";
static char inbox[64], where[64], source_path[64];
static pid_t receiver;
static uint8_t *data;

/* ---- the command as a process ------------------------------------------------------------------------ */

/* Starts it with stdout in a pipe, and stderr too when err is not NULL. */
static pid_t start(char *const arguments[], int *out, int *err)
{
    int to_us[2], errors[2];
    assert_int_equal(pipe(to_us), 0);
    assert_int_equal(pipe(errors), 0);
    pid_t process = fork();
    if (!process) {
        dup2(to_us[1], STDOUT_FILENO);
        if (err)
            dup2(errors[1], STDERR_FILENO);
        execv(arguments[0], arguments);
        _exit(127);
    }
    close(to_us[1]);
    close(errors[1]);
    *out = to_us[0];
    if (err)
        *err = errors[0];
    else
        close(errors[0]);
    return process;
}

static char *command(void)
{
    char *path = getenv("LONGHAUL");
    return path ? path : (char *)"build/longhaul";
}

static int start_receiver(void **state)
{
    char line[128] = "";
    int out;
    /* One job: who left is forgotten before the next is served. */
    char *arguments[] = {command(),
                         (char *)"recv",
                         (char *)"--keep",
                         (char *)"--jobs",
                         (char *)"1",
                         (char *)"--listen",
                         (char *)"[::1]:0",
                         (char *)"-o",
                         inbox,
                         NULL};
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(inbox, sizeof inbox, "%s/in", folder);
    snprintf(source_path, sizeof source_path, "%s/source", folder);
    data = malloc(3 * BLOCK);
    if (!data || mkdir(inbox, 0755))
        return -1;
    for (size_t i = 0; i < 3 * BLOCK; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 11));
    receiver = start(arguments, &out, NULL);
    if (read(out, line, sizeof line - 1) <= 0 || sscanf(line, "listening on %60s", where) != 1)
        return -1;
    return 0;
}

static int stop_receiver(void **state)
{
    int status;
    char clean_up[128];
    (void)state;
    kill(receiver, SIGTERM);
    waitpid(receiver, &status, 0);
    free(data);
    snprintf(clean_up, sizeof clean_up, "rm -rf %s", folder);
    return system(clean_up) || !WIFEXITED(status) || WEXITSTATUS(status) != 143;
}

static unsigned files_in_inbox(void)
{
    unsigned count = 0;
    DIR *open_folder = opendir(inbox);
    assert_non_null(open_folder);
    for (struct dirent *entry = readdir(open_folder); entry; entry = readdir(open_folder))
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(open_folder);
    return count;
}

/* ---- a peer by hand ---------------------------------------------------------------------------------- */

static struct lh_connection *connect_peer(void)
{
    struct lh_connection *connection;
    struct lh_attr attr;
    lh_attr_init(&attr);
    /* The receiver serves one after the other: the one before us may not have been given up yet. */
    int code = lh_connect(where, &attr, 3 * PATIENCE, &connection);
    if (code)
        fail_msg("connecting to %s: %s", where, lh_last_error());
    return connection;
}

/* What was said, until the connection is left. */
#define SAID_MAX 256
static struct {
    struct lh_request *request;
    uint8_t *bytes; /* to be freed with it, or NULL */
} utterances[SAID_MAX];
static size_t announced_count;

static void say_and_keep(struct lh_connection *connection, const void *bytes, size_t length, uint8_t *own)
{
    assert_true(announced_count < SAID_MAX);
    utterances[announced_count].bytes = own;
    utterances[announced_count].request = NULL;
    lh_send(connection, bytes, length, NULL, &utterances[announced_count++].request);
}

/* Sends, without looking what becomes of it. */
static void say(struct lh_connection *connection, const void *bytes, size_t length)
{
    say_and_keep(connection, bytes, length, NULL);
}

/* Closes, and then gives back what was said: until then it belongs to the library. */
static void leave(struct lh_connection *connection)
{
    lh_close(connection);
    for (; announced_count > 0; announced_count--) {
        lh_request_free(utterances[announced_count - 1].request);
        free(utterances[announced_count - 1].bytes);
    }
}

static void tell(struct lh_connection *connection, struct cli_file_message message)
{
    uint8_t *bytes = malloc(CLI_FILE_MESSAGE_MAX); /* as long as its request */
    assert_non_null(bytes);
    say_and_keep(connection, bytes, cli_file_encode(&message, bytes), bytes);
}

/* The next message from the other side; false: none came, or none that can be read. */
static bool hear(struct lh_connection *connection, struct cli_file_message *message)
{
    static uint8_t bytes[CLI_FILE_MESSAGE_MAX];
    struct lh_request *request;
    struct lh_result result;
    if (lh_recv(connection, bytes, sizeof bytes, NULL, &request))
        return false;
    int code = lh_wait(request, PATIENCE, &result);
    bool heard = !code && !result.error && !cli_file_decode(bytes, result.bytes, message);
    lh_request_free(request);
    return heard;
}

static struct cli_file_message offer_of(const char *name, uint64_t size)
{
    struct cli_file_message offer = {.kind = CLI_FILE_OFFER, .size_bytes = size};
    snprintf(offer.text, sizeof offer.text, "%s", name);
    return offer;
}

static struct cli_file_message digest_of(const void *bytes, size_t length)
{
    struct cli_file_message digest = {.kind = CLI_FILE_DIGEST, .size_bytes = length};
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, length));
    memcpy(digest.digest, canonical.digest, CLI_DIGEST_BYTES);
    return digest;
}

/* What the receiver must say to it: no. */
static void expect_no(struct lh_connection *connection, const char *about)
{
    struct cli_file_message message;
    if (!hear(connection, &message))
        fail_msg("%s: no answer", about);
    if (!(message.flags & CLI_FILE_NO))
        fail_msg("%s: the receiver said yes", about);
    leave(connection);
    assert_int_equal(files_in_inbox(), 0);
}

/* A connection whose offer was taken and whose START is told. */
static struct lh_connection *started(uint64_t size, uint64_t offset)
{
    struct cli_file_message answer;
    struct lh_connection *connection = connect_peer();
    tell(connection, offer_of("f", size));
    assert_true(hear(connection, &answer));
    assert_int_equal(answer.kind, CLI_FILE_ANSWER);
    assert_int_equal(answer.flags, 0);
    tell(connection, (struct cli_file_message){.kind = CLI_FILE_START, .offset_bytes = offset});
    return connection;
}

/* ---- at longhaul recv -------------------------------------------------------------------------------- */

/* As an older sender's, which announces neither permissions nor a time. */
static void right_transfers_go_through(void **state)
{
    struct cli_file_message verdict;
    struct stat status;
    mode_t mask = umask(0);
    umask(mask);
    char path[80];
    struct lh_connection *connection = started(BLOCK + 5, 0);
    (void)state;
    say(connection, data, BLOCK);
    say(connection, data + BLOCK, 5);
    tell(connection, digest_of(data, BLOCK + 5));
    assert_true(hear(connection, &verdict));
    assert_int_equal(verdict.kind, CLI_FILE_VERDICT);
    assert_int_equal(verdict.flags, 0);
    leave(connection);
    assert_int_equal(files_in_inbox(), 1);
    snprintf(path, sizeof path, "%s/f", inbox);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0666 & ~mask);
    assert_int_equal(unlink(path), 0);
}

static void hostile_names_are_refused(void **state)
{
    const char *names[] = {"",     ".",   "..",      "/",    "/etc/passwd",
                           "../x", "a/b", "\033[2J", "a\nb", ".f.longhaul-partial"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct lh_connection *connection = connect_peer();
        tell(connection, offer_of(names[i], 5));
        expect_no(connection, names[i]);
    }
}

static void names_with_a_dot_are_refused(void **state)
{
    const char *names[] = {".bashrc", "...", "..a"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct lh_connection *connection = connect_peer();
        tell(connection, offer_of(names[i], 5));
        expect_no(connection, names[i]);
    }
}

static void hostile_attributes_are_refused(void **state)
{
    const struct {
        int64_t seconds;
        uint32_t nanoseconds, mode;
    } wrong[] = {
        {0, 0, KNOWN | 04755}, {0, 0, KNOWN | 02755}, {0, 0, KNOWN | 01777}, {0, 0, 0644},
        {0, NS_PER_S, KNOWN},  {INT64_MAX, 0, KNOWN}, {INT64_MIN, 0, KNOWN}, {5, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct cli_file_message offer = offer_of("f", 5);
        struct lh_connection *connection = connect_peer();
        cli_put_u64(offer.digest, (uint64_t)wrong[i].seconds);
        cli_put_u32(offer.digest + 8, wrong[i].nanoseconds);
        cli_put_u32(offer.digest + 12, wrong[i].mode);
        tell(connection, offer);
        expect_no(connection, "attributes");
    }
}

static void impossible_sizes_are_refused(void **state)
{
    const uint64_t sizes[] = {UINT64_MAX, INT64_MAX, (uint64_t)1 << 62};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct lh_connection *connection = connect_peer();
        tell(connection, offer_of("f", sizes[i]));
        expect_no(connection, "size");
    }
}

static void what_is_no_offer_is_refused(void **state)
{
    uint8_t bytes[CLI_FILE_MESSAGE_MAX];
    struct cli_file_message offer = offer_of("f", 5);
    struct lh_connection *connection = connect_peer();
    (void)state;
    say(connection, data, 300);
    expect_no(connection, "noise");
    connection = connect_peer();
    say(connection, data, 1000000);
    expect_no(connection, "a megabyte of noise");
    connection = connect_peer();
    say(connection, data, 0);
    expect_no(connection, "nothing");
    expect_no(connect_peer(), "silence");
    connection = connect_peer();
    tell(connection, digest_of(data, 5));
    expect_no(connection, "a digest");
    connection = connect_peer();
    size_t length = cli_file_encode(&offer, bytes);
    bytes[6] = CLI_FILE_VERSION + 1;
    say(connection, bytes, length);
    expect_no(connection, "the next version");
    connection = connect_peer();
    say(connection, bytes, length - 1);
    expect_no(connection, "a shorter one");
}

static void wrong_starts_are_refused(void **state)
{
    const uint64_t offsets[] = {1, BLOCK, UINT64_MAX, 2 * BLOCK};
    (void)state;
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++)
        expect_no(started(2 * BLOCK, offsets[i]), "offset");
}

/* What an offer has on disk is little, however much it promises, and not for long. */
static void an_offer_that_stays_silent_holds_little(void **state)
{
    const uint64_t size = (uint64_t)256 << 20;
    struct cli_file_message answer;
    struct stat status;
    char path[96];
    struct lh_connection *connection = connect_peer();
    (void)state;
    tell(connection, offer_of("f", size));
    assert_true(hear(connection, &answer));
    assert_int_equal(answer.flags, 0);
    snprintf(path, sizeof path, "%s/.f.longhaul-partial", inbox);
    assert_int_equal(stat(path, &status), 0);
    assert_true((uint64_t)status.st_blocks * 512 < size / 2);
    expect_no(connection, "silence after the offer");
}

static void wrong_blocks_are_refused(void **state)
{
    const size_t lengths[] = {0, 1, 100, BLOCK - 1, BLOCK + 1};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct lh_connection *connection = started(2 * BLOCK, 0);
        say(connection, data, lengths[i]);
        expect_no(connection, "block");
    }
}

static void wrong_ends_are_refused(void **state)
{
    struct cli_file_message digest = digest_of(data, BLOCK);
    struct lh_connection *connection = started(BLOCK, 0);
    (void)state;
    say(connection, data, BLOCK);
    digest.digest[15] ^= 1;
    tell(connection, digest);
    expect_no(connection, "another digest");
    connection = started(BLOCK, 0);
    say(connection, data, BLOCK);
    digest = digest_of(data, BLOCK);
    digest.size_bytes++;
    tell(connection, digest);
    expect_no(connection, "another size");
    connection = started(BLOCK, 0);
    say(connection, data, BLOCK);
    say(connection, data, 48);
    expect_no(connection, "no digest");
    connection = started(BLOCK, 0);
    say(connection, data, BLOCK);
    say(connection, data, BLOCK);
    expect_no(connection, "one block more");
}

static void a_reason_of_the_senders_ends_it(void **state)
{
    struct cli_file_message abort_message = {.kind = CLI_FILE_ABORT, .text = "\033[31mred"};
    struct lh_connection *connection = started(3 * BLOCK, 0);
    (void)state;
    say(connection, data, BLOCK);
    tell(connection, abort_message);
    expect_no(connection, "abort");
}

/* What a sender that a signal stopped left, and only that, is kept without --resume. */
static void a_senders_stop_keeps_what_arrived(void **state)
{
    struct cli_file_message verdict, offer = offer_of("f", 3 * BLOCK), answer;
    struct cli_file_message stop = {.kind = CLI_FILE_ABORT, .offset_bytes = CLI_FILE_KEEP, .text = "stop"};
    struct lh_connection *connection = started(3 * BLOCK, 0);
    (void)state;
    say(connection, data, BLOCK);
    tell(connection, stop);
    assert_true(hear(connection, &verdict));
    assert_int_equal(verdict.flags, CLI_FILE_NO);
    assert_int_equal(verdict.offset_bytes, BLOCK);
    leave(connection);
    assert_int_equal(files_in_inbox(), 2);
    connection = connect_peer();
    offer.flags = CLI_FILE_RESUME;
    tell(connection, offer);
    assert_true(hear(connection, &answer));
    assert_int_equal(answer.offset_bytes, BLOCK);
    leave(connection);
    /* Nothing of a block arrived: there is nothing to keep, and nothing is left of the earlier one. */
    connection = started(3 * BLOCK, 0);
    tell(connection, stop);
    expect_no(connection, "stop");
}

static void leaving_at_any_moment_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned stage = 0; stage < 4; stage++) {
        struct cli_file_message ignored;
        struct lh_connection *connection = connect_peer();
        if (stage >= 1)
            tell(connection, offer_of("f", 3 * BLOCK));
        if (stage >= 2)
            assert_true(hear(connection, &ignored));
        if (stage >= 2)
            tell(connection, (struct cli_file_message){.kind = CLI_FILE_START});
        if (stage >= 3)
            say(connection, data, BLOCK);
        leave(connection);
        /* The receiver is done with us when it serves the next one. */
        leave(started(0, 0));
    }
    expect_no(started(2 * BLOCK, 1), "the last");
}

/* ---- at longhaul send -------------------------------------------------------------------------------- */

/* Starts longhaul send towards a listener of ours, and takes its offer; the rest of the talk is the
 * caller's. */
static struct lh_connection *take_sender(pid_t *sender, int *errors)
{
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct lh_attr attr;
    struct cli_file_message offer;
    struct cli_file_attributes attributes;
    char port[32];
    int out;
    char *arguments[] = {command(), (char *)"send", source_path, port, NULL};
    lh_attr_init(&attr);
    assert_int_equal(lh_listen("[::1]:0", &attr, &listener), 0);
    snprintf(port, sizeof port, "[::1]:%u", lh_listener_port(listener));
    *sender = start(arguments, &out, errors);
    close(out);
    assert_int_equal(lh_accept(listener, PATIENCE, &connection), 0);
    lh_listener_close(listener);
    assert_true(hear(connection, &offer));
    assert_string_equal(offer.text, "source");
    assert_int_equal(cli_file_attributes_decode(offer.digest, &attributes), 0);
    assert_true(attributes.known);
    assert_int_equal(attributes.mode, 0640);
    return connection;
}

/* Whoever is not root may get a line more, on the socket buffers that the kernel grants. */
#define SMALL_BUFFERS "note: receive buffers"

/* The sender must end with 1, and its one line must hold no control character. */
static void expect_failure(pid_t sender, int errors, const char *about)
{
    char line[1024];
    size_t used = 0;
    int status;
    FILE *said = fdopen(errors, "r");
    assert_non_null(said);
    while (used + 1 < sizeof line && fgets(line + used, (int)(sizeof line - used), said))
        used += strstr(line + used, SMALL_BUFFERS) ? 0 : strlen(line + used);
    line[used] = 0;
    fclose(said);
    assert_int_equal(waitpid(sender, &status, 0), sender);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
        fail_msg("%s: longhaul send ended with status %x", about, (unsigned)status);
    if (!*line || strchr(line, '\033') || strchr(line, '\n') != line + strlen(line) - 1)
        fail_msg("%s: longhaul send said: %s", about, line);
}

static void wrong_answers_end_the_sender(void **state)
{
    const struct cli_file_message wrong[] = {
        {.kind = CLI_FILE_ANSWER, .flags = CLI_FILE_NO, .text = "\033[2Jno\nreally"},
        {.kind = CLI_FILE_ANSWER, .offset_bytes = 1},
        {.kind = CLI_FILE_ANSWER, .offset_bytes = 8 * BLOCK},
        {.kind = CLI_FILE_ANSWER, .offset_bytes = 0 - (uint64_t)BLOCK},
        {.kind = CLI_FILE_VERDICT},
        {.kind = CLI_FILE_OFFER},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pid_t sender;
        int errors;
        struct lh_connection *connection = take_sender(&sender, &errors);
        tell(connection, wrong[i]);
        expect_failure(sender, errors, "answer");
        leave(connection);
    }
}

static void noise_and_silence_end_the_sender(void **state)
{
    pid_t sender;
    int errors;
    struct lh_connection *connection = take_sender(&sender, &errors);
    (void)state;
    say(connection, data, 1000);
    expect_failure(sender, errors, "noise");
    leave(connection);
    connection = take_sender(&sender, &errors);
    leave(connection);
    expect_failure(sender, errors, "goodbye");
}

static void a_yes_before_the_end_is_no_yes(void **state)
{
    pid_t sender;
    int errors;
    struct cli_file_message ignored;
    struct lh_connection *connection = take_sender(&sender, &errors);
    (void)state;
    tell(connection, (struct cli_file_message){.kind = CLI_FILE_ANSWER});
    tell(connection, (struct cli_file_message){.kind = CLI_FILE_VERDICT});
    assert_true(hear(connection, &ignored));
    leave(connection);
    expect_failure(sender, errors, "early yes");
}

static void a_no_in_the_middle_ends_the_sender(void **state)
{
    pid_t sender;
    int errors;
    struct cli_file_message start_message;
    struct lh_connection *connection = take_sender(&sender, &errors);
    (void)state;
    tell(connection, (struct cli_file_message){.kind = CLI_FILE_ANSWER});
    assert_true(hear(connection, &start_message));
    assert_int_equal(start_message.kind, CLI_FILE_START);
    tell(connection, (struct cli_file_message){.kind = CLI_FILE_VERDICT,
                                               .flags = CLI_FILE_NO,
                                               .text = "\x1b"
                                                       "disk"});
    expect_failure(sender, errors, "no");
    leave(connection);
}

static int make_source(void **state)
{
    (void)state;
    int file = open(source_path, O_WRONLY | O_CREAT, 0640);
    bool written =
        file >= 0 && !fchmod(file, 04640) && write(file, data, 3 * BLOCK) == (ssize_t)(3 * BLOCK);
    close(file);
    return !written;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_transfers_go_through),
        cmocka_unit_test(hostile_names_are_refused),
        cmocka_unit_test(names_with_a_dot_are_refused),
        cmocka_unit_test(hostile_attributes_are_refused),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(what_is_no_offer_is_refused),
        cmocka_unit_test(wrong_starts_are_refused),
        cmocka_unit_test(an_offer_that_stays_silent_holds_little),
        cmocka_unit_test(wrong_blocks_are_refused),
        cmocka_unit_test(wrong_ends_are_refused),
        cmocka_unit_test(a_reason_of_the_senders_ends_it),
        cmocka_unit_test(a_senders_stop_keeps_what_arrived),
        cmocka_unit_test(leaving_at_any_moment_leaves_nothing),
        cmocka_unit_test(right_transfers_go_through),
        cmocka_unit_test_setup(wrong_answers_end_the_sender, make_source),
        cmocka_unit_test(noise_and_silence_end_the_sender),
        cmocka_unit_test(a_yes_before_the_end_is_no_yes),
        cmocka_unit_test(a_no_in_the_middle_ends_the_sender),
    };
    return cmocka_run_group_tests(tests, start_receiver, stop_receiver);
}
