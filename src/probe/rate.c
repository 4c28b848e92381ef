/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/rate.h"

#include "launch/tcp.h"
#include "probe/flow.h"
#include "probe/rate_search.h"
#include "probe/schedule.h"

/* Long enough that the queues on the path fill, and that a busy host's pauses weigh little. */
#define TRAIN_NS          (80 * LH_NS_PER_MS)
#define TRAIN_PACKETS_MIN 64u
/* The search ends when it has used this part of the time, with what it knows. */
#define TIME_SHARE 3u

/* Fewer of the large ones: a train of them is short already. */
static struct flow_order train_of(const struct probe_session *session, const struct rate_search *search)
{
    const struct lh_probe_result *result = session->result;
    struct flow_order order = {.flows = session->attr.flows};
    for (uint32_t i = 0; i < result->size_count; i++)
        if (result->sizes[i].payload_bytes > order.payload_bytes)
            order.payload_bytes = result->sizes[i].payload_bytes;
    order.gap_ns = schedule_gap_ns(search->offered_bps, session->port.header_bytes + order.payload_bytes);
    lh_time packets = TRAIN_NS / (order.gap_ns > 0 ? order.gap_ns : 1);
    order.packets = packets > TRAIN_PACKETS_MIN ? (uint32_t)packets : TRAIN_PACKETS_MIN;
    /* What the host can send in that time anyway, at a microsecond each. */
    if (order.packets > TRAIN_NS / LH_NS_PER_US)
        order.packets = (uint32_t)(TRAIN_NS / LH_NS_PER_US);
    return order;
}

static struct rate_outcome outcome_of(const struct probe_session *session, const struct flow_order *order,
                                      const struct flow_outcome *flow)
{
    const uint64_t *numbers = flow->report.numbers;
    struct model_loss_runs runs = probe_message_runs(&flow->report);
    return (struct rate_outcome){
        .sent_bps = flow_rate_bps(session, order, flow->sent, flow->span_ns),
        .delivered_bps =
            flow_rate_bps(session, order, numbers[PROBE_REPORT_RECEIVED], numbers[PROBE_REPORT_SPAN_NS]),
        .loss = runs.packets > 0 ? (double)runs.lost / (double)runs.packets : 0,
        .pushed_back = flow->pushed_back,
        .endpoint_drops =
            runs.lost > 0 && numbers[PROBE_REPORT_SOCKET_DROPS] + numbers[PROBE_REPORT_HOST_DROPS] > 0,
    };
}

int probe_measure_rate(struct probe_session *session)
{
    struct rate_search search;
    lh_time ends_ns = tcp_now() + session->attr.time_ns / TIME_SHARE;
    rate_search_init(&search, session->attr.rate_bps);
    do {
        struct flow_order order = train_of(session, &search);
        struct flow_outcome flow;
        int error = flow_run(session, &order, &flow);
        if (error != 0)
            return error;
        struct rate_outcome outcome = outcome_of(session, &order, &flow);
        rate_search_on_outcome(&search, &outcome);
        if (!search.done && search.rate_bps <= 0)
            session->result->rate_bps = outcome.delivered_bps;
    } while (!search.done && tcp_now() < ends_ns);
    if (search.rate_bps > 0)
        session->result->rate_bps = search.rate_bps;
    session->result->rate_limit = search.limit != 0 ? search.limit : LH_PROBE_LIMIT_TIME;
    return 0;
}
