/*
 * test_verbs_indirect_mlx5.c - indirect keys against a device of this file: what is asked of it, request by
 * request, and that every way out gives everything back. That a NIC does what it is asked is not shown
 * here.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#if !__has_include(<infiniband/mlx5dv.h>)
int main(void)
{
    puts("infiniband/mlx5dv.h is missing");
    return 0;
}
#else

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>

#include "fabric/verbs/verbs_queue_pair.h"

#define SLOTS    2u
#define GIB      (UINT64_C(1) << 30)
#define USER_KEY 0x1100u
#define NULL_KEY 0x2200u

/* What the device holds, what it was asked last, and which call fails (0: none; counted from 1). */
static struct {
    uint32_t objects;
    uint32_t calls;
    uint32_t failing;
    uint32_t keys_made;
    struct ibv_sge entries[8];
    uint16_t count;
    uint32_t rkey;
    uint32_t access;
    bool inlined;
    enum ibv_qp_type type;
    uint32_t states;
} fake;

static struct mlx5dv_qp_ex configurer;
static struct ibv_qp_ex extended;

static bool fails(void)
{
    errno = EOPNOTSUPP;
    return ++fake.calls == fake.failing;
}

static void *made(size_t bytes)
{
    void *object = fails() ? NULL : calloc(1, bytes);
    fake.objects += object != NULL;
    return object;
}

static int taken_back(void *object)
{
    assert_non_null(object);
    free(object);
    fake.objects--;
    return 0;
}

static void fake_mr_list(struct mlx5dv_qp_ex *qp, struct mlx5dv_mkey *key, uint32_t access, uint16_t count,
                         struct ibv_sge *entries)
{
    (void)qp;
    assert_in_range(count, 1, 8);
    memcpy(fake.entries, entries, count * sizeof *entries);
    fake.count = count;
    fake.rkey = key->rkey;
    fake.access = access;
    fake.inlined = (extended.wr_flags & IBV_SEND_INLINE) != 0;
}

static void fake_start(struct ibv_qp_ex *qp)
{
    (void)qp;
}

static int fake_complete(struct ibv_qp_ex *qp)
{
    (void)qp;
    return fails() ? ENOMEM : 0;
}

static int fake_wait(struct ibv_cq *cq, uint64_t wr_id, const char *what)
{
    (void)cq, (void)what;
    assert_int_equal(wr_id, extended.wr_id);
    return fails() ? -LH_EDEVICE : 0;
}

static struct ibv_mr *fake_null_mr(struct ibv_pd *pd)
{
    (void)pd;
    struct ibv_mr *mr = made(sizeof *mr);
    if (mr != NULL)
        mr->lkey = NULL_KEY;
    return mr;
}

static struct ibv_qp *fake_create_qp(struct ibv_qp_init_attr_ex *attr)
{
    fake.type = attr->qp_type;
    return made(sizeof(struct ibv_qp));
}

static struct mlx5dv_mkey *fake_create_mkey(void)
{
    struct mlx5dv_mkey *key = made(sizeof *key);
    if (key != NULL)
        key->lkey = key->rkey = 0x100 * ++fake.keys_made;
    return key;
}

static int fake_modify(const struct ibv_qp_attr *attr)
{
    fake.states = fake.states * 10 + (uint32_t)attr->qp_state;
    return fails() ? EINVAL : 0;
}

#undef ibv_create_cq
#define mlx5dv_is_supported(d)              ((void)(d), true)
#define mlx5dv_create_qp(context, attr, dv) ((void)(context), (void)(dv), fake_create_qp(attr))
#define mlx5dv_create_mkey(attr)            ((void)(attr), fake_create_mkey())
#define mlx5dv_destroy_mkey(key)            taken_back(key)
#define mlx5dv_qp_ex_from_ibv_qp_ex(qp)     ((void)(qp), &configurer)
#define ibv_qp_to_qp_ex(qp)                 ((void)(qp), &extended)
#define ibv_get_device_name(d)              ((void)(d), "mlx5_0")
#define ibv_create_cq(context, n, c, ch, v) ((void)(context), made(sizeof(struct ibv_cq)))
#define ibv_destroy_cq(cq)                  taken_back(cq)
#define ibv_destroy_qp(qp)                  taken_back(qp)
#define ibv_alloc_null_mr(pd)               fake_null_mr(pd)
#define ibv_dereg_mr(mr)                    taken_back(mr)
#define ibv_modify_qp(qp, attr, mask)       ((void)(mask), fake_modify(attr))
#define verbs_binder_wait(cq, wr_id, what)  fake_wait(cq, wr_id, what)
#include "fabric/verbs/verbs_indirect_mlx5.c"

static struct ibv_context opened;
static struct verbs_fabric fabric = {.context = &opened};
static struct verbs_endpoint endpoint;
static const struct ibv_mr user = {.lkey = USER_KEY};

static void begin(uint32_t failing)
{
    memset(&fake, 0, sizeof fake);
    fake.failing = failing;
    configurer.wr_mr_list = fake_mr_list;
    extended.wr_start = fake_start;
    extended.wr_complete = fake_complete;
    endpoint = (struct verbs_endpoint){.attr = {.slots = SLOTS, .generations = 2}};
    endpoint.base.fabric = &fabric.base;
}

static int bind(uint32_t slot, uint64_t address, uint64_t bytes, uint8_t generation, uint32_t *rkey)
{
    const struct fabric_slot what = {
        .base = (uint8_t *)(uintptr_t)address, .length_bytes = bytes, .generation = generation};
    struct fabric_slot_key key = {.base = 1};
    int error = verbs_indirect_bind(endpoint.indirect, slot, &what, &user, &key);
    if (error == 0)
        assert_int_equal(key.base, 0);
    *rkey = key.rkey;
    return error;
}

static void assert_entry(uint32_t index, uint64_t address, uint64_t bytes, uint32_t lkey)
{
    assert_int_equal(fake.entries[index].addr, address);
    assert_int_equal(fake.entries[index].length, bytes);
    assert_int_equal(fake.entries[index].lkey, lkey);
}

static void test_bind_and_unbind(void **state)
{
    (void)state;
    uint32_t rkey;
    begin(0);
    assert_int_equal(verbs_indirect_open(&endpoint), 0);
    assert_int_equal(fake.type, IBV_QPT_RC);
    assert_int_equal(fake.states, 123); /* INIT, RTR, RTS */
    assert_int_equal(bind(0, 0x5000, 4000, 0, &rkey), 0);
    assert_int_equal(fake.rkey, rkey);
    assert_int_equal(fake.access, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_true(fake.inlined);
    assert_int_equal(fake.count, 1);
    assert_entry(0, 0x5000, 4000, USER_KEY);
    assert_int_equal(verbs_indirect_unbind(endpoint.indirect, 0), 0);
    assert_int_equal(fake.rkey, rkey);
    assert_int_equal(fake.count, 1);
    assert_entry(0, 0, 4000, NULL_KEY);
    verbs_indirect_close(endpoint.indirect);
    assert_int_equal(fake.objects, 0);
}

/* A late packet's key leads to no later buffer of the slot, until all generations were there. */
static void test_a_key_each_generation(void **state)
{
    (void)state;
    uint32_t rkey[4];
    begin(0);
    assert_int_equal(verbs_indirect_open(&endpoint), 0);
    for (uint8_t i = 0; i < 3; i++) {
        assert_int_equal(bind(1, 0x5000, 100, i % 2, &rkey[i]), 0);
        assert_int_equal(verbs_indirect_unbind(endpoint.indirect, 1), 0);
    }
    assert_int_equal(bind(0, 0x5000, 100, 0, &rkey[3]), 0);
    assert_int_not_equal(rkey[0], rkey[1]);
    assert_int_equal(rkey[0], rkey[2]);
    assert_int_not_equal(rkey[0], rkey[3]);
    assert_int_equal(fake.keys_made, 3);
    verbs_indirect_close(endpoint.indirect);
    assert_int_equal(fake.objects, 0);
}

static void test_long_receives(void **state)
{
    (void)state;
    uint32_t rkey;
    begin(0);
    assert_int_equal(verbs_indirect_open(&endpoint), 0);
    assert_int_equal(bind(0, 0x5000, GIB, 0, &rkey), 0);
    assert_int_equal(fake.count, 1);
    assert_int_equal(verbs_indirect_unbind(endpoint.indirect, 0), 0);
    assert_int_equal(bind(0, 0x5000, GIB + 1, 1, &rkey), 0);
    assert_int_equal(fake.count, 2);
    assert_entry(0, 0x5000, GIB, USER_KEY);
    assert_entry(1, 0x5000 + GIB, 1, USER_KEY);
    assert_int_equal(verbs_indirect_unbind(endpoint.indirect, 0), 0);
    assert_entry(0, 0, GIB, NULL_KEY);
    assert_entry(1, 0, 1, NULL_KEY);
    assert_int_equal(bind(0, 0x5000, 4 * GIB, 0, &rkey), 0);
    assert_int_equal(fake.count, 4);
    assert_int_equal(bind(1, 0x5000, 4 * GIB + 1, 0, &rkey), -LH_EDEVICE);
    assert_non_null(strstr(lh_last_error(), "protect=window or protect=mr"));
    verbs_indirect_close(endpoint.indirect);
    assert_int_equal(fake.objects, 0);
}

/* Each call of the device fails once: an error, nothing kept, and after a failed request no other. */
static void test_every_failure(void **state)
{
    (void)state;
    uint32_t failures = 0;
    for (uint32_t failing = 1;; failing++) {
        uint32_t rkey;
        begin(failing);
        int error = verbs_indirect_open(&endpoint);
        assert_int_equal(error == 0, endpoint.indirect != NULL);
        if (error == 0)
            error = bind(0, 0x5000, 100, 0, &rkey);
        if (error == 0)
            error = verbs_indirect_unbind(endpoint.indirect, 0);
        if (endpoint.indirect != NULL && error != 0 && fake.keys_made > 0)
            assert_int_equal(bind(1, 0x5000, 100, 0, &rkey), -LH_EDEVICE);
        verbs_indirect_close(endpoint.indirect);
        assert_int_equal(fake.objects, 0);
        if (error == 0)
            break;
        assert_int_equal(error, -LH_EDEVICE);
        failures++;
    }
    assert_int_equal(failures, 11); /* 6 of the opening, 3 of the bind, 2 of the unbind */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bind_and_unbind),
        cmocka_unit_test(test_a_key_each_generation),
        cmocka_unit_test(test_long_receives),
        cmocka_unit_test(test_every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
