/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_node.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 100

struct shared {
    uint8_t names[RANKS_MAX][ENDPOINTS_MAX][NAME_BYTES];
    int arrived, round;
    volatile int64_t word;
};

static struct shared *shared;
volatile int64_t *shared_word;

/* ---- processes ----------------------------------------------------------------------------------------- */

int run_ranks(int ranks, int victim, rank_function *function, void *context)
{
    pid_t processes[RANKS_MAX];
    int failed = 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    shared_word = &shared->word;
    fflush(NULL);
    for (int i = 0; i < ranks; i++) {
        processes[i] = fork();
        CHECK(processes[i] >= 0);
        if (processes[i] == 0) {
            alarm(PATIENCE_S);
            function(i, ranks, context);
            exit(0);
        }
    }
    for (int i = 0; i < ranks; i++) {
        int status = 0;
        CHECK(waitpid(processes[i], &status, 0) == processes[i]);
        bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (i == victim ? !is_killed : status != 0) {
            fprintf(stderr, "rank %d: status %#x\n", i, (unsigned)status);
            failed++;
        }
    }
    munmap(shared, sizeof *shared);
    return failed;
}

void barrier(int ranks)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int round = __atomic_load_n(&shared->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&shared->arrived, 1, __ATOMIC_ACQ_REL) == ranks) {
        __atomic_store_n(&shared->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&shared->round, round + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&shared->round, __ATOMIC_ACQUIRE) == round) /* alarm() bounds it */
        nanosleep(&pause, NULL);
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static void open_endpoint(struct node *node, int index)
{
    size_t bytes = 0;
    CHECK(!fi_endpoint(node->domain, node->info, &node->ep[index], NULL));
    CHECK(!fi_ep_bind(node->ep[index], &node->av->fid, 0));
    CHECK(!fi_ep_bind(node->ep[index], &node->cq->fid, FI_TRANSMIT | FI_RECV));
    CHECK(!fi_ep_bind(node->ep[index], &node->sent->fid, FI_SEND));
    CHECK(!fi_ep_bind(node->ep[index], &node->received->fid, FI_RECV));
    CHECK(!fi_enable(node->ep[index]));
    CHECK(fi_getname(&node->ep[index]->fid, NULL, &bytes) == -FI_ETOOSMALL && bytes == NAME_BYTES);
    CHECK(!fi_getname(&node->ep[index]->fid, shared->names[node->rank][index], &bytes));
}

const void *node_name(int rank, int endpoint)
{
    return shared->names[rank][endpoint];
}

void node_insert(struct node *node)
{
    for (int rank = 0; rank < node->ranks; rank++)
        CHECK(fi_av_insert(node->av, shared->names[rank], (size_t)node->endpoints, node->peer[rank], 0,
                           NULL) == node->endpoints);
}

void node_open(struct node *node, int rank, int ranks, const struct node_options *options)
{
    *node = (struct node){
        .rank = rank, .ranks = ranks, .endpoints = options->endpoints ? options->endpoints : 1};
    struct fi_info *hints = fi_allocinfo();
    CHECK(hints);
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->cq_data_size = 4;
    hints->fabric_attr->prov_name = strdup("longhaul");
    CHECK(!fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &node->info));
    fi_freeinfo(hints);
    struct fi_av_attr av_attr = {.type = options->av_type};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = options->wait_obj};
    struct fi_cntr_attr counter_attr = {.wait_obj = FI_WAIT_UNSPEC};
    CHECK(!fi_fabric(node->info->fabric_attr, &node->fabric, NULL));
    CHECK(!fi_domain(node->fabric, node->info, &node->domain, NULL));
    CHECK(!fi_av_open(node->domain, &av_attr, &node->av, NULL));
    CHECK(!fi_cq_open(node->domain, &cq_attr, &node->cq, NULL));
    CHECK(!fi_cntr_open(node->domain, &counter_attr, &node->sent, NULL));
    CHECK(!fi_cntr_open(node->domain, &counter_attr, &node->received, NULL));
    for (int i = 0; i < node->endpoints; i++)
        open_endpoint(node, i);
    barrier(ranks);
    if (!options->insert_late)
        node_insert(node);
}

void node_close(struct node *node)
{
    CHECK(fi_close(&node->cq->fid) == -FI_EBUSY);
    for (int i = 0; i < node->endpoints; i++)
        CHECK(!fi_close(&node->ep[i]->fid));
    CHECK(!fi_close(&node->received->fid));
    CHECK(!fi_close(&node->sent->fid));
    CHECK(!fi_close(&node->cq->fid));
    CHECK(!fi_close(&node->av->fid));
    CHECK(!fi_close(&node->domain->fid));
    CHECK(!fi_close(&node->fabric->fid));
    fi_freeinfo(node->info);
}

/* ---- completions --------------------------------------------------------------------------------------- */

bool next_completion(struct node *node, struct fi_cq_tagged_entry *entry, fi_addr_t *source,
                     struct fi_cq_err_entry *error)
{
    ssize_t count;
    while ((count = fi_cq_readfrom(node->cq, entry, 1, source)) == -FI_EAGAIN) /* alarm() bounds it */
        continue;
    if (count == 1)
        return true;
    CHECK(count == -FI_EAVAIL);
    CHECK(fi_cq_readerr(node->cq, error, 0) == 1);
    return false;
}

struct fi_cq_tagged_entry expect_completion(struct node *node, const void *context)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    fi_addr_t source;
    if (!next_completion(node, &entry, &source, &error)) {
        fprintf(stderr, "rank %d: completion: %s (%s)\n", node->rank, fi_strerror(error.err),
                fi_cq_strerror(node->cq, error.prov_errno, NULL, NULL, 0));
        exit(1);
    }
    CHECK(entry.op_context == context);
    return entry;
}

struct fi_cq_err_entry expect_error(struct node *node, const void *context)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    fi_addr_t source;
    CHECK(!next_completion(node, &entry, &source, &error));
    CHECK(error.op_context == context);
    return error;
}

/* ---- bytes --------------------------------------------------------------------------------------------- */

static uint8_t byte_at(size_t at, uint64_t seed)
{
    return (uint8_t)(at * 131 + (at >> 8) * 7 + seed * 31 + 1);
}

void fill(uint8_t *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = byte_at(i, seed);
}

bool is_filled(const uint8_t *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte_at(i, seed))
            return false;
    return true;
}
