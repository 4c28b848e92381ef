/*
 * ofi_address.c - names of endpoints, and address vectors: tables of names, of which fi_addr_t is the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plugins/libfabric/ofi_provider.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names --------------------------------------------------------------------------------------------- */

/* 1: of the form of names, and of frames. */
static const uint8_t MAGIC[4] = {'L', 'H', 'F', '1'};

_Static_assert(sizeof(struct ofi_name) == 40, "without padding");

static void set_port(struct ofi_name *name, uint16_t port)
{
    name->port[0] = (uint8_t)(port >> 8);
    name->port[1] = (uint8_t)port;
}

int ofi_name_make(const char *host, uint16_t port, struct ofi_name *name)
{
    char plain[OFI_WHERE_MAX];
    size_t length = strlen(host);
    bool is_v6 = *host == '[';
    *name = (struct ofi_name){.family = is_v6 ? 6 : 4};
    memcpy(name->magic, MAGIC, sizeof MAGIC);
    set_port(name, port);
    if (length >= sizeof plain || length < 3)
        return -FI_EINVAL;
    snprintf(plain, sizeof plain, "%.*s", (int)(is_v6 ? length - 2 : length), host + is_v6);
    return inet_pton(is_v6 ? AF_INET6 : AF_INET, plain, name->host) == 1 ? 0 : -FI_EINVAL;
}

bool ofi_name_is_valid(const struct ofi_name *name)
{
    return !memcmp(name->magic, MAGIC, sizeof MAGIC) && (name->family == 4 || name->family == 6) &&
           ofi_name_port(name) != 0;
}

bool ofi_name_has_token(const struct ofi_name *name)
{
    static const uint8_t none[OFI_TOKEN_BYTES];
    return memcmp(name->token, none, sizeof none) != 0;
}

uint16_t ofi_name_port(const struct ofi_name *name)
{
    return (uint16_t)(name->port[0] << 8 | name->port[1]);
}

void ofi_name_host(const struct ofi_name *name, char host[OFI_WHERE_MAX])
{
    char plain[INET6_ADDRSTRLEN] = "";
    bool is_v6 = name->family == 6;
    inet_ntop(is_v6 ? AF_INET6 : AF_INET, name->host, plain, sizeof plain);
    snprintf(host, OFI_WHERE_MAX, is_v6 ? "[%s]" : "%s", plain);
}

void ofi_name_where(const struct ofi_name *name, char where[OFI_WHERE_MAX])
{
    char host[OFI_WHERE_MAX];
    ofi_name_host(name, host);
    snprintf(where, OFI_WHERE_MAX, "%.54s:%u", host, ofi_name_port(name));
}

int ofi_name_resolve(const char *node, const char *service, bool passive, struct ofi_name *name)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(node, service, &hints, &found);
    if (error) {
        FI_INFO(&ofi_provider, FI_LOG_CORE, "%s %s: %s\n", node ? node : "", service ? service : "",
                gai_strerror(error));
        return -FI_ENODATA;
    }
    *name = (struct ofi_name){0};
    memcpy(name->magic, MAGIC, sizeof MAGIC);
    for (const struct addrinfo *at = found; at && !name->family; at = at->ai_next) {
        if (at->ai_family == AF_INET) {
            const struct sockaddr_in *in = (const void *)at->ai_addr;
            name->family = 4;
            memcpy(name->host, &in->sin_addr, 4);
            set_port(name, ntohs(in->sin_port));
        } else if (at->ai_family == AF_INET6) {
            const struct sockaddr_in6 *in = (const void *)at->ai_addr;
            name->family = 6;
            memcpy(name->host, &in->sin6_addr, sizeof name->host);
            set_port(name, ntohs(in->sin6_port));
        }
    }
    freeaddrinfo(found);
    return name->family ? 0 : -FI_ENODATA;
}

/* ---- address vectors ----------------------------------------------------------------------------------- */

static struct ofi_av *av_of(struct fid_av *fid)
{
    return container_of(fid, struct ofi_av, fid);
}

const struct ofi_address *ofi_av_address(const struct ofi_av *av, fi_addr_t address)
{
    return address < av->count && av->addresses[address].uses ? &av->addresses[address] : NULL;
}

void ofi_av_note(struct ofi_av *av, fi_addr_t address, int error)
{
    if (address < av->count)
        av->addresses[address].error = error;
}

fi_addr_t ofi_av_find(const struct ofi_av *av, const struct ofi_name *name)
{
    for (size_t i = 0; i < av->count; i++)
        if (av->addresses[i].uses && !memcmp(&av->addresses[i].name, name, sizeof *name))
            return i;
    return FI_ADDR_NOTAVAIL;
}

/* The first free place; NULL: no memory. */
static struct ofi_address *new_address(struct ofi_av *av)
{
    if (av->count == av->capacity) {
        size_t capacity = av->capacity ? 2 * av->capacity : 64;
        struct ofi_address *larger = realloc(av->addresses, capacity * sizeof *larger);
        if (!larger)
            return NULL;
        memset(larger + av->capacity, 0, (capacity - av->capacity) * sizeof *larger);
        av->addresses = larger;
        av->capacity = capacity;
    }
    return &av->addresses[av->count++];
}

/* Locked. */
static int insert_one(struct ofi_av *av, const struct ofi_name *name, fi_addr_t *out)
{
    fi_addr_t known = FI_ADDR_NOTAVAIL;
    struct ofi_address *address = NULL;
    if (out)
        *out = FI_ADDR_NOTAVAIL;
    if (!ofi_name_is_valid(name)) {
        FI_WARN(&ofi_provider, FI_LOG_AV,
                "fi_av_insert: the address is of another provider or release (use that of fi_getname)\n");
        return -FI_EINVAL;
    }
    known = ofi_av_find(av, name);
    address = known == FI_ADDR_NOTAVAIL ? new_address(av) : &av->addresses[known];
    if (!address)
        return -FI_ENOMEM;
    if (address->uses++ == 0) {
        address->generation++;
        address->error = 0;
        address->name = *name;
        av->epoch++;
    }
    if (out)
        *out = (fi_addr_t)(address - av->addresses);
    return 0;
}

static int av_insert(struct fid_av *fid, const void *names, size_t count, fi_addr_t *out, uint64_t flags,
                     void *context)
{
    struct ofi_av *av = av_of(fid);
    int *errors = flags & FI_SYNC_ERR ? context : NULL, inserted = 0;
    pthread_mutex_lock(&av->domain->lock);
    for (size_t i = 0; i < count; i++) {
        struct ofi_name name;
        memcpy(&name, (const char *)names + i * sizeof name, sizeof name);
        int error = insert_one(av, &name, out ? &out[i] : NULL);
        inserted += !error;
        if (errors)
            errors[i] = -error;
    }
    pthread_mutex_unlock(&av->domain->lock);
    return inserted;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *out,
                        uint64_t flags, void *context)
{
    struct ofi_name name;
    int error = node && service ? ofi_name_resolve(node, service, false, &name) : -FI_EINVAL;
    return error ? error : av_insert(fid, &name, 1, out, flags, context);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodes, const char *service,
                        size_t services, fi_addr_t *out, uint64_t flags, void *context)
{
    if (nodes != 1 || services != 1)
        return -FI_ENOSYS;
    return av_insertsvc(fid, node, service, out, flags, context);
}

static int av_remove(struct fid_av *fid, fi_addr_t *addresses, size_t count, uint64_t flags)
{
    struct ofi_av *av = av_of(fid);
    int error = flags ? -FI_EINVAL : 0;
    pthread_mutex_lock(&av->domain->lock);
    for (size_t i = 0; i < count && !error; i++) {
        if (!ofi_av_address(av, addresses[i]))
            error = -FI_EINVAL;
        else if (--av->addresses[addresses[i]].uses == 0)
            av->epoch++;
    }
    pthread_mutex_unlock(&av->domain->lock);
    return error;
}

static int av_lookup(struct fid_av *fid, fi_addr_t address, void *out, size_t *bytes)
{
    struct ofi_av *av = av_of(fid);
    pthread_mutex_lock(&av->domain->lock);
    const struct ofi_address *found = ofi_av_address(av, address);
    if (found)
        memcpy(out, &found->name, *bytes < sizeof found->name ? *bytes : sizeof found->name);
    pthread_mutex_unlock(&av->domain->lock);
    *bytes = sizeof(struct ofi_name);
    return found ? 0 : -FI_EINVAL;
}

/* Without the token: whoever knows it may connect. */
static const char *av_straddr(struct fid_av *fid, const void *address, char *out, size_t *bytes)
{
    char where[OFI_WHERE_MAX], text[OFI_WHERE_MAX + 16];
    struct ofi_name name;
    (void)fid;
    memcpy(&name, address, sizeof name);
    ofi_name_where(&name, where);
    int length = snprintf(text, sizeof text, "longhaul://%s", where);
    snprintf(out, *bytes, "%s", text);
    *bytes = (size_t)length + 1;
    return out;
}

static int av_close(struct fid *fid)
{
    struct ofi_av *av = container_of(fid, struct ofi_av, fid.fid);
    if (av->references)
        return -FI_EBUSY;
    pthread_mutex_lock(&av->domain->lock);
    av->domain->references--;
    pthread_mutex_unlock(&av->domain->lock);
    free(av->addresses);
    free(av);
    return 0;
}

int ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
    static struct fi_ops ops = {.size = sizeof ops,
                                .close = av_close,
                                .bind = ofi_no_bind,
                                .control = ofi_no_control,
                                .ops_open = ofi_no_ops_open};
    static struct fi_ops_av av_ops = {.size = sizeof av_ops,
                                      .insert = av_insert,
                                      .insertsvc = av_insertsvc,
                                      .insertsym = av_insertsym,
                                      .remove = av_remove,
                                      .lookup = av_lookup,
                                      .straddr = av_straddr};
    if (attr && (attr->flags || attr->name || attr->rx_ctx_bits)) {
        FI_WARN(&ofi_provider, FI_LOG_AV,
                "fi_av_open: asynchronous, shared and scalable address vectors are not supported\n");
        return -FI_ENOSYS;
    }
    struct ofi_av *av = calloc(1, sizeof *av);
    if (!av)
        return -FI_ENOMEM;
    av->fid.fid = (struct fid){.fclass = FI_CLASS_AV, .context = context, .ops = &ops};
    av->fid.ops = &av_ops;
    av->domain = container_of(domain, struct ofi_domain, fid);
    av->type = attr && attr->type == FI_AV_MAP ? FI_AV_MAP : FI_AV_TABLE;
    if (attr)
        attr->type = av->type;
    pthread_mutex_lock(&av->domain->lock);
    av->domain->references++;
    pthread_mutex_unlock(&av->domain->lock);
    *out = &av->fid;
    return 0;
}
