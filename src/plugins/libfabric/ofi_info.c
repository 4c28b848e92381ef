/*
 * ofi_info.c - what the provider can do, which hints that meets, and the fabric.
 *
 * It answers only when it is named: a job that did not ask for it gets what it had before.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_provider.h"

#include <stdlib.h>
#include <string.h>

/* Of libfabric: each bit in turn, for one protocol field. */
#define TAG_FORMAT UINT64_C(0xaaaaaaaaaaaaaaaa)

#define CAPS_COMMON (FI_MSG | FI_TAGGED)
#define CAPS_SEND   (CAPS_COMMON | FI_SEND)
#define CAPS_RECV   (CAPS_COMMON | FI_RECV | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE)
#define CAPS_DOMAIN (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define CAPS        (CAPS_SEND | CAPS_RECV | CAPS_DOMAIN)
#define SEND_OP_FLAGS                                                                                      \
    (FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |        \
     FI_MATCH_COMPLETE)
#define RECV_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
#define ORDERS        FI_ORDER_SAS
#define CONTEXTS      4096 /* of a queue: advice */

/* ---- hints --------------------------------------------------------------------------------------------- */

#define REFUSE(...)                                                                                        \
    do {                                                                                                   \
        FI_INFO(&ofi_provider, FI_LOG_CORE, __VA_ARGS__);                                                  \
        return false;                                                                                      \
    } while (0)

static bool lists_name(const char *list)
{
    size_t length = strlen(OFI_NAME);
    for (const char *at = list; at && *at;) {
        size_t word = strcspn(at, ",;");
        if (word == length && !strncasecmp(at, OFI_NAME, length))
            return true;
        at += word + (at[word] != 0);
    }
    return false;
}

static bool is_named(const struct fi_info *hints)
{
    const char *wanted = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
    const char *variable = getenv("FI_PROVIDER");
    if (wanted)
        return lists_name(wanted);
    if (variable && *variable != '^' && lists_name(variable))
        return true;
    REFUSE("no match: not named (set FI_PROVIDER=longhaul, or prov_name)\n");
}

static bool fits_caps(const struct fi_info *hints)
{
    if (hints->caps & ~CAPS)
        REFUSE("no match: capabilities %#llx are not supported\n",
               (unsigned long long)(hints->caps & ~CAPS));
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != OFI_ADDRESS_FORMAT)
        REFUSE("no match: address format %u (the provider has one of its own)\n", hints->addr_format);
    return true;
}

static bool fits_send(const struct fi_tx_attr *tx)
{
    if (!tx)
        return true;
    if (tx->caps & ~(CAPS_SEND | CAPS_DOMAIN))
        REFUSE("no match: tx_attr->caps %#llx\n", (unsigned long long)tx->caps);
    if (tx->op_flags & ~SEND_OP_FLAGS)
        REFUSE("no match: tx_attr->op_flags %#llx\n", (unsigned long long)tx->op_flags);
    if (tx->msg_order & ~ORDERS || tx->comp_order & ~FI_ORDER_NONE)
        REFUSE("no match: order %#llx, of completions %#llx (FI_ORDER_SAS, none)\n",
               (unsigned long long)tx->msg_order, (unsigned long long)tx->comp_order);
    if (tx->inject_size > OFI_EAGER_MAX)
        REFUSE("no match: inject_size %zu (at most %zu)\n", tx->inject_size, OFI_EAGER_MAX);
    if (tx->iov_limit > OFI_IOV_MAX || tx->rma_iov_limit > 0)
        REFUSE("no match: iov_limit %zu, rma_iov_limit %zu (at most %d and 0)\n", tx->iov_limit,
               tx->rma_iov_limit, OFI_IOV_MAX);
    return true;
}

static bool fits_recv(const struct fi_rx_attr *rx)
{
    if (!rx)
        return true;
    if (rx->caps & ~(CAPS_RECV | CAPS_DOMAIN))
        REFUSE("no match: rx_attr->caps %#llx\n", (unsigned long long)rx->caps);
    if (rx->op_flags & ~RECV_OP_FLAGS)
        REFUSE("no match: rx_attr->op_flags %#llx\n", (unsigned long long)rx->op_flags);
    if (rx->msg_order & ~ORDERS || rx->comp_order & ~FI_ORDER_NONE)
        REFUSE("no match: order %#llx, of completions %#llx (FI_ORDER_SAS, none)\n",
               (unsigned long long)rx->msg_order, (unsigned long long)rx->comp_order);
    if (rx->iov_limit > OFI_IOV_MAX)
        REFUSE("no match: iov_limit %zu (at most %d)\n", rx->iov_limit, OFI_IOV_MAX);
    return true;
}

static bool fits_endpoint(const struct fi_ep_attr *ep)
{
    if (!ep)
        return true;
    if (ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM)
        REFUSE("no match: endpoint type %d (FI_EP_RDM)\n", (int)ep->type);
    if (ep->protocol != FI_PROTO_UNSPEC && ep->protocol != FI_PROV_SPECIFIC)
        REFUSE("no match: protocol %u\n", ep->protocol);
    if (ep->max_msg_size > OFI_MESSAGE_MAX)
        REFUSE("no match: max_msg_size %zu\n", ep->max_msg_size);
    if (ep->tx_ctx_cnt > 1 || ep->rx_ctx_cnt > 1 || ep->msg_prefix_size || ep->auth_key_size)
        REFUSE("no match: shared or scalable contexts, prefixes or keys of endpoints\n");
    return true;
}

static bool fits_domain(const struct fi_domain_attr *domain)
{
    if (!domain)
        return true;
    if (domain->caps & ~CAPS_DOMAIN)
        REFUSE("no match: domain_attr->caps %#llx\n", (unsigned long long)domain->caps);
    if (domain->cq_data_size > sizeof(uint64_t))
        REFUSE("no match: cq_data_size %zu\n", domain->cq_data_size);
    if (domain->max_ep_tx_ctx > 1 || domain->max_ep_rx_ctx > 1 || domain->max_ep_stx_ctx ||
        domain->max_ep_srx_ctx || domain->auth_key_size)
        REFUSE("no match: shared or scalable contexts, or keys of domains\n");
    return true;
}

static bool fits(const struct fi_info *hints)
{
    return !hints || (fits_caps(hints) && fits_send(hints->tx_attr) && fits_recv(hints->rx_attr) &&
                      fits_endpoint(hints->ep_attr) && fits_domain(hints->domain_attr));
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

/* The capabilities that were asked for, and those that cost nothing; all without hints. */
static uint64_t caps_for(const struct fi_info *hints)
{
    uint64_t caps = hints && hints->caps ? hints->caps : CAPS;
    if (!(caps & CAPS_COMMON))
        caps |= CAPS_COMMON;
    if (!(caps & (FI_SEND | FI_RECV)))
        caps |= FI_SEND | FI_RECV;
    return caps | CAPS_DOMAIN;
}

static void fill_contexts(struct fi_info *info, const struct fi_info *hints)
{
    const struct fi_tx_attr *tx = hints ? hints->tx_attr : NULL;
    const struct fi_rx_attr *rx = hints ? hints->rx_attr : NULL;
    *info->tx_attr = (struct fi_tx_attr){.caps = info->caps & (CAPS_SEND | CAPS_DOMAIN),
                                         .op_flags = tx ? tx->op_flags : 0, /* without a level: accepted */
                                         .msg_order = ORDERS,
                                         .comp_order = FI_ORDER_NONE,
                                         .inject_size = OFI_EAGER_MAX,
                                         .size = CONTEXTS,
                                         .iov_limit = OFI_IOV_MAX,
                                         .tclass = FI_TC_UNSPEC};
    *info->rx_attr = (struct fi_rx_attr){.caps = info->caps & (CAPS_RECV | CAPS_DOMAIN),
                                         .op_flags = rx ? rx->op_flags : 0,
                                         .msg_order = ORDERS,
                                         .comp_order = FI_ORDER_NONE,
                                         .size = CONTEXTS,
                                         .iov_limit = OFI_IOV_MAX};
}

static void fill_endpoint(struct fi_ep_attr *ep, const struct fi_info *hints)
{
    uint64_t format = hints && hints->ep_attr ? hints->ep_attr->mem_tag_format : 0;
    *ep = (struct fi_ep_attr){.type = FI_EP_RDM,
                              .protocol = FI_PROV_SPECIFIC,
                              .protocol_version = 1,
                              .max_msg_size = OFI_MESSAGE_MAX,
                              .mem_tag_format = format ? format : TAG_FORMAT,
                              .tx_ctx_cnt = 1,
                              .rx_ctx_cnt = 1};
}

static int mr_mode_for(uint32_t version, const struct fi_domain_attr *hints)
{
    int wanted = hints ? hints->mr_mode : 0;
    if (wanted == FI_MR_BASIC || wanted == FI_MR_SCALABLE)
        return wanted;
    return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? FI_MR_SCALABLE : 0;
}

static void fill_domain(struct fi_domain_attr *domain, uint32_t version, const struct fi_info *hints)
{
    const struct fi_domain_attr *wanted = hints ? hints->domain_attr : NULL;
    *domain = (struct fi_domain_attr){
        .threading = wanted && wanted->threading ? wanted->threading : FI_THREAD_SAFE,
        .control_progress =
            wanted && wanted->control_progress ? wanted->control_progress : FI_PROGRESS_AUTO,
        .data_progress = wanted && wanted->data_progress ? wanted->data_progress : FI_PROGRESS_AUTO,
        .resource_mgmt = FI_RM_ENABLED,
        .av_type = wanted ? wanted->av_type : FI_AV_UNSPEC,
        .mr_mode = mr_mode_for(version, wanted),
        .mr_key_size = sizeof(uint64_t),
        .cq_data_size = sizeof(uint64_t),
        .cq_cnt = 1024,
        .ep_cnt = 1024,
        .tx_ctx_cnt = 1024,
        .rx_ctx_cnt = 1024,
        .max_ep_tx_ctx = 1,
        .max_ep_rx_ctx = 1,
        .cntr_cnt = 1024,
        .mr_iov_limit = OFI_IOV_MAX,
        .caps = CAPS_DOMAIN,
        .mr_cnt = 65535,
    };
}

static int set_address(void **address, size_t *bytes, const struct ofi_name *name)
{
    *address = malloc(sizeof *name);
    if (!*address)
        return -FI_ENOMEM;
    memcpy(*address, name, sizeof *name);
    *bytes = sizeof *name;
    return 0;
}

/* What a call asks for. */
struct request {
    uint32_t version;
    const struct fi_info *hints;
    struct ofi_name source, destination;
    bool has_source, has_destination;
};

static struct fi_info *make_info(const struct request *request, const struct plugin_device *device)
{
    struct ofi_name source;
    struct fi_info *info = fi_allocinfo();
    if (!info)
        return NULL;
    info->caps = caps_for(request->hints);
    info->addr_format = OFI_ADDRESS_FORMAT;
    fill_contexts(info, request->hints);
    fill_endpoint(info->ep_attr, request->hints);
    fill_domain(info->domain_attr, request->version, request->hints);
    info->domain_attr->name = strdup(device->interface);
    info->fabric_attr->name = strdup(OFI_NAME);
    info->fabric_attr->prov_version = ofi_provider.version;
    info->fabric_attr->api_version = request->version;
    uint16_t port = request->has_source ? ofi_name_port(&request->source) : 0;
    int error = ofi_name_make(device->address, port, &source);
    if (!error)
        error = set_address(&info->src_addr, &info->src_addrlen, &source);
    if (!error && request->has_destination)
        error = set_address(&info->dest_addr, &info->dest_addrlen, &request->destination);
    if (error || !info->domain_attr->name || !info->fabric_attr->name) {
        fi_freeinfo(info);
        return NULL;
    }
    return info;
}

static int read_addresses(const char *node, const char *service, uint64_t flags, struct request *request)
{
    const struct fi_info *hints = request->hints;
    bool is_source = flags & FI_SOURCE;
    int error = 0;
    if (hints && hints->dest_addr && hints->dest_addrlen == sizeof request->destination) {
        memcpy(&request->destination, hints->dest_addr, sizeof request->destination);
        request->has_destination = true;
    }
    if (hints && hints->src_addr && hints->src_addrlen == sizeof request->source) {
        memcpy(&request->source, hints->src_addr, sizeof request->source);
        request->has_source = true;
    }
    if (!node && !service)
        return 0;
    if (is_source || !node) {
        error = ofi_name_resolve(node, service, true, &request->source);
        request->has_source = !error;
    } else {
        error = ofi_name_resolve(node, service, false, &request->destination);
        request->has_destination = !error;
    }
    return error;
}

/* Whether a device has the source address, or that is any. */
static bool has_address(const struct request *request, const struct plugin_device *device)
{
    static const uint8_t any[16];
    struct ofi_name name;
    if (!request->has_source || !memcmp(request->source.host, any, sizeof any))
        return true;
    return !ofi_name_make(device->address, 0, &name) &&
           !memcmp(name.host, request->source.host, sizeof name.host);
}

static bool is_wanted(const struct request *request, const struct plugin_device *device)
{
    const struct fi_info *hints = request->hints;
    const char *domain = hints && hints->domain_attr ? hints->domain_attr->name : NULL;
    const char *fabric = hints && hints->fabric_attr ? hints->fabric_attr->name : NULL;
    return has_address(request, device) && (!domain || !strcmp(domain, device->interface)) &&
           (!fabric || !strcmp(fabric, OFI_NAME));
}

static int read_settings(struct plugin_settings *settings)
{
    const struct plugin_host host = {.name = "libfabric"};
    if (!plugin_settings_read(&host, settings))
        return 0;
    FI_WARN(&ofi_provider, FI_LOG_CORE, "%s\n", lh_last_error());
    return -FI_EINVAL;
}

static int get_info(uint32_t version, const char *node, const char *service, uint64_t flags,
                    const struct fi_info *hints, struct fi_info **out)
{
    struct plugin_settings settings;
    struct plugin_device devices[PLUGIN_DEVICES_MAX];
    struct request request = {.version = version, .hints = hints};
    struct fi_info **end = out;
    int count = 0;
    *out = NULL;
    if (!is_named(hints) || !fits(hints) || read_settings(&settings) ||
        read_addresses(node, service, flags, &request))
        return -FI_ENODATA;
    if (plugin_devices(settings.interfaces, devices, &count)) {
        FI_WARN(&ofi_provider, FI_LOG_CORE, "%s\n", lh_last_error());
        return -FI_ENODATA;
    }
    for (int i = 0; i < count; i++) {
        if (!is_wanted(&request, &devices[i]))
            continue;
        *end = make_info(&request, &devices[i]);
        if (!*end) {
            fi_freeinfo(*out);
            *out = NULL;
            return -FI_ENOMEM;
        }
        end = &(*end)->next;
    }
    if (!*out)
        FI_INFO(&ofi_provider, FI_LOG_CORE, "no match: no interface has that name or address\n");
    return *out ? 0 : -FI_ENODATA;
}

/* ---- the fabric ---------------------------------------------------------------------------------------- */

static int fabric_close(struct fid *fid)
{
    struct ofi_fabric *fabric = container_of(fid, struct ofi_fabric, fid.fid);
    if (__atomic_load_n(&fabric->references, __ATOMIC_RELAXED) > 0)
        return -FI_EBUSY;
    free(fabric);
    return 0;
}

static int no_passive(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **out, void *context)
{
    (void)fid, (void)info, (void)out, (void)context;
    return -FI_ENOSYS;
}

static int no_wait(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **out)
{
    (void)fid, (void)attr, (void)out;
    return -FI_ENOSYS;
}

static int try_wait(struct fid_fabric *fid, struct fid **fids, int count)
{
    int error = 0;
    (void)fid;
    for (int i = 0; i < count && !error; i++)
        error = ofi_cq_try_wait(fids[i]);
    return error;
}

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = fabric_close,
                                .bind = ofi_no_bind,
                                .control = ofi_no_control,
                                .ops_open = ofi_no_ops_open};
    static struct fi_ops_fabric fabric_ops = {.size = sizeof fabric_ops,
                                              .domain = ofi_domain_open,
                                              .passive_ep = no_passive,
                                              .eq_open = ofi_eq_open,
                                              .wait_open = no_wait,
                                              .trywait = try_wait};
    if (attr->name && strcmp(attr->name, OFI_NAME))
        return -FI_ENODATA;
    struct ofi_fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return -FI_ENOMEM;
    if (read_settings(&fabric->settings)) {
        free(fabric);
        return -FI_EINVAL;
    }
    fabric->fid.fid = (struct fid){.fclass = FI_CLASS_FABRIC, .context = context, .ops = &ops};
    fabric->fid.ops = &fabric_ops;
    fabric->fid.api_version = attr->api_version;
    *out = &fabric->fid;
    return 0;
}

static void clean_up(void)
{
}

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
    ofi_provider.getinfo = get_info;
    ofi_provider.fabric = open_fabric;
    ofi_provider.cleanup = clean_up;
    return &ofi_provider;
}
