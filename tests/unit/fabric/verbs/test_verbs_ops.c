/*
 * test_verbs_ops.c - which devices of a host are listed, which one is opened, and why others are not: a host
 * whose devices are in memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/fabric/verbs/fake_verbs.h"

#include <stdio.h>

#include "fabric/verbs/verbs_device.h"

#define DEVICES 2u
#define PORTS   4u

static struct {
    bool no_list;
    uint32_t count;
    int open_error; /* of the first device */
    bool silent;    /* the first device answers no query */
    bool no_domain;
    uint32_t ports, gid_count;
    struct ibv_device_attr attr;
    struct ibv_port_attr port[PORTS];
    struct ibv_gid_entry gids[8];
    int left; /* lists, devices and domains that were not given back */
} host;

static struct ibv_device devices[DEVICES] = {{.name = "fake0"}, {.name = "fake1"}};
static struct ibv_context contexts[DEVICES];
static struct ibv_device *list[] = {&devices[0], &devices[1], NULL};

struct ibv_device **ibv_get_device_list(int *count)
{
    *count = (int)host.count;
    host.left += !host.no_list;
    return host.no_list ? NULL : list;
}

void ibv_free_device_list(struct ibv_device **given)
{
    assert_ptr_equal(given, list);
    host.left--;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct ibv_context *context = &contexts[device - devices];
    errno = host.open_error;
    if (host.open_error && device == devices)
        return NULL;
    *context = (struct ibv_context){.device = device, .async_fd = eventfd(0, EFD_CLOEXEC)};
    host.left++;
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    host.left--;
    return close(context->async_fd);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    *attr = host.attr;
    attr->phys_port_cnt = (uint8_t)host.ports;
    return host.silent && context == contexts ? EIO : 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    (void)context;
    *(struct ibv_port_attr *)attr = host.port[port - 1];
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most,
                             uint32_t flags, size_t bytes)
{
    (void)context, (void)flags;
    assert_int_equal(bytes, sizeof *entries);
    assert_true(host.gid_count <= most);
    memcpy(entries, host.gids, host.gid_count * sizeof *entries);
    return (ssize_t)host.gid_count;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    errno = EBUSY;
    if (host.no_domain)
        return NULL;
    host.left++;
    fake_pd.context = context;
    return &fake_pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    assert_ptr_equal(pd, &fake_pd);
    host.left--;
    return 0;
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    return state == IBV_PORT_DOWN ? "DOWN" : "another";
}

static void add_gid(uint32_t index, uint32_t port, uint32_t type, const uint8_t *raw)
{
    struct ibv_gid_entry *entry = &host.gids[host.gid_count++];
    *entry = (struct ibv_gid_entry){.gid_index = index, .port_num = port, .gid_type = type};
    memcpy(entry->gid.raw, raw, 16);
}

/* The first port is of use, the others are not Ethernet, down, and of a small MTU. */
static void begin(void)
{
    static const uint8_t local[16] = {0xFE, 0x80, [15] = 1}, four[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 7};
    static const uint8_t six[16] = {0x20, 0x01, 0x0D, 0xB8, [15] = 7};
    memset(&fake, 0, sizeof fake);
    memset(&host, 0, sizeof host);
    host.count = 1;
    host.ports = PORTS;
    host.attr = (struct ibv_device_attr){.max_srq = 1, .device_cap_flags = IBV_DEVICE_MEM_WINDOW};
    for (uint32_t i = 0; i < PORTS; i++)
        host.port[i] = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
                                              .link_layer = IBV_LINK_LAYER_ETHERNET,
                                              .active_mtu = IBV_MTU_1024,
                                              .active_width = 2,
                                              .active_speed = 32};
    host.port[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
    host.port[2].state = IBV_PORT_DOWN;
    host.port[3].active_mtu = IBV_MTU_256;
    add_gid(0, 1, IBV_GID_TYPE_ROCE_V2, local);
    add_gid(1, 1, IBV_GID_TYPE_ROCE_V1, four);
    add_gid(2, 1, IBV_GID_TYPE_ROCE_V2, six);
    add_gid(3, 1, IBV_GID_TYPE_ROCE_V2, four);
    add_gid(4, 2, IBV_GID_TYPE_ROCE_V2, four);
}

static void end(void)
{
    assert_int_equal(host.left, 0);
    assert_int_equal(fake.objects, 0);
}

/* ---- the list ------------------------------------------------------------------------------------------ */

static struct fabric_device_list listed;

static void look(uint32_t count)
{
    free(listed.devices);
    listed = (struct fabric_device_list){0};
    assert_int_equal(fabric_verbs_ops.devices(&listed), 0);
    assert_int_equal(listed.count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_string_equal(listed.devices[i].fabric, "verbs");
    end();
}

static void unusable(uint32_t which, const char *interface, const char *words)
{
    assert_string_equal(listed.devices[which].name, "");
    assert_string_equal(listed.devices[which].interface, interface);
    if (strncmp(listed.devices[which].trouble, words, strlen(words)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", listed.devices[which].trouble, words);
}

static void a_host_without_devices(void **state)
{
    (void)state;
    begin();
    host.count = 0;
    look(1);
    unusable(0, "", VERBS_NO_DEVICE);
    host.no_list = true;
    look(1);
    unusable(0, "", VERBS_NO_DEVICE);
    free(listed.devices);
    listed.devices = NULL;
}

/* The best address of the port comes first, and those that packets to other hosts may use. */
static void ports_and_their_addresses(void **state)
{
    (void)state;
    begin();
    look(5);
    const struct lh_device *first = &listed.devices[0], *second = &listed.devices[1];
    assert_string_equal(first->name, "verbs:fake0/1/gid=3");
    assert_string_equal(first->interface, "fake0/1");
    assert_string_equal(first->address, "10.0.0.7");
    assert_int_equal(first->mtu_bytes, 1024);
    assert_true(first->rate_bps == 103000000000); /* four lanes of 25.75 Gbit/s */
    assert_string_equal(first->congestion, "by the device");
    assert_string_equal(first->features, "srq window mr");
    assert_string_equal(first->late_packets, verbs_protection_name(VERBS_PROTECT_WINDOW));
    assert_string_equal(first->trouble, "");
    assert_string_equal(second->name, "verbs:fake0/1/gid=2");
    assert_string_equal(second->address, "[2001:db8::7]");
    unusable(2, "fake0/2", "not an Ethernet port (RoCE requires one)");
    unusable(3, "fake0/3", "port is DOWN (check its cable");
    unusable(4, "fake0/4", "RoCE MTU 256: below the minimum 1024 (set the MTU");
    host.ports = 1;
    host.attr.vendor_id = 0xFFFFFF; /* in software */
    host.port[0].active_width = 1;
    host.port[0].active_speed = 1;
    host.attr.max_srq = 0;
    host.attr.device_cap_flags = 0;
    look(2);
    assert_string_equal(listed.devices[0].features, "mr");
    assert_string_equal(listed.devices[0].late_packets, verbs_protection_name(VERBS_PROTECT_MR));
    assert_string_equal(listed.devices[0].congestion, "none");
    assert_true(listed.devices[0].rate_bps == 2500000000);
    host.gid_count = 2; /* a link-local address, and one of RoCE v1 */
    look(1);
    assert_string_equal(listed.devices[0].name, "verbs:fake0/1/gid=0");
    host.gid_count = 0;
    look(1);
    unusable(0, "fake0/1", "no RoCE v2 address (assign an IP address to its network interface)");
    free(listed.devices);
    listed.devices = NULL;
}

static void devices_that_do_not_open(void **state)
{
    (void)state;
    begin();
    host.count = 2;
    host.ports = 1;
    host.open_error = EACCES;
    look(3);
    unusable(0, "fake0", "cannot open: Permission denied (check this user's access to /dev/infiniband)");
    assert_string_equal(listed.devices[1].name, "verbs:fake1/1/gid=3");
    host.open_error = 0;
    host.silent = true;
    look(3);
    unusable(0, "fake0", "the device does not answer");
    assert_string_equal(listed.devices[1].name, "verbs:fake1/1/gid=3");
    free(listed.devices);
    listed.devices = NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static void opens(const char *name, const char *device, uint32_t port, uint32_t gid)
{
    struct fabric *opened;
    const struct fabric_attr attr = {.address = name};
    if (fabric_verbs_ops.open(&attr, &opened) != 0)
        fail_msg("%s", lh_last_error());
    const struct verbs_fabric *of = (struct verbs_fabric *)opened;
    assert_string_equal(of->context->device->name, device);
    assert_int_equal(of->port, port);
    assert_int_equal(of->gid_index, gid);
    assert_int_equal(of->gid.raw[15], 7);
    assert_int_equal(of->path_mtu, IBV_MTU_1024);
    assert_int_equal(opened->ops->mtu(opened), 1024);
    lh_time before = opened->ops->now(opened);
    assert_true(opened->ops->now(opened) >= before && before > 0);
    opened->ops->close(opened);
    end();
}

static void does_not_open(const char *name, const char *words)
{
    struct fabric *opened;
    const struct fabric_attr attr = {.address = name};
    assert_int_equal(fabric_verbs_ops.open(&attr, &opened), -LH_EDEVICE);
    assert_string_equal(lh_last_error(), words);
    end();
}

static void devices_are_opened(void **state)
{
    (void)state;
    begin();
    opens("", "fake0", 1, 3);
    opens("fake0", "fake0", 1, 3);
    opens("fake0/1/gid=2", "fake0", 1, 2);
    host.count = 2;
    opens("fake1", "fake1", 1, 3);
    host.silent = true;
    opens("", "fake1", 1, 3);
    host.port[0].state = IBV_PORT_DOWN;
    host.port[2].state = IBV_PORT_ACTIVE;
    for (uint32_t i = 0; i < host.gid_count; i++)
        host.gids[i].port_num = 3;
    opens("", "fake1", 3, 3);
}

static void why_none_is_opened(void **state)
{
    (void)state;
    begin();
    does_not_open("other",
                  "device \"verbs:other\" cannot be used: there is fake0 ('longhaul devices' lists all)");
    does_not_open("fake0/2", "device \"verbs:fake0\" cannot be used: fake0/2 is not an Ethernet port "
                             "('longhaul devices' lists all)");
    does_not_open("fake0/3",
                  "device \"verbs:fake0\" cannot be used: fake0/3 is DOWN ('longhaul devices' lists all)");
    does_not_open(
        "fake0/5",
        "device \"verbs:fake0\" cannot be used: fake0 has 4 ports ('longhaul devices' lists all)");
    does_not_open("fake0/1/gid=1",
                  "device \"verbs:fake0\" cannot be used: none of the 4 GIDs of fake0/1 is a "
                  "usable RoCE v2 address ('longhaul devices' lists all)");
    host.no_domain = true;
    does_not_open("fake0", "device fake0 cannot make a protection domain: Device or resource busy");
    host.open_error = EACCES;
    does_not_open("", "device \"verbs:\" cannot be used: fake0 cannot be opened: Permission denied "
                      "('longhaul devices' lists all)");
    host.open_error = 0;
    host.silent = true;
    host.count = 2;
    does_not_open("fake0", "device \"verbs:fake0\" cannot be used: fake0 does not answer; there is fake1 "
                           "('longhaul devices' lists all)");
    host.count = 0;
    does_not_open("fake0", "device \"verbs:fake0\": " VERBS_NO_DEVICE);
}

/* ---- memory ------------------------------------------------------------------------------------------- */

static void memory_is_registered(void **state)
{
    (void)state;
    static uint8_t bytes[3][64];
    struct fabric *opened;
    const struct fabric_attr attr = {.address = ""};
    static const uint32_t numbers[] = {1, 0x100, 0x203}; /* in one list */
    uint32_t lkey[3];
    void *handle[3], *none;
    char words[128];
    begin();
    assert_int_equal(fabric_verbs_ops.open(&attr, &opened), 0);
    struct verbs_memory *memory = &((struct verbs_fabric *)opened)->memory;
    for (uint32_t i = 0; i < 3; i++) {
        fake.next_key = numbers[i] - 1;
        assert_int_equal(opened->ops->memory_register(opened, bytes[i], 64, &lkey[i], &handle[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_ptr_equal(verbs_memory_find(memory, lkey[i]), handle[i]);
    assert_null(verbs_memory_find(memory, 77));
    fake.failing = fake.calls + 1;
    assert_int_equal(opened->ops->memory_register(opened, bytes, 64, &lkey[0], &none), -LH_EDEVICE);
    snprintf(words, sizeof words, "the device cannot register 64 bytes at %p: No space left on device",
             (void *)bytes);
    assert_string_equal(lh_last_error(), words);
    static const uint32_t order[] = {1, 0, 2};
    for (uint32_t i = 0; i < 3; i++) {
        opened->ops->memory_deregister(opened, handle[order[i]]);
        assert_null(verbs_memory_find(memory, numbers[order[i]]));
        assert_int_equal(fake.objects, 2 - i);
    }
    opened->ops->close(opened);
    end();
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

static void what_is_waited_for(void **state)
{
    (void)state;
    const struct fabric_endpoint_attr attr = fake_attr();
    int fds[FABRIC_POLL_FDS_MAX] = {0};
    fake_begin(VERBS_PROTECT_MR);
    fake_pd.context = &fake_context;
    fake_context.async_fd = 12345;
    struct verbs_endpoint *endpoint = fake_open(&attr);
    for (uint32_t channel = 0; channel < 2; channel++) {
        assert_int_equal(fabric_verbs_ops.poll_fds(&endpoint->base, channel, fds), 2);
        assert_int_equal(fds[0], endpoint->channels[channel]->cqs.recv.events->fd);
        assert_int_equal(fds[1], endpoint->channels[channel]->cqs.send.events->fd);
    }
    assert_int_equal(fabric_verbs_ops.poll_fds(&endpoint->base, FABRIC_CONTROL, fds), 2);
    assert_int_equal(fds[0], endpoint->control.cqs.recv.events->fd);
    assert_int_equal(fds[1], 12345); /* the device's events */
    fake_context.async_fd = 0;
    fake_end(endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_without_devices),   cmocka_unit_test(ports_and_their_addresses),
        cmocka_unit_test(devices_that_do_not_open), cmocka_unit_test(devices_are_opened),
        cmocka_unit_test(why_none_is_opened),       cmocka_unit_test(memory_is_registered),
        cmocka_unit_test(what_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
