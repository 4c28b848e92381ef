/*
 * one_sided.c - a table on one host that others write to and read from, while its program does nothing.
 *
 *   one_sided serve :PORT       exposes a table to one client; prints what was written when it has closed
 *   one_sided use HOST:PORT     writes a row, reads it back
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/longhaul.h>

#define ROWS      1024u
#define ROW_BYTES 4096u

static struct lh_engine *engine;
static struct lh_completion_queue *queue;

/* Any failure ends the program. */
static void must(int code, const char *what)
{
    if (code >= 0)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, lh_strerror(code), lh_last_error());
    exit(1);
}

static void finish(struct lh_request *request, const char *what)
{
    struct lh_result result;
    must(lh_wait(request, 10 * LH_NS_PER_S, &result), what); /* or lh_cancel() */
    lh_request_free(request);
    must(result.error, what);
}

static void serve(const char *where, const struct lh_attr *attr)
{
    static unsigned char table[ROWS][ROW_BYTES];
    const struct lh_part part = {.address = table, .bytes = sizeof table};
    struct lh_listener *listener;
    struct lh_connection *connection;
    struct lh_region *region;
    struct lh_request *request;
    struct lh_completion entry;
    struct lh_key key;
    must(lh_listen(where, attr, &listener), where);
    printf("port %u\n", lh_listener_port(listener));
    fflush(stdout);
    must(lh_accept(listener, LH_TIME_NEVER, &connection), "lh_accept");
    lh_listener_close(listener);
    must(lh_expose(connection, &part, LH_ACCESS_WRITE | LH_ACCESS_READ, queue, 1, &region), "lh_expose");
    lh_region_key(region, &key);
    must(lh_send(connection, &key, sizeof key, NULL, &request), "lh_send");
    finish(request, "send");
    must(lh_queue_wait(queue, &entry, 1, 10 * LH_NS_PER_S), "lh_queue_wait"); /* a notification */
    printf("%llu bytes written to row %llu: %.20s\n", (unsigned long long)entry.result.bytes,
           (unsigned long long)entry.result.tag, (const char *)table[entry.result.tag % ROWS]);
    must(lh_recv(connection, NULL, 0, NULL, &request), "lh_recv"); /* until the client has read, too */
    finish(request, "recv");
    lh_revoke(region);
    lh_close(connection);
}

static void use(const char *where, const struct lh_attr *attr)
{
    static char row[ROW_BYTES] = "a row of the table", back[ROW_BYTES];
    const uint64_t number = 7;
    struct lh_part part = {.address = row, .bytes = sizeof row};
    struct lh_onesided wanted = {
        .parts = &part, .count = 1, .offset = number * ROW_BYTES, .notify = true, .immediate = number};
    struct lh_connection *connection;
    struct lh_request *request;
    must(lh_connect(where, attr, 5 * LH_NS_PER_S, &connection), where);
    must(lh_recv(connection, &wanted.key, sizeof wanted.key, NULL, &request), "lh_recv");
    finish(request, "recv");
    must(lh_write(connection, &wanted, &request), "lh_write");
    finish(request, "write");
    part.address = back;
    wanted.notify = false;
    must(lh_read(connection, &wanted, &request), "lh_read");
    finish(request, "read");
    printf("read back: %s\n", back);
    must(lh_send(connection, NULL, 0, NULL, &request), "lh_send");
    finish(request, "send");
    lh_close(connection);
}

int main(int argc, char **argv)
{
    struct lh_engine_attr engine_attr;
    struct lh_attr attr;
    if (argc != 3 || (strcmp(argv[1], "serve") != 0 && strcmp(argv[1], "use") != 0)) {
        fprintf(stderr, "usage: one_sided serve :PORT | one_sided use HOST:PORT\n");
        return 2;
    }
    lh_engine_attr_init(&engine_attr);
    engine_attr.device = "udp:[::1]"; /* or another address of this host */
    must(lh_engine_create(&engine_attr, &engine), engine_attr.device);
    must(lh_completion_queue_create(engine, 16, &queue), "lh_completion_queue_create");
    lh_attr_init(&attr);
    attr.engine = engine;
    if (strcmp(argv[1], "serve") == 0)
        serve(argv[2], &attr);
    else
        use(argv[2], &attr);
    must(lh_completion_queue_destroy(queue), "lh_completion_queue_destroy");
    must(lh_engine_destroy(engine), "lh_engine_destroy");
    return 0;
}
