/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/connection.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/earlier.h"
#include "base/error.h"
#include "message/attr.h"
#include "message/engine.h"
#include "launch/rendezvous.h"
#include "launch/tcp.h"

/* Between tries at a full listener: a cookie lets the next one in where strangers fill it. The last is the
 * interval of BUSY for clients that wait. */
#define FULL_PAUSE_FIRST_NS (LH_NS_PER_S / 16)
#define FULL_PAUSE_MAX_NS   LH_NS_PER_S

struct attempt {
    const char *where;
    struct lh_attr attr;
    lh_time timeout_ns;
    lh_time deadline;
    uint32_t busy; /* notices that were forwarded */
    lh_time pause_ns;
    bool has_cookie;
    uint8_t cookie[ADMISSION_COOKIE_BYTES];
    int wake_fd; /* an eventfd for a stream's frames; -1: none was needed so far */
};

static void report_busy(struct attempt *attempt)
{
    const struct lh_attr *attr = &attempt->attr;
    if (attr->on_notice && attr->on_notice(attr->notice_context, LH_NOTICE_BUSY, attempt->where))
        attempt->deadline = tcp_deadline(attempt->timeout_ns);
}

static void forward_busy(struct attempt *attempt, const struct rendezvous *r)
{
    if (attempt->busy == r->busy)
        return;
    attempt->busy = r->busy;
    report_busy(attempt);
}

/* The listener is full. Whether there is time for another try, after a pause. */
static bool may_retry(struct attempt *attempt)
{
    report_busy(attempt);
    lh_time now = tcp_now();
    lh_time pause = attempt->pause_ns;
    attempt->pause_ns = 2 * pause < FULL_PAUSE_MAX_NS ? 2 * pause : FULL_PAUSE_MAX_NS;
    if (attempt->deadline <= now || attempt->deadline - now <= pause)
        return false;
    nanosleep(&(struct timespec){(time_t)(pause / LH_NS_PER_S), (long)(pause % LH_NS_PER_S)}, NULL);
    return true;
}

static int too_late(const struct attempt *attempt, const struct rendezvous *r)
{
    if (attempt->busy)
        return lh_fail(LH_ETIMEDOUT, "%s is busy with another connection (wait longer)", attempt->where);
    if (r->state == RENDEZVOUS_PATH && !r->path)
        return lh_fail(LH_ETIMEDOUT, "%s: %s", attempt->where, RENDEZVOUS_NO_UDP);
    return lh_fail(LH_ETIMEDOUT, "%s did not answer in time", attempt->where);
}

static void drain(int wake_fd)
{
    uint64_t drained;
    while (read(wake_fd, &drained, sizeof drained) < 0 && errno == EINTR)
        continue;
}

/* Steps until the connection stands: 0; or why it does not. */
static int drive(struct attempt *attempt, struct rendezvous *r)
{
    const struct rendezvous_permit all = {.open = true, .finish = true};
    for (;;) { /* until the deadline */
        lh_time now = tcp_now();
        int done = rendezvous_step(r, all, now);
        if (done)
            return done < 0 ? done : 0;
        forward_busy(attempt, r);
        if (now >= attempt->deadline)
            return too_late(attempt, r);
        int error = tcp_wait(r->stream ? attempt->wake_fd : r->fd, false,
                             lh_earlier(attempt->deadline, rendezvous_next_ns(r, now)));
        if (r->stream)
            drain(attempt->wake_fd);
        if (error && error != -LH_ETIMEDOUT)
            return error;
    }
}

/* The kernel completes connections that the listener never takes, and resets them when it closes. */
static int not_taken(const char *where)
{
    return lh_fail(
        LH_EPEER, "%s: connection refused: the listener closed before it answered (start it again)", where);
}

/* What the peer asks for in place of the try that failed. */
struct remedy {
    bool older; /* another try in an older version */
    bool later; /* another try */
    bool stale; /* another try over a TCP connection of its own: the other one, or its listener, is gone */
};

/* Begins the handshake over a TCP connection of its own, in that version. */
static int begin_alone(struct attempt *attempt, uint8_t version, struct rendezvous *r)
{
    int fd;
    int error = tcp_connect(attempt->where, attempt->deadline, &fd);
    *r = (struct rendezvous){.fd = -1};
    if (error)
        return error;
    const uint8_t *cookie = attempt->has_cookie ? attempt->cookie : NULL;
    return rendezvous_connect(r, fd, &attempt->attr, version, cookie, attempt->where);
}

/* A stream of a control connection that its engine has to there; NULL: there is none. */
static struct control_stream *open_stream(struct attempt *attempt)
{
    if (!attempt->attr.engine)
        return NULL;
    if (attempt->wake_fd < 0)
        attempt->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return attempt->wake_fd < 0
               ? NULL
               : control_stream_open(attempt->attr.engine, attempt->where, attempt->wake_fd);
}

/* One try, over a stream where there is one and `shared`. */
static int try_once(struct attempt *attempt, uint8_t version, bool shared, struct remedy *remedy,
                    struct lh_connection **connection)
{
    struct rendezvous r;
    struct control_stream *stream = shared ? open_stream(attempt) : NULL;
    int error = stream ? rendezvous_connect_stream(&r, stream, &attempt->attr, tcp_now())
                       : begin_alone(attempt, version, &r);
    if (!error)
        error = drive(attempt, &r);
    bool unheard = error == -LH_EPEER && r.state == RENDEZVOUS_PROPOSAL;
    if (unheard && !stream && r.fd >= 0)
        error = not_taken(attempt->where);
    *remedy = (struct remedy){.older = error && r.older,
                              .later = error && r.full,
                              .stale = stream && error && (unheard || r.closed)};
    if (error && r.has_cookie) {
        attempt->has_cookie = true;
        memcpy(attempt->cookie, r.cookie, sizeof r.cookie);
    }
    if (remedy->stale)
        control_stream_open_no_more(stream);
    if (error && r.fd >= 0)
        rendezvous_drop(&r);
    else if (!error)
        *connection = rendezvous_done(&r);
    return error;
}

static int try_all(struct attempt *attempt, struct lh_connection **connection)
{
    struct remedy remedy;
    uint8_t version = HANDSHAKE_VERSION;
    bool shared = true;
    for (;;) { /* until the deadline */
        int error = try_once(attempt, version, shared, &remedy, connection);
        shared = !remedy.stale;
        if (remedy.older && version > HANDSHAKE_VERSION_MIN)
            version--;
        else if (!remedy.stale && (!remedy.later || !may_retry(attempt)))
            return error;
    }
}

int lh_connect(const char *where, const struct lh_attr *given, lh_time timeout_ns,
               struct lh_connection **connection)
{
    struct attempt attempt = {.where = where,
                              .timeout_ns = timeout_ns,
                              .deadline = tcp_deadline(timeout_ns),
                              .pause_ns = FULL_PAUSE_FIRST_NS,
                              .wake_fd = -1};
    int error = attr_check(given, &attempt.attr);
    if (!error)
        error = engine_settle(&attempt.attr);
    if (!error)
        error = try_all(&attempt, connection);
    if (attempt.wake_fd >= 0)
        close(attempt.wake_fd);
    return error;
}
