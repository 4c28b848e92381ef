/*
 * json.c - what longhaul probe measured, for programs.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/probe/json.h"

#include "cli/results/json.h"

#include <math.h>

static double seconds(lh_time ns)
{
    return (double)ns / (double)LH_NS_PER_S;
}

/* null for what is not known. */
static void put_loss(struct cli_json *json, const struct lh_probe_loss *loss)
{
    bool known = loss->sent > 0;
    cli_json_number(json, "loss", known ? loss->loss : NAN);
    cli_json_number(json, "loss_low", known ? loss->loss_low : NAN);
    cli_json_number(json, "loss_high", known ? loss->loss_high : NAN);
    cli_json_number(json, "burst_packets", known ? loss->burst_packets : NAN);
    cli_json_number(json, "burst_low", known ? loss->burst_low : NAN);
    cli_json_number(json, "burst_high", known ? loss->burst_high : NAN);
}

static void put_size(struct cli_json *json, const struct lh_probe_size *size)
{
    cli_json_open(json, NULL, '{');
    cli_json_count(json, "payload_bytes", size->payload_bytes);
    cli_json_count(json, "sent", size->loss.sent);
    cli_json_count(json, "lost", size->loss.lost);
    put_loss(json, &size->loss);
    cli_json_number(json, "reorder", size->reorder);
    cli_json_open(json, "trials", '[');
    for (uint32_t i = 0; i < size->trial_count; i++) {
        const struct lh_probe_trial *trial = &size->trials[i];
        cli_json_open(json, NULL, '{');
        cli_json_count(json, "sent", trial->sent);
        cli_json_count(json, "lost", trial->lost);
        cli_json_count(json, "endpoint_drops", trial->endpoint_drops);
        cli_json_count(json, "excluded", trial->excluded);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void put_path(struct cli_json *json, const struct lh_probe_result *result)
{
    static const char *const limits[] = {
        [LH_PROBE_LIMIT_PATH] = "path",         [LH_PROBE_LIMIT_SENDER] = "sender",
        [LH_PROBE_LIMIT_RECEIVER] = "receiver", [LH_PROBE_LIMIT_ASKED] = "asked",
        [LH_PROBE_LIMIT_TIME] = "time",
    };
    cli_json_number(json, "bandwidth_bps", result->rate_bps);
    cli_json_text(json, "bandwidth_limit", limits[result->rate_limit]);
    cli_json_number(json, "rtt_s", seconds(result->rtt_ns));
    cli_json_number(json, "rtt_min_s", seconds(result->rtt_min_ns));
    cli_json_number(json, "rtt_mean_s", seconds(result->rtt_mean_ns));
    cli_json_number(json, "rtt_p99_s", seconds(result->rtt_p99_ns));
    cli_json_number(json, "rtt_max_s", seconds(result->rtt_max_ns));
    cli_json_number(json, "rtt_jitter_s", seconds(result->rtt_jitter_ns));
    cli_json_count(json, "rtt_samples", result->rtt_samples);
    cli_json_count(json, "path_mtu_bytes", result->path_mtu_bytes);
    cli_json_count(json, "mtu_bytes", result->mtu_bytes);
}

static void put_order(struct cli_json *json, const struct lh_probe_result *result)
{
    cli_json_number(json, "reorder", result->reorder);
    cli_json_number(json, "reorder_extent_mean_packets", result->reorder_extent_mean);
    cli_json_count(json, "reorder_extent_max_packets", result->reorder_extent_max);
    cli_json_number(json, "reorder_late_max_s", seconds(result->reorder_late_max_ns));
    cli_json_number(json, "duplicate", result->duplicate);
}

void cli_probe_report_json(FILE *out, const char *host, const struct lh_probe_attr *attr,
                           const struct lh_probe_result *result)
{
    struct cli_json json = {.out = out};
    char link[LH_LINK_TEXT_MAX];
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "host", host);
    cli_json_text(&json, "family", result->ipv6 ? "ipv6" : "ipv4");
    cli_json_text(&json, "link", lh_link_format(&attr->link, link, sizeof link));
    put_path(&json, result);
    put_loss(&json, &result->loss);
    cli_json_count(&json, "bursty", result->loss.bursty);
    cli_json_count(&json, "loss_payload_bytes", result->loss_payload_bytes);
    put_order(&json, result);
    cli_json_count(&json, "sent", result->sent);
    cli_json_count(&json, "received", result->received);
    cli_json_count(&json, "trials", result->trials);
    cli_json_count(&json, "trials_excluded", result->trials_excluded);
    cli_json_count(&json, "endpoint_drops_socket", result->endpoint_drops_socket);
    cli_json_count(&json, "endpoint_drops_host", result->endpoint_drops_host);
    cli_json_count(&json, "flows", result->flows);
    cli_json_number(&json, "flow_loss_low", result->flow_loss_low);
    cli_json_number(&json, "flow_loss_high", result->flow_loss_high);
    cli_json_open(&json, "sizes", '[');
    for (uint32_t i = 0; i < result->size_count; i++)
        put_size(&json, &result->sizes[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}
