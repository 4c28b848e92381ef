/* Whatever a client sends to the rendezvous of a group: read without harm, at any point of the handshake, and
 * never taken for a proof.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keys/key_file.h"
#include "launch/group_root.h"

#define INPUT_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A key that no input has. */
static struct tls_context *key(void)
{
    static struct tls_context *context;
    struct key_group group;
    if (!context && (key_group_of_text("secret", "0123456789abcdef", &group) ||
                     tls_context_of(&group.rendezvous, LH_ENCRYPTION_FULL, GROUP_KEY_REMEDY, &context)))
        abort();
    return context;
}

/* The first byte: where the handshake stands, and whether there is a secret, and TLS. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    uint8_t part[64];
    char reason[GROUP_REASON_MAX + 1];
    if (size < 1 || size > INPUT_MAX || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 0;
    bool secret = data[0] & 1, greeted = data[0] & 2, joined = data[0] & 4, secure = data[0] & 8;
    const struct group_terms terms = {.size = 4,
                                      .secret = secret ? "hush" : "",
                                      .job = "JOB=1",
                                      .tls = secure ? key() : NULL,
                                      .deadline = LH_TIME_NEVER};
    struct group_member member;
    assert(write(ends[1], data + 1, size - 1) == (ssize_t)(size - 1));
    shutdown(ends[1], SHUT_WR);
    if (group_member_start(&member, ends[0], terms.tls, 0))
        abort();
    member.greeted = greeted;
    int done;
    if (joined && !secure)
        done = group_member_read_part(&member, 0, part, sizeof part);
    else
        do
            done = group_member_step(&member, &terms, 0);
        while (done == 0); /* until what was written is read */
    assert(done < 0 || (!secure && (joined || !secret)));
    if (size - 1 <= GROUP_REASON_MAX)
        group_reason_decode(data + 1, (uint32_t)(size - 1), reason);
    group_member_refuse(&member);
    close(ends[1]);
    return 0;
}
