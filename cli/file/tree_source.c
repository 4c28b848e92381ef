/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_names.h"
#include "cli/file/tree_attributes.h"
#include "cli/file/tree_beneath.h"
#include "cli/file/tree_changes.h"
#include "cli/file/tree_list.h"
#include "cli/file/tree_message.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_report.h"
#include "cli/file/tree_walk.h"
#include "cli/terminal/terminal.h"

/* Up to that size a file lies in one message, whole or not at all. */
#define PACKED_BYTES ((size_t)1 << 20)
/* DATA shorter than that is not worth a record: the next message has more. */
#define PIECE_MIN 65536u
/* Header of a record without a path. */
#define DATA_HEADER 8u
#define END_BYTES   (DATA_HEADER + CLI_DIGEST_BYTES)
#define FILE_BYTES  (DATA_HEADER + 32u)
#define COPY_BYTES  (DATA_HEADER + 8u)

/* A file being read. */
struct reading {
    struct cli_tree_source *source;
    const struct cli_tree_operand *operand;
    const struct cli_tree_entry *entry;
    int file;
    struct stat status; /* when it was opened */
    const char *reason; /* why it cannot be sent to its end; NULL: it can */
};

int cli_tree_source_open(struct cli_tree_source *source, struct cli_tree_packer *packer,
                         struct cli_tree_report *report, bool follow)
{
    *source = (struct cli_tree_source){.packer = packer, .report = report, .follow = follow};
    return cli_digest_open(&source->digest);
}

void cli_tree_source_close(struct cli_tree_source *source)
{
    if (source->digest.state)
        cli_digest_close(&source->digest);
    cli_tree_reading_close(&source->reading);
}

/* ---- reading --------------------------------------------------------------------------------------- */

static bool open_file(struct reading *r)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
    const char *path = r->entry->path;
    char first;
    r->file = r->source->follow ? openat(r->operand->folder, path, flags)
                                : cli_beneath_open(r->operand->folder, path, flags, 0);
    if (r->file < 0) {
        r->reason = strerror(r->source->follow ? errno : -r->file);
        return false;
    }
    if (fstat(r->file, &r->status))
        r->reason = strerror(errno);
    else if (!S_ISREG(r->status.st_mode))
        r->reason = "was replaced while it was sent";
    else if (!r->status.st_size && cli_read_at(r->file, &first, 1, 0) > 0)
        r->reason = "has no known size (send a copy)"; /* as those of /proc and /sys */
    return !r->reason;
}

static bool same_time(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

static void check_unchanged(struct reading *r)
{
    struct stat now;
    if (fstat(r->file, &now))
        r->reason = strerror(errno);
    else if (now.st_size != r->status.st_size || !same_time(now.st_mtim, r->status.st_mtim))
        r->reason = "changed while it was sent";
}

/* All of them at that offset, or a reason. */
static bool read_bytes(struct reading *r, void *data, size_t bytes, uint64_t offset)
{
    int64_t got = cli_read_at(r->file, data, bytes, offset);
    if (got < 0)
        r->reason = strerror((int)-got);
    else if ((uint64_t)got < bytes)
        r->reason = "shrank while it was sent";
    return !r->reason;
}

/* ---- records --------------------------------------------------------------------------------------- */

static struct cli_tree_record file_record(const struct reading *r, uint64_t offset, bool sparse)
{
    return (struct cli_tree_record){
        .kind = CLI_TREE_FILE,
        .flags = sparse ? CLI_TREE_SPARSE : 0,
        .attributes = cli_file_attributes_of(r->status.st_mode, r->status.st_mtim),
        .size_bytes = (uint64_t)r->status.st_size,
        .number = offset,
        .path = r->entry->path,
        .path_bytes = r->entry->path_bytes,
    };
}

static bool add_end(struct cli_tree_source *source)
{
    struct cli_tree_record end = {.kind = CLI_TREE_FILE_END};
    cli_digest_get(&source->digest, end.digest);
    return cli_tree_packer_add(source->packer, &end);
}

/* In front of bytes that the caller puts behind it. */
static void put_data_header(uint8_t *at, size_t bytes)
{
    const struct cli_tree_record data = {.kind = CLI_TREE_DATA, .rest_bytes = bytes};
    size_t used = cli_tree_encode(&data, at, DATA_HEADER + bytes);
    assert(used == DATA_HEADER + bytes);
    (void)used;
}

/* What was read last. */
static bool add_attributes(struct cli_tree_source *source)
{
    const struct cli_tree_reading *reading = &source->reading;
    uint8_t *at = reading->used ? cli_tree_packer_reserve(source->packer, reading->used) : NULL;
    if (at)
        memcpy(at, reading->records, reading->used);
    source->packer->used += at ? reading->used : 0;
    return at || !reading->used;
}

/* Attributes that do not come are a fault of an entry that does. */
static bool fault_attributes(struct cli_tree_source *source, const struct cli_tree_operand *operand,
                             const struct cli_tree_entry *entry)
{
    const char *reason = source->reading.reason;
    cli_tree_report_fault(source->report, operand->prefix, entry->path, entry->path_bytes, reason);
    return cli_tree_packer_fault(source->packer, entry->path, entry->path_bytes, reason);
}

/* ---- a small file ---------------------------------------------------------------------------------- */

/* One message takes all of it; what turns out to be wrong is taken out again. */
static bool send_packed(struct reading *r)
{
    struct cli_tree_packer *packer = r->source->packer;
    size_t size = (size_t)r->status.st_size;
    const struct cli_tree_record file = file_record(r, 0, false);
    const struct cli_tree_reading *extra = &r->source->reading;
    size_t all = FILE_BYTES + file.path_bytes + extra->used + (size ? DATA_HEADER + size : 0) + END_BYTES;
    uint8_t *at = cli_tree_packer_reserve(packer, all);
    if (!at)
        return false;
    size_t before = packer->used, header = cli_tree_encode(&file, at, all);
    if (extra->used)
        memcpy(at + header, extra->records, extra->used);
    header += extra->used;
    uint8_t *data = at + header + DATA_HEADER;
    packer->used += header;
    if (size) {
        put_data_header(at + header, size);
        read_bytes(r, data, size, 0);
        packer->used += DATA_HEADER + size;
    }
    if (!r->reason)
        check_unchanged(r);
    if (r->reason) {
        packer->used = before;
        return true;
    }
    cli_digest_reset(&r->source->digest);
    if (size)
        cli_digest_add(&r->source->digest, data, size);
    cli_tree_report_moved(r->source->report, size);
    return add_end(r->source);
}

/* ---- a large file ---------------------------------------------------------------------------------- */

/* Whether the receiver's unfinished file is the start of this one; the digest has then taken it in. */
static bool compare_start(struct reading *r)
{
    const struct cli_tree_entry *entry = r->entry;
    uint8_t digest[CLI_DIGEST_BYTES], *block = malloc(CLI_BLOCK_BYTES);
    bool same = block && entry->resume_bytes <= (uint64_t)r->status.st_size;
    lh_time since = cli_now();
    for (uint64_t offset = 0; same && offset < entry->resume_bytes; offset += CLI_BLOCK_BYTES) {
        same = !cli_stopped() && !atomic_load(r->source->packer->stop) &&
               cli_tree_packer_idle(r->source->packer, &since) &&
               read_bytes(r, block, CLI_BLOCK_BYTES, offset);
        if (same) {
            cli_digest_add(&r->source->digest, block, CLI_BLOCK_BYTES);
            cli_tree_report_compared(r->source->report, CLI_BLOCK_BYTES);
        }
    }
    free(block);
    cli_digest_get(&r->source->digest, digest);
    return same && !memcmp(digest, entry->digest, sizeof digest);
}

/* The bytes from there to `end`. False: a message could not be sent, or a signal came; or there is a reason.
 * */
static bool send_range(struct reading *r, uint64_t offset, uint64_t end)
{
    struct cli_tree_packer *packer = r->source->packer;
    while (offset < end) {
        uint64_t rest = end - offset;
        size_t minimum = rest < PIECE_MIN ? (size_t)rest : PIECE_MIN;
        uint8_t *at = cli_tree_packer_reserve(packer, DATA_HEADER + minimum);
        if (!at || cli_stopped())
            return false;
        size_t capacity = CLI_TREE_MESSAGE_MAX - packer->used - DATA_HEADER;
        size_t bytes = rest < capacity ? (size_t)rest : capacity;
        if (!read_bytes(r, at + DATA_HEADER, bytes, offset))
            return false;
        put_data_header(at, bytes);
        packer->used += DATA_HEADER + bytes;
        cli_digest_add(&r->source->digest, at + DATA_HEADER, bytes);
        cli_tree_report_moved(r->source->report, bytes);
        offset += bytes;
    }
    return true;
}

static bool send_hole(struct reading *r, uint64_t bytes)
{
    uint8_t length[8];
    const struct cli_tree_record hole = {.kind = CLI_TREE_HOLE, .number = bytes};
    cli_tree_hole_bytes(bytes, length);
    cli_digest_add(&r->source->digest, length, sizeof length);
    cli_tree_report_spared(r->source->report, bytes);
    return cli_tree_packer_add(r->source->packer, &hole);
}

/* Data and holes in turn. A file system without SEEK_DATA has none. */
static bool send_sparse(struct reading *r)
{
    uint64_t size = (uint64_t)r->status.st_size, at = 0;
    while (at < size) { /* each piece of data, and the hole before it */
        off_t data = lseek(r->file, (off_t)at, SEEK_DATA), hole;
        uint64_t from = data < 0 ? size : (uint64_t)data;
        if (data < 0 && errno != ENXIO) {
            r->reason = strerror(errno);
            return false;
        }
        from = from < size ? from : size;
        if (from > at && !send_hole(r, from - at))
            return false;
        hole = from < size ? lseek(r->file, (off_t)from, SEEK_HOLE) : (off_t)size;
        at = hole < 0 || (uint64_t)hole > size ? size : (uint64_t)hole;
        if (!send_range(r, from, at))
            return false;
    }
    return true;
}

static bool add_copy(struct cli_tree_source *source, uint64_t *bytes)
{
    const struct cli_tree_record copy = {.kind = CLI_TREE_COPY, .number = *bytes};
    *bytes = 0;
    return !copy.number || cli_tree_packer_add(source->packer, &copy);
}

/* The block at that offset: DATA; or bytes more to copy. It is read where DATA would have it. */
static bool send_block(struct reading *r, uint64_t offset, size_t bytes, uint64_t *copied)
{
    const struct cli_tree_entry *entry = r->entry;
    struct cli_tree_packer *packer = r->source->packer;
    size_t before = *copied ? COPY_BYTES : 0;
    uint8_t *at = cli_tree_packer_reserve(packer, before + DATA_HEADER + bytes);
    if (!at || cli_stopped() || !read_bytes(r, at + before + DATA_HEADER, bytes, offset))
        return false;
    cli_digest_add(&r->source->digest, at + before + DATA_HEADER, bytes);
    if (cli_tree_changes_same(entry->changes, entry->changes_bytes, offset, at + before + DATA_HEADER,
                              bytes)) {
        *copied += bytes;
        cli_tree_report_copied(r->source->report, bytes);
        return true;
    }
    if (!add_copy(r->source, copied))
        return false;
    put_data_header(at + before, bytes);
    packer->used += DATA_HEADER + bytes;
    cli_tree_report_moved(r->source->report, bytes);
    return true;
}

/* The blocks that differ from the receiver's, from there to the end. */
static bool send_changes(struct reading *r, uint64_t offset)
{
    uint64_t size = (uint64_t)r->status.st_size, copied = 0;
    size_t bytes = cli_tree_changes_block(r->entry->size_bytes);
    uint64_t blocks = (r->entry->changes_bytes - CLI_TREE_CHANGES_HEADER) / CLI_DIGEST_BYTES;
    uint64_t end = blocks * bytes < size ? blocks * bytes : size / bytes * bytes;
    lh_time since = cli_now();
    for (; offset < end; offset += bytes) /* each block */
        if (!cli_tree_packer_idle(r->source->packer, &since) || !send_block(r, offset, bytes, &copied))
            return false;
    return add_copy(r->source, &copied) && send_range(r, offset, size);
}

static bool is_aligned(const struct reading *r, uint64_t offset)
{
    return offset % cli_tree_changes_block(r->entry->size_bytes) == 0 &&
           (uint64_t)r->status.st_size > CLI_TREE_LARGE_BYTES;
}

static bool send_cut(struct reading *r, bool sparse)
{
    uint64_t offset = 0, size = (uint64_t)r->status.st_size;
    cli_digest_reset(&r->source->digest);
    if (r->entry->resume_bytes && !sparse) {
        if (compare_start(r))
            offset = r->entry->resume_bytes;
        else
            cli_digest_reset(&r->source->digest);
        if (r->reason)
            return true; /* nothing of it was sent */
    }
    struct cli_tree_record file = file_record(r, offset, sparse);
    bool changes = r->entry->changes && !sparse && is_aligned(r, offset);
    file.flags |= changes ? CLI_TREE_CHANGED : 0;
    if (!cli_tree_packer_add(r->source->packer, &file) || !add_attributes(r->source))
        return false;
    cli_tree_report_spared(r->source->report, offset);
    posix_fadvise(r->file, 0, 0, POSIX_FADV_SEQUENTIAL);
    bool sent = sparse ? send_sparse(r) : changes ? send_changes(r, offset) : send_range(r, offset, size);
    if (sent)
        check_unchanged(r);
    if (r->reason) {
        const struct cli_tree_record cancel = {.kind = CLI_TREE_CANCEL};
        return cli_tree_packer_add(r->source->packer, &cancel);
    }
    return sent && add_end(r->source);
}

/* ---- either ---------------------------------------------------------------------------------------- */

/* Whether it has a hole. What was not allocated may be one; only then is it worth a look. */
static bool has_hole(const struct reading *r)
{
    if ((uint64_t)r->status.st_blocks * 512 >= (uint64_t)r->status.st_size)
        return false;
    off_t hole = lseek(r->file, 0, SEEK_HOLE);
    return hole >= 0 && hole < r->status.st_size;
}

bool cli_tree_source_send(struct cli_tree_source *source, const struct cli_tree_operand *operand,
                          const struct cli_tree_entry *entry)
{
    struct reading r = {.source = source, .operand = operand, .entry = entry, .file = -1};
    bool going = true, sparse = false, dressed = true;
    uint8_t digest[CLI_DIGEST_BYTES];
    cli_tree_report_next(source->report, entry->path, entry->path_bytes);
    if (open_file(&r)) {
        sparse = has_hole(&r);
        dressed = cli_tree_reading_take(&source->reading, r.file, &r.status, "", 0);
        going = !sparse && r.status.st_size <= (off_t)PACKED_BYTES ? send_packed(&r) : send_cut(&r, sparse);
    }
    if (r.file >= 0)
        close(r.file);
    cli_digest_get(&source->digest, digest);
    if (r.reason) {
        cli_tree_report_fault(source->report, operand->prefix, entry->path, entry->path_bytes, r.reason);
        going = going && cli_tree_packer_fault(source->packer, entry->path, entry->path_bytes, r.reason);
    } else if (going) {
        cli_tree_report_file(source->report, entry->path, entry->path_bytes, (uint64_t)r.status.st_size,
                             sparse ? NULL : digest);
    }
    return going && (dressed || r.reason || fault_attributes(source, operand, entry));
}

bool cli_tree_source_folder(struct cli_tree_source *source, const struct cli_tree_operand *operand,
                            const struct cli_tree_entry *entry)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat status;
    if (!source->reading.xattrs && !source->reading.owners)
        return true;
    int folder = source->follow ? openat(operand->folder, entry->path, flags)
                                : cli_beneath_open(operand->folder, entry->path, flags, 0);
    if (folder < 0 || fstat(folder, &status)) {
        const char *reason = "the folder's attributes cannot be read";
        if (folder >= 0)
            close(folder);
        cli_tree_report_fault(source->report, operand->prefix, entry->path, entry->path_bytes, reason);
        return cli_tree_packer_fault(source->packer, entry->path, entry->path_bytes, reason);
    }
    bool dressed = cli_tree_reading_take(&source->reading, folder, &status, entry->path, entry->path_bytes);
    close(folder);
    return add_attributes(source) && (dressed || fault_attributes(source, operand, entry));
}

/* ---- a pipe ---------------------------------------------------------------------------------------- */

/* What has come is sent at once when nothing is in flight, and later, when no more has come for that time,
 * while few messages are. Else it waits for more: the ring has few places, and many short messages do not
 * fill a path. */
#define PIPE_WAITS_MS  2
#define PIPE_IN_FLIGHT 3u

/* Waits for input; what has come before is sent meanwhile. */
static bool await_input(struct cli_tree_source *source, int pipe)
{
    struct pollfd input = {.fd = pipe, .events = POLLIN};
    struct cli_tree_packer *packer = source->packer;
    lh_time since = cli_now();
    bool waited = false;
    while (poll(&input, 1, packer->used ? 0 : (int)(CLI_SLICE_NS / LH_NS_PER_MS)) <= 0) {
        uint64_t in_flight = cli_tree_packer_in_flight(packer);
        if (!in_flight || (waited && in_flight < PIPE_IN_FLIGHT))
            cli_tree_packer_flush(packer);
        waited = true;
        if (packer->used && poll(&input, 1, PIPE_WAITS_MS) > 0)
            return true;
        if (cli_stopped() || atomic_load(packer->stop) || packer->code ||
            !cli_tree_packer_idle(packer, &since))
            return false;
    }
    return true;
}

bool cli_tree_source_pipe(struct cli_tree_source *source, int pipe, int *error)
{
    struct cli_tree_packer *packer = source->packer;
    cli_digest_reset(&source->digest);
    for (;;) { /* each read, to the end of the pipe */
        uint8_t *at =
            await_input(source, pipe) ? cli_tree_packer_reserve(packer, DATA_HEADER + PIECE_MIN) : NULL;
        if (!at)
            return false;
        ssize_t got = read(pipe, at + DATA_HEADER, CLI_TREE_MESSAGE_MAX - packer->used - DATA_HEADER);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            *error = errno;
        if (got <= 0)
            return !got && add_end(source);
        put_data_header(at, (size_t)got);
        packer->used += DATA_HEADER + (size_t)got;
        cli_digest_add(&source->digest, at + DATA_HEADER, (size_t)got);
        cli_tree_report_moved(source->report, (uint64_t)got);
    }
}
