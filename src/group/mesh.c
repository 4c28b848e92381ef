/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/mesh.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <longhaul/sdr_ext.h>

#include "base/error.h"
#include "base/min_max.h"
#include "group/bounded_operation.h"
#include "group/group_operation.h"
#include "message/completion_queue.h"
#include "message/engine.h"

/* ---- mesh ------------------------------------------------------------------------------------------ */

#define ENTRIES 32u
/* Memory for a peer's messages that are early, besides as much as its buffers have: some 100,000 operations
 * that it has begun before this rank. A peer that keeps to may_send() stays below. */
#define EARLY_BYTES_MAX ((size_t)16 << 20)

lh_time mesh_now(const struct mesh *mesh)
{
    return lh_sdr_now(mesh->engine->context);
}

/* ---- failures ---------------------------------------------------------------------------------------- */

static bool may_tell(const struct link *link)
{
    return !link->error && link->begun;
}

static void announce(struct lh_group *group, uint32_t operation, const struct notice *notice)
{
    const struct tag tag = {.group = group->members.id, .kind = TAG_ABORT, .operation = operation};
    uint8_t body[NOTICE_BYTES_MAX];
    size_t bytes = notice_encode(notice, body);
    for (uint32_t r = 0; r < group->members.size; r++)
        if (r != group->members.rank && may_tell(member_link(&group->members, r)))
            link_send_control(member_link(&group->members, r), &tag, body, bytes);
}

static struct notice notice_of(const struct lh_collective *op, uint32_t rank, int error)
{
    struct notice notice = {.error = error, .rank = rank};
    snprintf(notice.text, sizeof notice.text, "%s: rank %u has %s: %s", op->schedule->name, rank,
             error == -LH_ECLOSED ? "left the group" : "failed", lh_strerror(error));
    return notice;
}

/* Of a rank that has failed, or has left while something of it is needed. */
static void fail_with(struct lh_collective *op, uint32_t rank, int error)
{
    const struct notice notice = notice_of(op, rank, error);
    op_fail(op, mesh_now(op->group->mesh), &notice);
    if (error == -LH_ECLOSED) /* others may need nothing of it, and do of this rank */
        announce(op->group, op->number, &notice);
}

static void fail_operations(struct mesh *mesh, uint32_t mesh_rank)
{
    int error = mesh->links[mesh_rank].error;
    for (struct lh_group *group = mesh->first_group; group; group = group->next) {
        uint32_t rank = member_of_mesh(&group->members, mesh_rank);
        for (struct lh_collective *op = group->first_op; op && rank != LH_NO_RANK; op = op->next)
            if (op->state == OP_RUNNING && (error != -LH_ECLOSED || op_needs(op, rank)))
                fail_with(op, rank, error);
    }
}

static void announce_failure(struct mesh *mesh, uint32_t failed)
{
    mesh->links[failed].announced = true;
    const struct notice notice = {.error = mesh->links[failed].error, .rank = mesh->links[failed].number};
    const struct tag tag = {.kind = TAG_FAILED};
    uint8_t body[NOTICE_BYTES_MAX];
    size_t bytes = notice_encode(&notice, body);
    for (uint32_t r = 0; r < mesh->size; r++)
        if (r != mesh->rank && may_tell(&mesh->links[r]))
            link_send_control(&mesh->links[r], &tag, body, bytes);
}

/* The rank may live, and its connection may work: it must learn that its messages are dropped from now on.
 * The backlog for it is useless, and may take all of the queue. */
static void announce_exclusion(struct link *link)
{
    const struct notice notice = {.error = -LH_EPEER, .rank = link->number};
    const struct tag tag = {.kind = TAG_FAILED};
    uint8_t body[NOTICE_BYTES_MAX];
    size_t bytes = notice_encode(&notice, body);
    link_drop_backlog(link);
    if (link->begun)
        link_send_control(link, &tag, body, bytes);
}

static void report_failed(struct mesh *mesh)
{
    for (struct lh_group *group = mesh->first_group; group; group = group->next)
        agreement_on_link_failed(&group->agreement);
}

/* announces: others may not know; also of what another has found, who may have died before it told all. */
static void on_link_failed(struct mesh *mesh, struct link *link, int error, bool announces)
{
    if (link->error && (link->error != -LH_ECLOSED || error == -LH_ECLOSED))
        return;
    link->error = error;
    if (error != -LH_ECLOSED && !link->closed)
        announce_exclusion(link);
    fail_operations(mesh, link->rank);
    if (announces && error != -LH_ECLOSED)
        announce_failure(mesh, link->rank);
    report_failed(mesh);
    pthread_cond_broadcast(&mesh->changed);
}

/* Who takes nothing has failed for the others, though it lives. */
static void fail_overflowed(struct mesh *mesh)
{
    for (uint32_t r = 0; r < mesh->size; r++)
        if (mesh->links[r].overflowed && !mesh->links[r].error)
            on_link_failed(mesh, &mesh->links[r], -LH_EPEER, true);
}

void mesh_announce_failed(struct mesh *mesh, uint32_t rank)
{
    if (!mesh->links[rank].announced)
        announce_failure(mesh, rank);
    fail_overflowed(mesh);
}

void mesh_abort(struct lh_collective *op, int error, uint32_t rank, const char *text)
{
    struct notice notice = {.error = error, .rank = rank};
    if (op->state == OP_DONE)
        return;
    snprintf(notice.text, sizeof notice.text, "%s", text);
    op_fail(op, mesh_now(op->group->mesh), &notice);
    announce(op->group, op->number, &notice);
    fail_overflowed(op->group->mesh);
}

struct link *mesh_find_number(struct mesh *mesh, uint32_t number)
{
    for (uint32_t r = 0; r < mesh->size; r++)
        if (r != mesh->rank && mesh->links[r].number == number && !mesh->links[r].vacant)
            return &mesh->links[r];
    return NULL;
}

/* Who only joins has no say on members: it may not reach all. */
static void on_failed_notice(struct mesh *mesh, struct link *link, const struct notice *notice)
{
    struct link *of = mesh_find_number(mesh, notice->rank);
    if (notice->rank == mesh->number) /* to that peer this rank is gone */
        on_link_failed(mesh, link, -LH_EPEER, false);
    else if (of && !link->error && !link->joins)
        on_link_failed(mesh, of, notice->error, true);
}

void mesh_exclude(struct mesh *mesh, uint32_t rank)
{
    on_link_failed(mesh, &mesh->links[rank], -LH_EPEER, false);
}

/* ---- places ------------------------------------------------------------------------------------------ */

void mesh_use_id(struct mesh *mesh, uint32_t id)
{
    uint32_t next = id < 1u << TAG_GROUP_BITS ? id + 1 : 1u << TAG_GROUP_BITS;
    if (mesh->next_group < next)
        mesh->next_group = next;
}

static bool is_used(const struct mesh *mesh, uint32_t rank)
{
    const struct lh_group *group = mesh->first_group;
    while (group && member_of_mesh(&group->members, rank) == LH_NO_RANK)
        group = group->next;
    return group != NULL;
}

/* Nothing comes from closed links any more but what is in the queue. */
static void free_closed(struct mesh *mesh)
{
    for (uint32_t r = 0; r < mesh->size && mesh->closed_links > 0; r++)
        if (mesh->links[r].closed) {
            link_free(&mesh->links[r]);
            mesh->closed_links--;
        }
}

void mesh_close_unused(struct mesh *mesh)
{
    for (uint32_t r = 0; r < mesh->size; r++) {
        struct link *link = &mesh->links[r];
        if (r == mesh->rank || !link->error || link->closed || link->vacant || is_used(mesh, r))
            continue;
        ahead_discard_link(&mesh->ahead, link);
        link_close(link);
        link->closed = true;
        mesh->closed_links++;
    }
    if (mesh->closed_links > 0)
        waiting_wake(mesh);
}

/* ---- messages ---------------------------------------------------------------------------------------- */

struct message {
    struct tag tag;
    struct link *link;
    const uint8_t *data;
    size_t bytes;
    struct bounce *bounce; /* that has it; NULL: no longer */
    struct loss *loss;     /* what is missing of it; NULL: nothing, or no longer */
};

enum delivery { DELIVERED, TOO_EARLY };

static struct lh_group *find_group(struct mesh *mesh, uint32_t id)
{
    struct lh_group *group = mesh->first_group;
    while (group && group->members.id != id)
        group = group->next;
    return group;
}

static struct lh_collective *find_operation(struct lh_group *group, uint32_t number)
{
    struct lh_collective *op = group->first_op;
    while (op && (op->number != number || op->state != OP_RUNNING))
        op = op->next;
    return op;
}

/* False: the peer counts as failed. */
static bool read_signature(struct mesh *mesh, const struct message *message, struct signature *signature)
{
    if (signature_decode(message->data, message->bytes, signature))
        return true;
    on_link_failed(mesh, message->link, -LH_EPROTOCOL, true);
    return false;
}

static struct notice disagreement(uint32_t rank, const char *what)
{
    struct notice notice = {.error = -LH_EPROTOCOL, .rank = rank};
    snprintf(notice.text, sizeof notice.text,
             "ranks disagree: %s (all ranks make the same calls in the same order)", what);
    return notice;
}

static void deliver_signature(struct lh_collective *op, uint32_t rank, const struct message *message)
{
    char text[LH_COLLECTIVE_MESSAGE_MAX / 2];
    struct signature signature;
    if (!read_signature(op->group->mesh, message, &signature) ||
        op_on_signature(op, rank, &signature, text, sizeof text) == 0)
        return;
    const struct notice notice = disagreement(rank, text);
    mesh_abort(op, notice.error, notice.rank, notice.text);
}

/* Of an operation that is over here: what it exchanged with others did not need this rank, so it waits for
 * what never comes. */
static void deliver_late_signature(struct lh_group *group, uint32_t rank, const struct message *message)
{
    char text[LH_COLLECTIVE_MESSAGE_MAX / 2];
    const struct signature *own = past_find(&group->operations.past, message->tag.operation);
    struct signature signature;
    if (!own || !read_signature(group->mesh, message, &signature) ||
        !signature_differs(own, group->members.rank, &signature, rank, text, sizeof text))
        return;
    const struct notice notice = disagreement(rank, text);
    announce(group, message->tag.operation, &notice);
}

/* A lane has ended. A rank that leaves knows that all it sent has arrived, but some of that may wait to be
 * taken, or decoded in another lane: take_entries() sees to it. */
static void on_lane_ended(struct mesh *mesh, struct link *link, int error)
{
    if (error == -LH_ECLOSED)
        link->leaving = true;
    else
        on_link_failed(mesh, link, error, true);
}

/* What the connections to a rank end with. */
static bool ends_link(int error)
{
    return error == -LH_EPEER || error == -LH_ECLOSED || error == -LH_EPROTOCOL || error == -LH_EPATH;
}

/* Of what an operation called. rank: whose link failed, or whom it is about; LH_NO_RANK: no one. */
static void fail_call(struct lh_collective *op, int error, uint32_t rank)
{
    if (rank == LH_NO_RANK || !ends_link(error)) {
        mesh_abort(op, error, rank, lh_last_error());
        return;
    }
    struct link *link = member_link(op->members, rank);
    if (error == -LH_ECLOSED && !link->error) {
        on_lane_ended(op->group->mesh, link, error);
        return;
    }
    const struct notice notice = notice_of(op, rank, error);
    on_link_failed(op->group->mesh, link, error, true);
    mesh_abort(op, error, rank, notice.text);
}

static void run(struct lh_collective *op, lh_time now)
{
    uint32_t rank;
    int error = op_run(op, now, &rank);
    if (error)
        fail_call(op, error, rank);
}

static int take_piece(struct lh_collective *op, uint32_t rank, struct message *message)
{
    struct op_piece piece = {.piece = message->tag.piece,
                             .data = message->data,
                             .bytes = message->bytes,
                             .bounce = message->bounce,
                             .loss = message->loss};
    if (message->tag.kind == TAG_COUNTS)
        return op_on_counts(op, rank, &piece);
    int error = op_on_piece(op, rank, &piece);
    message->bounce = piece.bounce;
    message->loss = piece.loss;
    return error;
}

static void deliver_piece(struct lh_collective *op, uint32_t rank, struct message *message)
{
    const struct bounce *bounce = message->bounce;
    int error = take_piece(op, rank, message);
    if (error) {
        mesh_abort(op, error, rank, lh_last_error());
        return;
    }
    run(op, mesh_now(op->group->mesh));
    if (op->state == OP_RUNNING && bounce && !message->bounce)
        error = op_unload(op, rank, message->tag.piece);
    if (error)
        mesh_abort(op, error, LH_NO_RANK, lh_last_error());
}

static void deliver_over(struct lh_collective *op, uint32_t rank, const struct message *message)
{
    int error = bounded_on_over(op, rank, message->data, message->bytes);
    if (error)
        mesh_abort(op, error, rank, lh_last_error());
    else
        run(op, mesh_now(op->group->mesh));
}

void mesh_take_reports(struct lh_group *group)
{
    uint32_t rank = 0;
    while (agreement_next_failed(&group->agreement,
                                 &rank)) /* each fails once; to others it may have left in order */
        on_link_failed(group->mesh, member_link(&group->members, rank++), -LH_EPEER, false);
    pthread_cond_broadcast(&group->mesh->changed);
}

static void deliver_report(struct lh_group *group, uint32_t rank, const struct message *message)
{
    if (!agreement_on_report(&group->agreement, rank, message->data, message->bytes)) {
        on_link_failed(group->mesh, message->link, -LH_EPROTOCOL, true);
        return;
    }
    agreement_answer(&group->agreement, rank);
    mesh_take_reports(group);
}

static void deliver_proposal(struct lh_group *group, uint32_t rank, const struct message *message)
{
    int error =
        deadlines_on_proposal(&group->operations, rank, message->tag.piece, message->data, message->bytes);
    if (error == -LH_EPROTOCOL)
        on_link_failed(group->mesh, message->link, error, true);
}

void mesh_refuse(struct lh_group *group, int error, const char *text)
{
    struct notice notice = {.error = error, .rank = group->members.rank};
    const struct tag tag = {.group = group->members.id, .kind = TAG_REFUSED, .operation = TAG_NO_OPERATION};
    uint8_t body[NOTICE_BYTES_MAX];
    snprintf(notice.text, sizeof notice.text, "%s", text);
    size_t bytes = notice_encode(&notice, body);
    for (uint32_t r = 0; r < group->members.size; r++)
        if (group->members.of_mesh[r] != group->mesh->rank && may_tell(member_link(&group->members, r)))
            link_send_control(member_link(&group->members, r), &tag, body, bytes);
}

static void deliver_refusal(struct lh_group *group, uint32_t rank, const struct message *message)
{
    struct notice notice;
    if (!notice_decode(message->data, message->bytes, &notice)) {
        on_link_failed(group->mesh, message->link, -LH_EPROTOCOL, true);
        return;
    }
    if (group->refused.error)
        return;
    group->refused = (struct notice){.error = notice.error, .rank = rank};
    snprintf(group->refused.text, sizeof group->refused.text, "group: rank %u is not in it: %.*s", rank,
             LH_COLLECTIVE_MESSAGE_MAX / 2, notice.text);
    for (struct lh_collective *op = group->first_op; op; op = op->next)
        if (op->state == OP_RUNNING)
            op_fail(op, mesh_now(group->mesh), &group->refused);
    pthread_cond_broadcast(&group->mesh->changed);
}

/* Of no operation. */
static void deliver_to_group(struct lh_group *group, uint32_t rank, const struct message *message)
{
    if (message->tag.kind == TAG_AGREE)
        deliver_report(group, rank, message);
    else if (message->tag.kind == TAG_REFUSED)
        deliver_refusal(group, rank, message);
    else
        deliver_proposal(group, rank, message);
}

static enum delivery deliver(struct mesh *mesh, struct message *message)
{
    const struct tag *tag = &message->tag;
    struct lh_group *group = find_group(mesh, tag->group);
    uint32_t rank = group ? member_of_mesh(&group->members, message->link->rank) : LH_NO_RANK;
    struct notice notice;
    if (!group)
        return tag->group >= mesh->next_group ? TOO_EARLY : DELIVERED;
    if (rank == LH_NO_RANK)
        return DELIVERED;
    if (tag->kind == TAG_AGREE || tag->kind == TAG_TIMEOUT || tag->kind == TAG_REFUSED) {
        deliver_to_group(group, rank, message);
        return DELIVERED;
    }
    struct lh_collective *op = find_operation(group, tag->operation);
    if (!op && tag_operation_ahead(tag->operation, group->next_operation) >= 0)
        return TOO_EARLY;
    if (tag->kind == TAG_OVER)
        link_withdraw_of(message->link, tag->group, tag->operation);
    if (!op && tag->kind == TAG_SIGNATURE)
        deliver_late_signature(group, rank, message);
    if (!op)
        return DELIVERED;
    bool is_piece = tag->kind == TAG_PIECE || tag->kind == TAG_COUNTS;
    if ((is_piece || tag->kind == TAG_OVER) && !op->peers[rank].agreed)
        return TOO_EARLY;
    if (is_piece)
        deliver_piece(op, rank, message);
    else if (tag->kind == TAG_OVER)
        deliver_over(op, rank, message);
    else if (tag->kind == TAG_SIGNATURE)
        deliver_signature(op, rank, message);
    else if (notice_decode(message->data, message->bytes, &notice))
        op_fail(op, mesh_now(mesh), &notice);
    return DELIVERED;
}

/* ---- what comes early -------------------------------------------------------------------------------- */

/* A peer that does not wait for this rank goes on sending: what may be lost is, from so many bytes on. */
static bool is_lost(const struct message *message, size_t maximum)
{
    const struct link *link = message->link;
    bool partial = message->bounce && message->bounce->lane == LANE_BOUNDED;
    bool counts = message->tag.kind == TAG_COUNTS && link->lanes[LANE_BOUNDED].connection;
    return (partial || counts) && link->kept_bytes + ahead_cost(message->bytes) > maximum;
}

/* What came of an operation that has failed at the peer since is not needed. */
static void keep_early(struct mesh *mesh, struct message *message)
{
    struct link *link = message->link;
    const struct tag *tag = &message->tag;
    size_t maximum = EARLY_BYTES_MAX + (size_t)link->lanes[LANE_BULK].places * link->block_bytes;
    struct ahead_queue *queue = ahead_find(&mesh->ahead, link, tag->group, tag->operation);
    bool aborts = tag->kind == TAG_ABORT;
    if (queue && queue->failed)
        return;
    if (aborts)
        ahead_discard(ahead_detach(&mesh->ahead, link, tag->group, tag->operation));
    if (queue && !aborts && is_lost(message, maximum / 2)) {
        queue->lossy = true;
        return;
    }
    if (link->kept_bytes + ahead_cost(message->bytes) > maximum) {
        on_link_failed(mesh, link, -LH_EPROTOCOL, true);
        return;
    }
    bool copied = !message->bounce || message->bounce->lane == LANE_SMALL || message->bytes == 0 ||
                  link_is_short(link, message->bounce->lane);
    if (ahead_keep(&mesh->ahead, link, tag, message->data, message->bytes, copied ? NULL : message->bounce,
                   message->loss) != 0) {
        /* the peer's operation ends by its deadline, or with this group */
        on_link_failed(mesh, link, -LH_ENOMEM, true);
        return;
    }
    if (!copied)
        message->bounce = NULL;
    message->loss = NULL;
    if (aborts)
        ahead_find(&mesh->ahead, link, tag->group, tag->operation)->failed = true;
}

/* Those that are not early any more. Returns the number of signatures: pieces may have come before them. */
static uint32_t deliver_once(struct mesh *mesh, struct ahead_queue *queue)
{
    struct ahead **at = &queue->first;
    uint32_t signatures = 0;
    while (*at) {
        struct ahead *early = *at;
        struct message message = {.tag = early->tag,
                                  .link = queue->link,
                                  .data = early->bounce ? early->bounce->memory : early->data,
                                  .bytes = early->bytes,
                                  .bounce = early->bounce,
                                  .loss = early->loss};
        if (deliver(mesh, &message) == TOO_EARLY) {
            at = &early->next;
            continue;
        }
        signatures += early->tag.kind == TAG_SIGNATURE;
        loss_free(message.loss);
        if (message.bounce)
            link_repost(message.bounce);
        ahead_remove(queue, at);
    }
    return signatures;
}

/* All that was kept has been delivered: what was not counts as lost. */
static void lose_others(struct mesh *mesh, const struct ahead_queue *queue)
{
    struct lh_group *group = find_group(mesh, queue->group);
    struct lh_collective *op = group ? find_operation(group, queue->operation) : NULL;
    if (!op || !op->bounded)
        return;
    int error = bounded_on_lost(op, member_of_mesh(&group->members, queue->link->rank));
    if (error)
        mesh_abort(op, error, LH_NO_RANK, lh_last_error());
    else
        run(op, mesh_now(mesh));
}

/* What a rank sent for an operation before. */
static void deliver_early(struct mesh *mesh, const struct link *link, uint32_t group, uint32_t operation)
{
    struct ahead_queue *queue = ahead_detach(&mesh->ahead, link, group, operation);
    while (queue && deliver_once(mesh, queue) > 0)
        ; /* each takes signatures out */
    if (queue && queue->first) {
        ahead_attach(&mesh->ahead, queue);
        return;
    }
    if (queue && queue->lossy)
        lose_others(mesh, queue);
    free(queue);
}

void mesh_take_early_reports(struct lh_group *group)
{
    for (uint32_t r = 0; r < group->members.size && group->mesh->ahead.queues > 0; r++)
        if (r != group->members.rank)
            deliver_early(group->mesh, member_link(&group->members, r), group->members.id,
                          TAG_NO_OPERATION);
}

void mesh_forget(const struct lh_collective *op)
{
    struct lh_group *group = op->group;
    for (uint32_t r = 0; r < group->members.size && group->mesh->ahead.queues > 0; r++)
        if (r != group->members.rank)
            ahead_discard(ahead_detach(&group->mesh->ahead, member_link(&group->members, r),
                                       group->members.id, op->number));
}

/* ---- entries ----------------------------------------------------------------------------------------- */

static void on_message(struct mesh *mesh, struct message *message)
{
    struct notice notice;
    if (message->tag.kind == TAG_PIECE && message->bounce->lane == LANE_BULK)
        link_on_piece(message->link, &message->tag, message->bytes, mesh_now(mesh));
    bool known = message->tag.kind != TAG_FAILED || notice_decode(message->data, message->bytes, &notice);
    if (!known)
        on_link_failed(mesh, message->link, -LH_EPROTOCOL, true);
    else if (message->tag.kind == TAG_FAILED)
        on_failed_notice(mesh, message->link, &notice);
    else if (message->tag.kind == TAG_HELLO)
        message->link->hello = true;
    else if (deliver(mesh, message) == TOO_EARLY)
        keep_early(mesh, message);
    else if (message->tag.kind == TAG_SIGNATURE)
        deliver_early(mesh, message->link, message->tag.group, message->tag.operation);
}

static void on_received(struct mesh *mesh, const struct lh_completion *entry)
{
    struct bounce *bounce = (struct bounce *)(uintptr_t)entry->user;
    struct message message = {.link = bounce->link,
                              .data = bounce->memory,
                              .bytes = (size_t)entry->result.bytes,
                              .bounce = bounce,
                              .loss = link_on_received(bounce, &entry->result)};
    if (entry->result.error && entry->result.error != -LH_ECANCELED) {
        on_lane_ended(mesh, message.link, entry->result.error);
        return;
    }
    if (!entry->result.error && message.link->error &&
        (message.link->error != -LH_ECLOSED || message.link->closed))
        message.tag = (struct tag){0}; /* of a rank that counts as failed, or whose memory is freed next */
    else if (!entry->result.error && !tag_decode(entry->result.tag, &message.tag))
        on_link_failed(mesh, message.link, -LH_EPROTOCOL, true);
    else if (!entry->result.error)
        on_message(mesh, &message);
    loss_free(message.loss);
    if (message.bounce)
        link_repost(message.bounce);
}

/* Handles entries of the queue. */
static void mesh_on_entries(struct mesh *mesh, const struct lh_completion *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct lh_completion *entry = &entries[i];
        if (entry->operation == LH_OPERATION_RECV) {
            on_received(mesh, entry);
        } else if (entry->operation == LH_OPERATION_SEND) {
            struct sent *sent = (struct sent *)(uintptr_t)entry->user;
            struct link *link = sent->link;
            link_on_sent(sent);
            if (entry->result.error && entry->result.error != -LH_ECANCELED)
                on_lane_ended(mesh, link, entry->result.error);
        }
    }
    if (mesh->growing) /* another thread may wait for newcomers, and this one polls */
        pthread_cond_broadcast(&mesh->changed);
}

/* ---- operations -------------------------------------------------------------------------------------- */

uint32_t mesh_awaited(const struct lh_collective *op)
{
    uint32_t rank = LH_NO_RANK;
    for (uint32_t r = 0; r < op->members->size && rank == LH_NO_RANK; r++)
        if (op->peers[r].left > 0 && !op->peers[r].agreed)
            rank = r;
    for (uint32_t r = 0; r < op->members->size && rank == LH_NO_RANK; r++)
        if (op->peers[r].left > 0)
            rank = r;
    return rank;
}

static void on_deadline_expired(struct lh_collective *op)
{
    char text[LH_COLLECTIVE_MESSAGE_MAX];
    uint32_t rank = mesh_awaited(op);
    if (rank == LH_NO_RANK)
        snprintf(text, sizeof text, "%s: deadline passed", op->schedule->name);
    else
        snprintf(text, sizeof text,
                 "%s: deadline passed at rank %u: %u blocks of rank %u missing, which has %s",
                 op->schedule->name, op->members->rank, op->peers[rank].left, rank,
                 op->peers[rank].agreed ? "begun" : "not begun");
    mesh_abort(op, -LH_ETIMEDOUT, rank, text);
}

/* Takes entries of the queue as long as there are more. */
static uint32_t take_queued(struct mesh *mesh)
{
    struct lh_completion entries[ENTRIES];
    uint32_t sum = 0;
    int n = ENTRIES;
    while (n == (int)ENTRIES) { /* the queue is bounded, and reposted receives take a while */
        n = lh_poll(mesh->queue, entries, ENTRIES);
        if (n <= 0)
            break;
        mesh_on_entries(mesh, entries, (uint32_t)n);
        sum += (uint32_t)n;
    }
    return sum;
}

/* NULL: none leaves. */
static struct link *leaving_link(const struct mesh *mesh)
{
    for (uint32_t r = 0; r < mesh->size; r++)
        if (mesh->links[r].leaving && !mesh->links[r].error)
            return &mesh->links[r];
    return NULL;
}

static uint32_t take_entries(struct mesh *mesh)
{
    uint32_t sum = take_queued(mesh);
    struct link *link;
    while ((link = leaving_link(mesh)) != NULL) { /* at most one for each rank */
        link_finish_decoding(link);
        sum += take_queued(mesh);
        on_link_failed(mesh, link, -LH_ECLOSED, true);
    }
    return sum;
}

static void expire(struct lh_collective *op, lh_time now)
{
    if (op->bounded && bounded_end_due(op, now))
        take_entries(op->group->mesh);
    int error = op->bounded && op->state == OP_RUNNING ? bounded_on_expired(op, now) : 0;
    if (error)
        mesh_abort(op, error, LH_NO_RANK, lh_last_error());
}

static void withdraw_late(struct mesh *mesh, lh_time now)
{
    for (uint32_t r = 0; r < mesh->size; r++)
        link_withdraw_late(&mesh->links[r], now);
}

static void run_all(struct mesh *mesh)
{
    lh_time now = mesh_now(mesh);
    fail_overflowed(mesh);
    withdraw_late(mesh, now);
    for (struct lh_group *group = mesh->first_group; group; group = group->next)
        for (struct lh_collective *op = group->first_op; op; op = op->next) {
            if (op->state == OP_RUNNING)
                expire(op, now);
            if (op->state == OP_RUNNING)
                run(op, now);
            if (op->state == OP_RUNNING && now >= op->deadline_at)
                on_deadline_expired(op);
        }
}

uint32_t mesh_poll(struct mesh *mesh)
{
    uint32_t sum = take_entries(mesh);
    run_all(mesh);
    if (mesh->closed_links > 0 && !mesh->polling) { /* no thread has entries of them */
        sum += take_entries(mesh);
        free_closed(mesh);
    }
    return sum;
}

lh_time mesh_next_deadline(const struct mesh *mesh)
{
    lh_time next = LH_TIME_NEVER;
    for (const struct lh_group *group = mesh->first_group; group; group = group->next)
        for (const struct lh_collective *op = group->first_op; op; op = op->next) {
            if (op->state == OP_RUNNING)
                lh_keep_earlier(&next, op->deadline_at);
            if (op->state == OP_RUNNING && op->bounded)
                lh_keep_earlier(&next, bounded_next(op));
        }
    for (uint32_t r = 0; r < mesh->size; r++)
        lh_keep_earlier(&next, link_withdraws_at(&mesh->links[r]));
    return next;
}

/* Ranks that have left may have sent all that it needs before. */
static void fail_without_peers(struct lh_collective *op)
{
    if (op->group->refused.error && op->state == OP_RUNNING)
        op_fail(op, mesh_now(op->group->mesh), &op->group->refused);
    for (uint32_t r = 0; r < op->members->size && op->state == OP_RUNNING; r++) {
        int error = r == op->members->rank ? 0 : member_link(op->members, r)->error;
        if (error && (error != -LH_ECLOSED || op_needs(op, r)))
            fail_with(op, r, error);
    }
}

void mesh_begin(struct lh_collective *op)
{
    struct mesh *mesh = op->group->mesh;
    lh_time now = mesh_now(mesh);
    uint32_t rank;
    int error = op_begin(op, now, &rank);
    if (error) {
        fail_call(op, error, rank);
        fail_overflowed(mesh);
        return;
    }
    fail_overflowed(mesh);
    for (uint32_t r = 0; r < op->members->size && mesh->ahead.queues > 0; r++)
        if (r != op->members->rank)
            deliver_early(mesh, member_link(op->members, r), op->members->id, op->number);
    if (op->state == OP_RUNNING)
        run(op, now);
    fail_without_peers(op);
}

/* ---- waiting --------------------------------------------------------------------------------------- */

int waiting_init(struct mesh *mesh)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return lh_fail(LH_ENOMEM, "group: no memory for a condition");
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(&mesh->changed, &attr);
    pthread_condattr_destroy(&attr);
    if (failed)
        return lh_fail(LH_ENOMEM, "group: no memory for a condition");
    if (pthread_mutex_init(&mesh->lock, NULL) != 0) {
        pthread_cond_destroy(&mesh->changed);
        return lh_fail(LH_ENOMEM, "group: no memory for a lock");
    }
    return 0;
}

void waiting_free(struct mesh *mesh)
{
    pthread_mutex_destroy(&mesh->lock);
    pthread_cond_destroy(&mesh->changed);
}

/* ---- waiting ----------------------------------------------------------------------------------------- */

/* A poll ends after that in any case. So an operation with a deadline far away, as each of PyTorch's, need
 * not wake the thread that polls. */
#define POLL_MAX_NS LH_NS_PER_S

static lh_time until(lh_time now, lh_time at)
{
    if (at == LH_TIME_NEVER)
        return LH_TIME_NEVER;
    return at > now ? at - now : 0;
}

/* For the queue, at most until `end`; the lock is free meanwhile. */
static void poll_for_all(struct mesh *mesh, lh_time now, lh_time end)
{
    struct lh_completion entries[ENTRIES];
    lh_time timeout_ns = lh_min(until(now, end), POLL_MAX_NS);
    mesh->polling = true;
    mesh->polls_until_ns = now + timeout_ns;
    pthread_mutex_unlock(&mesh->lock);
    int n = lh_queue_wait(mesh->queue, entries, ENTRIES, timeout_ns);
    pthread_mutex_lock(&mesh->lock);
    mesh->polling = mesh->woken = false;
    if (n > 0)
        mesh_on_entries(mesh, entries, (uint32_t)n);
    mesh_poll(mesh);
}

static void sleep_until_changed(struct mesh *mesh, lh_time timeout_ns)
{
    struct timespec at;
    if (timeout_ns == LH_TIME_NEVER) {
        pthread_cond_wait(&mesh->changed, &mesh->lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(timeout_ns / LH_NS_PER_S);
    at.tv_nsec += (long)(timeout_ns % LH_NS_PER_S);
    if (at.tv_nsec >= (long)LH_NS_PER_S) {
        at.tv_sec++;
        at.tv_nsec -= (long)LH_NS_PER_S;
    }
    pthread_cond_timedwait(&mesh->changed, &mesh->lock, &at);
}

int wait_until(struct mesh *mesh, bool (*is)(const void *what), const void *what, lh_time timeout_ns)
{
    lh_time now = mesh_now(mesh);
    lh_time end = timeout_ns < LH_TIME_NEVER - now ? now + timeout_ns : LH_TIME_NEVER;
    if (!mesh->polling)
        mesh_poll(mesh);
    while (!is(what)) {
        lh_time deadline = mesh_next_deadline(mesh), next = end < deadline ? end : deadline;
        now = mesh_now(mesh);
        if (now >= end)
            break;
        if (mesh->polling)
            sleep_until_changed(mesh, until(now, next));
        else
            poll_for_all(mesh, now, next);
    }
    if (!mesh->polling)
        pthread_cond_broadcast(&mesh->changed); /* another waiter polls now */
    return is(what) ? 0 : -LH_ETIMEDOUT;
}

void waiting_wake(struct mesh *mesh)
{
    struct completion_ring *ring = &mesh->queue->ring;
    const struct lh_completion nothing = {.operation = LH_OPERATION_COLLECTIVE};
    if (!mesh->polling || mesh->woken || completion_ring_reserve(ring, LH_OPERATION_COLLECTIVE) != 0)
        return; /* a full queue wakes it */
    /* Once: the queue has places for what links send. */
    mesh->woken = true;
    completion_ring_begin(ring);
    completion_ring_put(ring, &nothing);
    completion_ring_end(ring);
}

void waiting_wake_before(struct mesh *mesh, lh_time at_ns)
{
    if (mesh->polling && at_ns < mesh->polls_until_ns)
        waiting_wake(mesh);
}

/* ---- the thread -------------------------------------------------------------------------------------- */

static bool is_ending(const void *what)
{
    return ((const struct mesh *)what)->ending;
}

static void *run_thread(void *context)
{
    struct mesh *mesh = context;
    pthread_mutex_lock(&mesh->lock);
    wait_until(mesh, is_ending, mesh, LH_TIME_NEVER);
    pthread_mutex_unlock(&mesh->lock);
    return NULL;
}

int waiting_start_thread(struct mesh *mesh)
{
    int failed = pthread_create(&mesh->thread, NULL, run_thread, mesh);
    mesh->threaded = failed == 0;
    return failed ? lh_fail(LH_ESYSTEM, "group: the thread cannot start") : 0;
}

void waiting_end_thread(struct mesh *mesh)
{
    if (!mesh->threaded)
        return;
    pthread_mutex_lock(&mesh->lock);
    mesh->ending = true;
    waiting_wake(mesh);
    pthread_cond_broadcast(&mesh->changed);
    pthread_mutex_unlock(&mesh->lock);
    pthread_join(mesh->thread, NULL);
    mesh->threaded = false;
}
