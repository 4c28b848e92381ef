/* SPDX-License-Identifier: BSD-3-Clause */
#include "group/group_security.h"

#include <string.h>

#include "base/error.h"
#include "device/device_registry.h"
#include "group/group_link.h"
#include "message/attributes.h"
#include "message/engine.h"

#define NAME_AT   4u
#define PUBLIC_AT (NAME_AT + KEY_NAME_BYTES)

/* ---- attributes -------------------------------------------------------------------------------------- */

/* Programs of an older release have none. */
static const struct lh_security *given_by(const struct lh_attr *attr)
{
    return attr && attr->struct_bytes == sizeof *attr ? attr->security : NULL;
}

static bool is_same_text(const char *a, const char *b)
{
    return !strcmp(a ? a : "", b ? b : "");
}

static bool is_same(const struct lh_security *a, const struct lh_security *b)
{
    return a->encryption == b->encryption && a->loopback_only == b->loopback_only &&
           is_same_text(a->key_file, b->key_file) && is_same_text(a->secret, b->secret);
}

int security_of(const struct lh_attr *attr, const struct lh_attr *across,
                const struct lh_security **security)
{
    const struct lh_security *other = given_by(across);
    *security = given_by(attr);
    if (*security && (*security)->code)
        return lh_fail(LH_EINVAL, "security.code: is for two sides (give all ranks a key file)");
    if (!other || (*security && is_same(*security, other)))
        return 0;
    return lh_fail(LH_EINVAL,
                   "attr_across.security: differs from attr.security (set the same, or NULL: all "
                   "connections of a group have that of attr)");
}

int security_read(const struct lh_group_attr *attr, struct key_group *key, bool *encrypts)
{
    const struct lh_security *security;
    struct lh_attr checked;
    *encrypts = false;
    int error = security_of(attr->attr, attr->attr_across, &security);
    if (error || !security)
        return error;
    error = attr_check(attr->attr, &checked);
    if (error || security->encryption == LH_ENCRYPTION_OFF)
        return error;
    if (security->encryption == LH_ENCRYPTION_AUTH)
        return lh_fail(LH_EINVAL,
                       "security.encryption: LH_ENCRYPTION_AUTH has no effect, the exchange is the "
                       "caller's (use LH_ENCRYPTION_FULL, or set security to NULL)");
    error = key_group_given(security->secret, security->key_file, key);
    *encrypts = !error;
    return error;
}

const struct lh_security *security_of_link(const struct lh_group_attr *attr, enum lh_encryption encryption)
{
    const struct lh_security *security = given_by(attr->attr);
    return encryption == LH_ENCRYPTION_OFF && security && security->loopback_only ? security : NULL;
}

/* ---- cards ------------------------------------------------------------------------------------------- */

int security_begin(struct lh_group *group, const struct key_group *key, uint8_t *card, size_t card_bytes,
                   uint8_t *part)
{
    int error = fabric_device_check_encrypts(group->mesh->engine->device);
    if (!error)
        error = pair_keys_create(key->pairs, group->members.rank, group->members.size, &group->pairs);
    if (error)
        return error;
    part[0] = 1;
    memcpy(part + NAME_AT, key->name, KEY_NAME_BYTES);
    memcpy(part + PUBLIC_AT, pair_keys_public(group->pairs), PAIR_PUBLIC_BYTES);
    return pair_keys_set_card(group->pairs, group->members.rank, part + PUBLIC_AT, card, card_bytes);
}

int security_on_card(struct lh_group *group, uint32_t rank, const uint8_t *card, size_t card_bytes,
                     const uint8_t *part, const uint8_t *own)
{
    if (part[0] != own[0])
        return lh_fail(
            LH_EHANDSHAKE,
            "group: rank %u encrypts, rank %u does not (give all ranks the same key file, and the "
            "same --encryption)",
            part[0] ? rank : group->members.rank, part[0] ? group->members.rank : rank);
    if (memcmp(part + NAME_AT, own + NAME_AT, KEY_NAME_BYTES) != 0)
        return lh_fail(LH_EHANDSHAKE,
                       "group: rank %u has another key than rank %u (use the same key file for "
                       "all ranks)",
                       rank, group->members.rank);
    if (!group->pairs || rank == group->members.rank)
        return 0;
    return pair_keys_set_card(group->pairs, rank, part + PUBLIC_AT, card, card_bytes);
}

/* ---- links ------------------------------------------------------------------------------------------- */

int security_on_blob(struct lh_group *group, uint32_t rank, const uint8_t *blob, size_t bytes)
{
    return group->pairs ? pair_keys_set_blob(group->pairs, rank, blob, bytes) : 0;
}

int security_link(struct lh_group *group, uint32_t rank, const uint8_t *blob, size_t bytes)
{
    uint8_t secrets[LANES][PAIR_SECRET_BYTES];
    if (!group->pairs)
        return 0;
    int error = pair_keys_derive(group->pairs, rank, blob, bytes, secrets, LANES);
    if (!error)
        error = link_encrypt(member_link(&group->members, rank), secrets, group->members.rank < rank);
    explicit_bzero(secrets, sizeof secrets);
    return error;
}

void security_end(struct lh_group *group)
{
    pair_keys_free(group->pairs);
    group->pairs = NULL;
}
