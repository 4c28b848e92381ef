/* SPDX-License-Identifier: BSD-3-Clause */
#include <longhaul/connection.h>

#include <time.h>

#include "base/earlier.h"
#include "base/error.h"
#include "message/attr.h"
#include "message/engine.h"
#include "launch/rendezvous.h"
#include "launch/tcp.h"

#define FULL_PAUSE_NS LH_NS_PER_S /* the interval of BUSY for clients that wait */

struct attempt {
    const char *where;
    struct lh_attr attr;
    lh_time timeout_ns;
    lh_time deadline;
    uint32_t busy; /* notices that were forwarded */
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
    if (attempt->deadline <= now || attempt->deadline - now <= FULL_PAUSE_NS)
        return false;
    nanosleep(&(struct timespec){.tv_sec = (time_t)(FULL_PAUSE_NS / LH_NS_PER_S)}, NULL);
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
        int error = tcp_wait(r->fd, false, lh_earlier(attempt->deadline, rendezvous_next_ns(r, now)));
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
    bool older; /* another try in version 1 */
    bool later; /* another try */
};

/* One try in a version of the handshake. */
static int try_version(struct attempt *attempt, uint8_t version, struct remedy *remedy,
                       struct lh_connection **connection)
{
    *remedy = (struct remedy){0};
    int fd;
    struct rendezvous r;
    int error = tcp_connect(attempt->where, attempt->deadline, &fd);
    if (error)
        return error;
    error = rendezvous_connect(&r, fd, &attempt->attr, version);
    if (!error)
        error = drive(attempt, &r);
    if (error == -LH_EPEER && r.state == RENDEZVOUS_PROPOSAL)
        error = not_taken(attempt->where);
    *remedy = (struct remedy){.older = error && r.older, .later = error && r.full};
    if (error)
        rendezvous_drop(&r);
    else
        *connection = rendezvous_done(&r);
    return error;
}

int lh_connect(const char *where, const struct lh_attr *given, lh_time timeout_ns,
               struct lh_connection **connection)
{
    struct attempt attempt = {
        .where = where, .timeout_ns = timeout_ns, .deadline = tcp_deadline(timeout_ns)};
    struct remedy remedy = {0};
    uint8_t version = HANDSHAKE_VERSION;
    int error = attr_check(given, &attempt.attr);
    if (!error)
        error = engine_settle(&attempt.attr);
    if (error)
        return error;
    for (;;) { /* until the deadline */
        error = try_version(&attempt, version, &remedy, connection);
        if (remedy.older && version > HANDSHAKE_VERSION_MIN)
            version = HANDSHAKE_VERSION_MIN;
        else if (!remedy.later || !may_retry(&attempt))
            return error;
    }
}
