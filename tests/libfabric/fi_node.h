/*
 * fi_node.h - ranks of a test of the libfabric provider: processes, each with a domain, endpoints, an address
 * vector and a completion queue. Names and barriers pass through shared memory.
 *
 * A call that fails ends the process with the call's text; tests that expect an error look at it themselves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TESTS_LIBFABRIC_FI_NODE_H
#define TESTS_LIBFABRIC_FI_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#pragma GCC diagnostic pop

#define RANKS_MAX     4
#define ENDPOINTS_MAX 16
#define NAME_BYTES    40

#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

struct node {
    int rank, ranks, endpoints;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_cntr *sent, *received;
    struct fid_ep *ep[ENDPOINTS_MAX];
    fi_addr_t peer[RANKS_MAX][ENDPOINTS_MAX]; /* each rank's endpoints */
};

struct node_options {
    int endpoints; /* of a rank; 0: 1 */
    enum fi_wait_obj wait_obj;
    enum fi_av_type av_type;
    bool insert_late; /* the program calls node_insert() */
};

/* Runs a function in processes of their own. Returns the number of those that failed. The process of rank
 * `victim`, if that is not below 0, is expected to be killed. */
typedef void rank_function(int rank, int ranks, void *context);
int run_ranks(int ranks, int victim, rank_function *function, void *context);
void barrier(int ranks);
/* A word that all ranks see; for what they have to tell each other. */
extern volatile int64_t *shared_word;

void node_open(struct node *node, int rank, int ranks, const struct node_options *options);
void node_insert(struct node *node);
void node_close(struct node *node);
/* The name of an endpoint of a rank, as fi_getname() gave it. */
const void *node_name(int rank, int endpoint);

/* Waits for a completion. False: it is an error, which is read. */
bool next_completion(struct node *node, struct fi_cq_tagged_entry *entry, fi_addr_t *source,
                     struct fi_cq_err_entry *error);
/* Waits for the completion with this context, which must succeed, and be the next one. */
struct fi_cq_tagged_entry expect_completion(struct node *node, const void *context);
/* Waits for an error with this context. */
struct fi_cq_err_entry expect_error(struct node *node, const void *context);
/* Calls again while the provider is busy. */
#define AGAIN(node, call)                                                                                  \
    do {                                                                                                   \
        ssize_t again_;                                                                                    \
        while ((again_ = (call)) == -FI_EAGAIN)                                                            \
            fi_cq_read((node)->cq, NULL, 0);                                                               \
        CHECK(again_ == 0);                                                                                \
    } while (0)

/* Bytes that a seed determines, and their check. */
void fill(uint8_t *bytes, size_t count, uint64_t seed);
bool is_filled(const uint8_t *bytes, size_t count, uint64_t seed);

extern const char *const cases[]; /* names, ends with NULL */
void run_case(int rank, int ranks, void *name);

#endif
