"""Plants known bugs in a copy of the product, one at a time: how many seeds until the fault world finds each?

    planted.py              builds each and runs seeds until it is found; exit status 1 when one is not
    planted.py --check      only that each still fits the source (a test does that)
    planted.py NAME...      some of them
    options: --seeds N (at most; default 20000), --keep (leaves the copy and says where)

A bug is a list of replacements; the text to replace stands exactly once in its file. Where the product checks
twice, both checks are taken out for one bug, and each alone for another.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Seeds from here on have congestion controllers (PLAN_NEWCOMER_SEEDS): where bugs that need them are hunted.
CONTROLLERS = ("report-soon", "report-total", "report-late", "report-fall", "report-drops", "credit",
               "rate-max", "hand-over", "parity-settled")
CONTROLLER_SEEDS = 1 << 62
# And from here on engines (PLAN_ENGINE_SEEDS).
ENGINES = ("entry-user", "entry-lost", "queue-roomy", "heap-lost", "ready-lost", "match-mask", "match-cancel")
ENGINE_SEEDS = 1 << 63
# And from here on deadlines (PLAN_DEADLINE_SEEDS).
DEADLINES = ("range-short", "share-high", "deadline-ignored", "preempt-lost", "stale-bytes")
DEADLINE_SEEDS = 3 << 62
# And from here on groups (PLAN_GROUP_SEEDS).
GROUPS = ("late-unanswered", "sum-by-rank", "report-dropped", "left-untold", "report-unanswered",
          "send-early", "quotient-twice", "blame-next", "group-deadline", "buffer-lost", "input-summed",
          "count-unsigned", "parts-unsigned")
GROUP_SEEDS = 15 << 60
# And from here on groups whose hops may lose something (PLAN_BOUNDED_GROUP_SEEDS).
BOUNDED_GROUPS = ("group-stale", "group-endless", "lost-counted", "late-piece", "counts-even")
BOUNDED_GROUP_SEEDS = 31 << 59

ACK_COPY = "    memcpy(ack.bitmap, arrivals->bits + answer->next_word, ack.words * sizeof(uint64_t));\n"

# name: (what is wrong, [(file, old, new), ...])
BUGS = {
    "generation": ("packets of an earlier use of a slot are taken for those of the present one", [
        ("src/fabric/rx_check.c", "if (!entry->open || entry->bound.generation != generation)",
         "(void)generation;\n    if (!entry->open)"),
        # The key differs from one use of the slot to the next, too.
        ("src/fabric/rx_check.c", "if (packet->rkey != entry->rkey)", "if (false)"),
        ("src/sdr/message_table.c", "return slot->open && slot->generation == generation ? slot : NULL;",
         "(void)generation;\n    return slot->open ? slot : NULL;"),
    ]),
    "cumulative": ("the cumulative acknowledgement covers one chunk too many", [
        ("src/schemes/sr_arrivals.c", "        .cumulative = arrivals->cumulative,",
         "        .cumulative = arrivals->cumulative +\n"
         "                      (arrivals->cumulative % 64 > 0 && arrivals->cumulative % 64 < 63 &&\n"
         "                       arrivals->cumulative < arrivals->limit),"),
        # An acknowledgement that contradicts itself does not even leave: asserted.
        ("src/schemes/sr_arrivals.c", "        .arrived = arrivals->seen,",
         "        .arrived = arrivals->seen + (arrivals->seen == arrivals->cumulative),"),
    ]),
    "chunk-early": ("a chunk's bit is set when one packet of it is still missing", [
        ("src/sdr/message_table.c", "for (uint32_t span = 1; span < table->shape.chunk_packets; span *= 2)",
         "if (table->shape.chunk_packets > 1)\n        packets |= table->chunk_firsts;\n"
         "    for (uint32_t span = 1; span < table->shape.chunk_packets; span *= 2)"),
    ]),
    "cts-length": ("the length in a clear-to-send is believed", [
        ("src/sdr/qp_control.c", "cts->generation >= qp->shape.generations ||\n"
         "            cts->length_bytes > qp->peer.slot_bytes)", "cts->generation >= qp->shape.generations)"),
    ]),
    "rtt-again": ("a round trip is measured from the last transmission, not from the answered one", [
        ("src/sdr/qp_path.h", "    lh_time ping_span;\n};",
         "    lh_time ping_span;\n    lh_time stamped_ns;\n};"),
        ("src/sdr/qp_path.c", "    header->sent_ns = path->origin_ns + now;",
         "    header->sent_ns = path->origin_ns + now;\n    path->stamped_ns = now;"),
        ("src/sdr/qp_path.c", "lh_rtt_on_sample(&path->rtt, age_ns - header->echo_delay_ns);",
         "lh_rtt_on_sample(&path->rtt, now - path->stamped_ns);"),
    ]),
    "fresh-row": ("parity that is asked for later repeats a row that was sent before", [
        ("src/schemes/ec_layout.c", "lh_encode_rows(&code, first_row, coded, data, parity, to - from);",
         "lh_encode_rows(&code, first_row > 0 ? first_row - 1 : 0, coded, data, parity, to - from);"),
    ]),
    "hand-over": ("chunks that are lost when a message's end is covered by parity count as in flight", [
        ("src/schemes/hybrid_groups.c", "            count.lost++;", "            count.in_flight++;"),
    ]),
    "parity-settled": ("parity that was lost counts as in flight for ever", [
        ("src/schemes/hybrid_groups.c",
         "    if (mark >= group->stamp)\n        group->settled = group->sent;",
         "    if (mark >= group->stamp)\n        group->settled = group->sent_before;"),
    ]),
    "short-tail": ("where the last chunk of a message is short, the rest of its columns is not decoded", [
        ("src/schemes/ec_layout.c", "if (part.tail < coding->chunk_bytes && shorter > 0 &&",
         "if (false && shorter > 0 &&"),
    ]),
    "other-params": ("a message is decoded with the parameters of the one that was begun last", [
        ("src/message/rx_messages.c",
         "memcpy(coded->coding.params, message->choice.params, sizeof coded->coding.params);",
         "const struct rx_message *newest = rx_message_at(rx, rx->posting);\n"
         "    if (newest->posted == 0)\n"
         "        newest = rx_message_at(rx, rx->posting - 1);\n"
         "    if (newest->posted == 0 || newest->choice.scheme != message->choice.scheme)\n"
         "        newest = message;\n"
         "    memcpy(coded->coding.params, newest->choice.params, sizeof coded->coding.params);"),
    ]),
    "other-cut": ("a segment lies where it would if its message were cut like the one before", [
        ("src/message/rx_receiver.c", "    uint64_t offset = message->posted * message->segment_bytes;",
         "    const struct rx_message *before = rx_message_at(rx, message->number - 1);\n"
         "    uint64_t other = before->segment_bytes;\n"
         "    if (before->state != RX_OPEN || message->posted * other >= message->capacity)\n"
         "        other = message->segment_bytes;\n"
         "    uint64_t offset = message->posted * other;"),
    ]),
    "ack-highest": ("the highest chunk that has arrived is left out of each acknowledgement", [
        ("src/schemes/sr_arrivals.c", ACK_COPY, ACK_COPY +
         "    for (uint32_t w = ack.words; w > 0; w--)\n"
         "        if (ack.bitmap[w - 1] != 0) {\n"
         "            ack.bitmap[w - 1] &= ~((uint64_t)1 << (63 - __builtin_clzll(ack.bitmap[w - 1])));\n"
         "            break;\n"
         "        }\n"),
    ]),
    "ack-words": ("the words of an acknowledgement from the second on repeat the first", [
        ("src/schemes/sr_arrivals.c", ACK_COPY, ACK_COPY +
         "    for (uint32_t w = 1; w < ack.words; w++)\n"
         "        ack.bitmap[w] = ack.bitmap[0];\n"),
    ]),
    "ack-parts": ("of what one acknowledgement cannot hold, the rest is never told", [
        ("src/schemes/sr_arrivals.c", "        if (answer->next_word >= answer->end_word)\n", ""),
    ]),
    "late-table": ("the message table alone takes packets of an earlier use of a slot", [
        ("src/sdr/message_table.c", "return slot->open && slot->generation == generation ? slot : NULL;",
         "(void)generation;\n    return slot->open ? slot : NULL;"),
    ]),
    "closed-table": ("the message table alone takes packets of a slot that is closed", [
        ("src/sdr/message_table.c", "return slot->open && slot->generation == generation ? slot : NULL;",
         "return slot->generation == generation ? slot : NULL;"),
    ]),
    "late-fabric": ("the fabric alone takes packets of an earlier use of a slot, when their key fits", [
        ("src/fabric/rx_check.c", "if (!entry->open || entry->bound.generation != generation)",
         "(void)generation;\n    if (!entry->open)"),
    ]),
    "any-key": ("the fabric takes packets with any key", [
        ("src/fabric/rx_check.c", "if (packet->rkey != entry->rkey)", "if (false)"),
    ]),
    "slow-timeout": ("a chunk's timeout is forty times as long as it should be", [
        ("src/schemes/sr_ledger.c", "return sr_after(rto->groups[rto->oldest % SR_RTO_GROUPS].last_ns, "
         "sr_rto_span(rto, timing));",
         "return sr_after(rto->groups[rto->oldest % SR_RTO_GROUPS].last_ns, 40 * sr_rto_span(rto, timing));"),
    ]),
    "any-place": ("the fabric alone takes a packet whose address and immediate name different places", [
        ("src/fabric/rx_check.c",
         "if (fields.message != slot || offset != (uint64_t)fields.packet * table->attr.mtu_bytes)",
         "if (false)"),
    ]),
    "any-length": ("the fabric takes packets that go on behind the buffer", [
        ("src/fabric/rx_check.c",
         "if (offset > entry->bound.length_bytes || "
         "packet->payload_bytes > entry->bound.length_bytes - offset)",
         "if (false)"),
    ]),
    "any-token": ("control messages of an earlier life are taken", [
        ("src/sdr/qp_control.c", "if (message.header.token != qp->token) {", "if (false) {"),
    ]),
    "beyond-table": ("the message table alone marks packets behind the buffer", [
        ("src/sdr/message_table.c", "uint64_t bit = (uint64_t)(arrival->bytes > 0) << place & run->inside;",
         "uint64_t bit = (uint64_t)(arrival->bytes > 0) << place;"),
    ]),
    "wrap-number": ("numbers of messages and segments that have wrapped count as older", [
        ("src/control/message_control.h", "return (int32_t)(a - b) < 0;", "return a < b;"),
    ]),
    "report-soon": ("a report is believed of packets that were sent less than a round trip ago", [
        ("src/congestion/flight.c", "lh_time until_ns = now > min_rtt_ns ? now - min_rtt_ns : 0;",
         "(void)min_rtt_ns;\n    lh_time until_ns = now;"),
    ]),
    "report-total": ("a report may count more packets than were sent", [
        ("src/congestion/flight.c", "reachable - flight->arrived_packets, report->newest);",
         "UINT64_MAX, report->newest);"),
    ]),
    "report-late": ("packets taken for lost that arrive after all stand for some that are under way", [
        ("src/congestion/flight.c", "lh_min(lost, reachable - arrived)",
         "lh_min(lost, flight->sent_packets - arrived)"),
    ]),
    "report-fall": ("totals that fall are ignored: the truth after a lie", [
        ("src/congestion/flight.c", "reported < *known && newest ? reported : *known + newly",
         "*known + newly;\n    (void)newest"),
    ]),
    "report-drops": ("drops that a report counts lower the rate to nothing", [
        ("src/sdr/rate_control.c",
         "uint64_t min_bps = lh_max(rate->pacer.rate_bps / DRAIN_CUT_MAX, drain_min_bps(rate));",
         "uint64_t min_bps = 0;\n    read_bps /= 1000;"),
    ]),
    "credit": ("whoever grants credit is not bounded by the window", [
        ("src/congestion/eqds.c", ".window_bytes = share_window_within(window_bytes(eqds), &eqds->path),",
         ".window_bytes = UINT64_MAX,"),
        ("src/sdr/rate_control.c", "lh_sub_sat(rate->path.window_max_bytes, in_flight)", "UINT64_MAX"),
    ]),
    "rate-max": ("the bound of the rate is ignored where there is a controller", [
        ("src/congestion/flight.c", "return rate < path->rate_max_bps ? rate : path->rate_max_bps;",
         "return rate;"),
        ("src/sdr/rate_control.c", "lh_min(rate->decision.rate_bps, rate->path.rate_max_bps)",
         "rate->decision.rate_bps"),
    ]),
    "entry-user": ("an entry of a completion queue has the number of its message for the user's value", [
        ("src/message/requests.c", ".user = request->target.user,", ".user = request->message,"),
    ]),
    "entry-lost": ("what is canceled has no entry in its completion queue", [
        ("src/message/requests.c", "    if (request->target.queue)\n        add_entry(request);",
         "    if (request->target.queue && request->part.result.error != -LH_ECANCELED)\n"
         "        add_entry(request);"),
    ]),
    "queue-roomy": ("entries that nobody has polled do not count towards the capacity of their queue", [
        ("src/message/completion_queue.c",
         "bool has_room = fit(ring, ring->requests + !notifies, ring->notifications + notifies, held);",
         "bool has_room = pending < ring->capacity;"),
    ]),
    "heap-lost": ("a connection whose timer ends takes that of another one with it", [
        ("src/base/due_heap.c", "    if (last != due)\n",
         "    if (last != due && place > heap->count / 2)\n"),
    ]),
    "ready-lost": ("a connection that is closed takes with it what was ready behind it", [
        ("src/sdr/run_queue.c", "        queue->first = entry->next;\n    if (entry->next)",
         "        queue->first = NULL;\n    if (entry->next)"),
    ]),
    "match-mask": ("a receive that chooses takes the next message, whatever its tag", [
        ("src/message/rx_state.c", "    return ((receive->tag ^ tag) & ~receive->ignore) == 0;",
         "    (void)receive;\n    (void)tag;\n    return true;"),
    ]),
    "match-cancel": ("messages wait for one before them that was canceled ahead of its arrival", [
        ("src/message/matching.c", "    bool canceled = is_canceled(rx, rx->next);",
         "    bool canceled = false && is_canceled(rx, rx->next);"),
    ]),
    "range-short": ("the first range of a segment that is missing is a packet too short", [
        ("src/message/rx_messages.c", "    sdr_recv_close(segment->handle, &arrived);",
         "    sdr_recv_close(segment->handle, &arrived);\n"
         "    if (message->arrived)\n"
         "        lh_bitmap_set_range(message->arrived, lh_bitmap_next_clear(message->arrived,\n"
         "                            arrived.first + arrived.packets - 1, arrived.first), 1);"),
    ]),
    "share-high": ("a packet more than came counts as arrived", [
        ("src/message/rx_messages.c", "        arrived_missing(&arrived, &missing);",
         "        arrived_missing(&arrived, &missing);\n"
         "    if (missing > rx->attr->mtu_bytes)\n"
         "        missing -= rx->attr->mtu_bytes;"),
    ]),
    "deadline-ignored": ("a deadline that is over ends nothing", [
        ("src/message/rx_messages.c",
         "return rx->active_at > now || message->end == LH_END_DEADLINE ? NULL : message;", "return NULL;"),
    ]),
    "preempt-lost": ("a message that a later one preempts is closed, and never ends", [
        ("src/message/rx_messages.c", "    if (recovers(rx, segment, message))\n",
         "    if (end == LH_END_PREEMPTED)\n"
         "        rx_close_segment(rx, segment, SEGMENT_DONE);\n"
         "    else if (recovers(rx, segment, message))\n"),
    ]),
    "stale-bytes": ("what is missing is not set to 0", [
        ("src/message/rx_messages.c", "    if (rx->attr->zero_missing)", "    if (false)"),
    ]),
    "late-unanswered": ("who disagrees with ranks that are done is not told", [
        ("src/group/mesh.c", "        deliver_late_signature(group, rank, message);",
         "        return DELIVERED;"),
    ]),
    "sum-by-rank": ("a direct all-reduce adds a rank's own by its rank, not by its place", [
        ("src/group/group_operation.c", "return op->shape.map ? op->shape.map->place_of[rank] : rank;",
         "(void)op;\n    return rank;"),
    ]),
    "report-dropped": ("who is left is not known of members that made the group before", [
        ("src/group/mesh.c", "return tag->group >= mesh->next_group ? TOO_EARLY : DELIVERED;",
         "return tag->group >= mesh->next_group && tag->kind != TAG_AGREE ? TOO_EARLY : DELIVERED;"),
    ]),
    "left-untold": ("a rank that others report to have failed, and lives, is not told", [
        ("src/group/mesh.c", "        announce_exclusion(link);", "        (void)announce_exclusion;"),
    ]),
    "report-unanswered": ("who has agreed does not answer who knows of one more failure", [
        ("src/group/agreement.c", "        send_report(agreement, rank);\n    agreement->taken",
         "        ;\n    agreement->taken"),
    ]),
    "send-early": ("blocks leave before what has to be added, or received, has come", [
        ("src/collective/operation_progress.c", "if (next < piece->before) {",
         "if (next < piece->before && i > 0) {"),
    ]),
    "quotient-twice": ("averages are divided with each contribution", [
        ("src/collective/operation_progress.c",
         "return piece->reduce && progress", "return piece->reduce || progress"),
    ]),
    "blame-next": ("another rank than the one that died is named", [
        ("src/group/mesh.c",
         "    struct notice notice = {.error = error, .rank = rank};\n"
         "    snprintf(notice.text, sizeof notice.text, \"%s: rank",
         "    struct notice notice = {.error = error, .rank = (rank + 1) % op->members->size};\n"
         "    snprintf(notice.text, sizeof notice.text, \"%s: rank"),
    ]),
    "group-stale": ("missing bytes of a bounded collective are not set to 0", [
        ("src/group/bounded_operation.c", "        memset(to, 0, bytes);", "        (void)to;"),
    ]),
    "group-endless": ("nothing times out by the deadline of a bounded collective", [
        ("src/group/bounded_operation.c", "int error = at <= now ? give_up(op, i) : 0;",
         "int error = at == 1 ? give_up(op, i) : 0;"),
    ]),
    "lost-counted": ("what is lost of a piece counts as a contribution", [
        ("src/group/bounded_operation.c", "uint16_t count = lost ? 0 : count_in(op, arrival, index);",
         "uint16_t count = count_in(op, arrival, index);"),
    ]),
    "late-piece": ("a piece is taken that has timed out", [
        ("src/group/group_operation.c", "    if (arrival->given_up)\n        return 0;\n", ""),
    ]),
    "counts-even": ("a piece counts as if all of it had the contributions of its first granule", [
        ("src/group/bounded_operation.c", "same = same && count == first;", ";"),
    ]),
    "group-deadline": ("a collective's deadline ends nothing", [
        ("src/group/mesh.c", "if (op->state == OP_RUNNING && now >= op->deadline_at)", "if (false)"),
    ]),
    "buffer-lost": ("a buffer whose block was used is not posted again", [
        ("src/group/group_operation.c", "        link_repost(arrival->bounce);", "        (void)0;"),
    ]),
    "input-summed": ("a rank that is not the root reduces into its input", [
        ("src/collective/operation_progress.c",
         "    case COLLECTIVE_REDUCE:\n    case COLLECTIVE_GATHER:\n        return (layout->rank",
         "    case COLLECTIVE_REDUCE:\n        if (layout->rank != layout->root)\n"
         "            return (uint8_t *)(uintptr_t)layout->in + before(layout, block);\n"
         "        /* fall through */\n"
         "    case COLLECTIVE_GATHER:\n        return (layout->rank"),
    ]),
    "count-unsigned": ("ranks need not agree on the number of elements", [
        ("src/collective/operation_digest.c",
         ": numbers_differ(c, a->form == CALL_COMPARE ? \"buffers\" : \"count\", a->count, b->count);",
         ": false;"),
    ]),
    "parts-unsigned": ("ranks need not agree on the counts of what the lower one gets", [
        ("src/collective/operation_digest.c", "return numbers_differ(c, what, a->returned, b->count);",
         "return false;"),
    ]),
    "wrap-sequence": ("sequences of clear-to-sends that have wrapped count as older", [
        ("src/sdr/send_queue.c", "return (int32_t)(a - b) < 0;", "return a < b;"),
    ]),
}


def check(root, names):
    """Complaints about replacements that do not fit the source."""
    wrong = []
    for name in names:
        for file, old, _ in BUGS[name][1]:
            count = (root / file).read_text().count(old)
            if count != 1:
                wrong.append(f"{name}: {file} has {count} times, not once: {old!r}; adapt planted.py")
    return wrong


def copy_tree(place):
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True).stdout.decode().split("\0")
    for file in filter(None, files):
        if not (ROOT / file).is_file():
            continue
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, place / file)


def build(place):
    # Without warnings as errors: a planted bug may leave something unused.
    steps = (["cmake", "-S", ".", "-B", "build", "-DLH_BENCH=OFF"],
             ["cmake", "--build", "build", "--parallel", "--target", "test_world"])
    for step in steps:
        done = subprocess.run(step, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(step)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def hunt(place, first, most):
    """(seed, words) of the first seed that fails, or None. Ever larger batches, from the first one."""
    size, end = 64, first + most
    while first < end:
        size = min(size, end - first)
        command = [place / "build/tests/world/test_world", "--first", str(first), "--seeds", str(size),
                   "--no-shrink"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        found = sorted((int(seed), words) for seed, words in
                       re.findall(r"^seed (\d+): (.*)$", run.stdout, re.MULTILINE))
        if found:
            return found[0]
        if run.returncode != 0:
            sys.exit(f"test_world failed without naming a seed:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
        first, size = first + size, size * 4
    return None


def plant(place, name):
    saved = {}
    for file, old, new in BUGS[name][1]:
        saved.setdefault(file, (place / file).read_text())
        (place / file).write_text((place / file).read_text().replace(old, new))
    return saved


def first_seed(name):
    if name in DEADLINES:
        return DEADLINE_SEEDS
    if name in GROUPS:
        return GROUP_SEEDS
    if name in BOUNDED_GROUPS:
        return BOUNDED_GROUP_SEEDS
    return ENGINE_SEEDS if name in ENGINES else CONTROLLER_SEEDS if name in CONTROLLERS else 1


def hunt_all(place, names, most):
    missed = 0
    copy_tree(place)
    build(place)
    if healthy := hunt(place, 1, 64) or hunt(place, CONTROLLER_SEEDS, 64) or hunt(place, ENGINE_SEEDS, 64) \
            or hunt(place, DEADLINE_SEEDS, 64) or hunt(place, GROUP_SEEDS, 64):
        sys.exit(f"the product fails by itself: seed {healthy[0]}: {healthy[1]}")
    for name in names:
        saved = plant(place, name)
        build(place)
        found = hunt(place, first_seed(name), most)
        if found:
            print(f"{name:12} found at seed {found[0]}: {found[1]}", flush=True)
        else:
            print(f"{name:12} NOT FOUND in {most} seeds ({BUGS[name][0]})", flush=True)
            missed += 1
        for file, text in saved.items():
            (place / file).write_text(text)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BUGS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seeds", type=int, default=20000)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    names = options.names or list(BUGS)
    if unknown := set(names) - set(BUGS):
        parser.error(f"no bug is called {', '.join(unknown)}; there are {', '.join(BUGS)}")
    if wrong := check(ROOT, names):
        sys.exit("\n".join(wrong))
    if options.check:
        print(f"{len(names)} bugs fit the source")
        return
    place = pathlib.Path(tempfile.mkdtemp(prefix="longhaul-planted-"))
    try:
        missed = hunt_all(place, names, options.seeds)
    finally:
        if options.keep:
            print(f"the copy is in {place}")
        else:
            shutil.rmtree(place)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
