"""Reliable messages between two endpoints: `connect`, `listen`, `Connection`, `Request`, `Engine`,
`CompletionQueue`.

    import longhaul
    listener = longhaul.listen("127.0.0.1:0")                 # one process
    connection = longhaul.connect(f"127.0.0.1:{listener.port}")   # another
    connection.send(b"hello").wait()                          # peer: .recv(bytearray(64)).wait().bytes

A connection takes the settings of struct lh_attr: device="udp:10.0.0.1", reliability="ec:mds",
rate_bps=10**9, link="rtt=25ms,loss=1e-3". Times are seconds.

Between hosts both sides need a key, with which everything is authenticated and encrypted: key="FILE"
(`longhaul key new FILE`), or the same random bytes; default: the file of LONGHAUL_KEY_FILE. Or code="…",
for one connection over TCP. encryption="auth" is for networks that encrypt. Without a key only peers on this
host are served and connected to, unless both sides say insecure=True: then any host can be the peer, in clear
text.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

from longhaul._native import (
    Buffer,
    LonghaulError,
    check,
    describe,
    failure,
    ffi,
    fields_of,
    lib,
    nanoseconds,
    set_fields,
    sliced,
    text,
)
from longhaul._pending import Closes, Handle, Pending, ranges_of
from longhaul._security import Key, security


class Engine(Closes):
    """A device with its sockets and threads, shared by connections, listeners and groups.

    settings: fields of struct lh_engine_attr: device="udp:127.0.0.1" (required), workers=2, rate_bps=10**9.
    """

    def __init__(self, **settings: Any) -> None:
        keep: list[Any] = []
        attr = ffi.new("struct lh_engine_attr *")
        lib.lh_engine_attr_init(attr)
        set_fields(attr, settings, keep)
        handle = ffi.new("struct lh_engine **")
        check(lib.lh_engine_create(attr, handle))
        self._handle = handle[0]

    def close(self) -> None:
        """Ends the threads and closes the device. LonghaulError: connections, groups or queues remain."""
        if self._handle is not None:
            check(lib.lh_engine_destroy(self._handle))
            self._handle = None

    def memory(self) -> dict[str, int]:
        """Memory of the connections in bytes: limit_bytes, now_bytes, most_bytes, refusals."""
        found = ffi.new("struct lh_engine_memory *")
        check(lib.lh_engine_memory(self._handle, found))
        return fields_of(found)


@dataclasses.dataclass(frozen=True)
class Completion:
    """A completed operation of a queue. user: its number. error: None: it succeeded. bytes, tag: of the
    message.
    """

    user: int
    operation: int
    error: LonghaulError | None
    bytes: int
    tag: int


class CompletionQueue(Closes):
    """One place, and one descriptor, for the ends of operations of an engine; also for asyncio.

        queue.attach()                                   # in the running loop
        result = await group.allreduce(data, queue=queue)

    capacity: maximum of pending operations and unpolled entries together.
    """

    def __init__(self, engine: Engine, capacity: int = 4096) -> None:
        handle = ffi.new("struct lh_completion_queue **")
        check(lib.lh_completion_queue_create(engine._handle, capacity, handle))
        self._handle = handle[0]
        self._entries = ffi.new("struct lh_completion[]", 64)
        self._numbers = itertools.count(1)
        self._futures: dict[int, asyncio.Future[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def number(self) -> int:
        """A number for the next operation: Completion.user."""
        return next(self._numbers)

    def poll(self) -> list[Completion]:
        """Takes entries, at most 64, oldest first; none if there is none."""
        return self._taken(check(lib.lh_poll(self._handle, self._entries, 64)))

    def wait(self, timeout: float | None = None) -> list[Completion]:
        """Waits for the first entry, and takes at most 64. TimedOut after `timeout` seconds."""
        count = sliced(lambda ns: int(lib.lh_queue_wait(self._handle, self._entries, 64, ns)), timeout)
        return self._taken(check(count))

    def fileno(self) -> int:
        """The descriptor: it becomes readable with the first entry after arm()."""
        return check(lib.lh_queue_fd(self._handle))

    def arm(self) -> int:
        """Arms the descriptor before a sleep. Returns 0, or the number of entries to poll first."""
        return check(lib.lh_queue_arm(self._handle))

    def attach(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Serves `await operation` in an event loop; default: the running one. Then do not call poll() or
        wait().
        """
        self._loop = loop or asyncio.get_running_loop()
        self._loop.add_reader(self.fileno(), self._on_readable)
        self._on_readable()

    def future(self, user: int) -> asyncio.Future[None]:
        """A future of the attached loop that is done when the operation with this number is done.

        Call it in the loop, while the operation is pending.
        """
        if self._loop is None:
            raise RuntimeError("queue: not attached to an event loop (call attach() in it)")
        future = self._futures[user] = self._loop.create_future()
        return future

    def close(self) -> None:
        """Frees the queue. LonghaulError: operations are pending."""
        if self._handle is None:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self.fileno())
        check(lib.lh_completion_queue_destroy(self._handle))
        self._handle = None

    def _on_readable(self) -> None:
        while self.arm() > 0:
            for entry in self.poll():
                future = self._futures.pop(entry.user, None)
                if future is not None and not future.done():
                    future.set_result(None)

    def _taken(self, count: int) -> list[Completion]:
        found = []
        for i in range(count):
            entry = self._entries[i]
            error = failure(entry.result.error, describe(entry.result.error)) if entry.result.error else None
            found.append(Completion(entry.user, entry.operation, error, entry.result.bytes, entry.result.tag))
        return found


@dataclasses.dataclass(frozen=True)
class Delivery:
    """A message that was sent or received. bytes: its length. tag: set by its sender. seconds: from the first
    packet, or from the posted receive, to the end. missing_bytes: of a receive with a deadline, bytes that
    did not arrive."""

    bytes: int
    tag: int
    seconds: float
    missing_bytes: int


class Request(Pending[Delivery]):
    """A message in progress. It keeps its buffers, and the connection keeps it, until it is done."""

    _WAIT, _TEST, _CANCEL = "lh_wait", "lh_test", "lh_cancel"
    _FREE, _RESULT = "lh_request_free", "struct lh_result *"
    _NAME, _REMEDY = "message", "cancel it"

    def _result(self, found: Any) -> Delivery | LonghaulError:
        if found.error:
            return failure(found.error, describe(found.error))
        if found.missing_bytes:
            self._ranges = ranges_of(lib.lh_missing, self._handle)
        seconds = (found.ended_ns - found.started_ns) / 1e9
        return Delivery(found.bytes, found.tag, seconds, found.missing_bytes)


class Connection(Handle):
    """Reliable messages to and from a peer. The n-th send fills the n-th receive; with match_tags=True tags
    choose. Any thread may use it. It closes itself when nothing refers to it, its requests and its regions.
    """

    _NAME = "connection"

    def __init__(self, handle: Any, engine: Engine | None, keep: Any = None) -> None:
        super().__init__(handle)
        self._engine = engine
        self._keep = keep
        self._closing = False
        self._regions: set[Region] = set()  # the peer writes into their memory, whatever refers to them

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            lib.lh_close(handle)

    @classmethod
    def open(
        cls, engine: Engine | None = None, *, key: Key = None, insecure: bool = False, **settings: Any
    ) -> Connection:
        """Opens an endpoint that is not connected yet: exchange blob() with the peer, then attach()."""
        keep: list[Any] = []
        handle = ffi.new("struct lh_connection **")
        secured = security(key, keep, insecure=insecure)
        check(lib.lh_open(_attributes(engine, settings, keep, secured), handle))
        return cls(handle[0], engine, keep)

    def blob(self) -> bytes:
        """This side's description, at most 1536 bytes, for the peer's attach()."""
        buffer, size = ffi.new("uint8_t[]", lib.LH_BLOB_MAX), ffi.new("size_t *", lib.LH_BLOB_MAX)
        check(self._call(lib.lh_blob, buffer, size))
        return bytes(ffi.buffer(buffer, size[0]))

    def attach(self, blob: bytes) -> None:
        """Connects to the peer of a blob."""
        check(self._call(lib.lh_attach, blob, len(blob)))

    def send(self, data: Any, *, tag: int = 0, queue: CompletionQueue | None = None) -> Request:
        """Starts sending a message: contiguous memory, or a list of at most 16 of them."""
        return self._start(lib.lh_sendmsg, data, False, tag, 0, queue)

    def recv(self, into: Any, *, tag: int | None = None, queue: CompletionQueue | None = None) -> Request:
        """Starts receiving a message into writable memory, or a list of at most 16 of them.

        tag: with match_tags=True, of the message; None: any. A longer message than the memory fails at both
        sides.
        """
        return self._start(lib.lh_recvmsg, into, True, tag or 0, 0 if tag is not None else 2**64 - 1, queue)

    def expose(self, memory: Any, *, write: bool = True, read: bool = True) -> Region:
        """Exposes writable memory to the peer, until Region.revoke() or close()."""
        return Region(self, memory, write, read)

    def write(self, key: bytes, data: Any, *, offset: int = 0) -> Request:
        """Starts writing data to the peer's region, from `offset` bytes on. key: Region.key of the peer."""
        return self._onesided(lib.lh_write, key, data, False, offset)

    def read(self, key: bytes, into: Any, *, offset: int = 0) -> Request:
        """Starts reading the peer's region, from `offset` bytes on, into writable memory."""
        return self._onesided(lib.lh_read, key, into, True, offset)

    @property
    def peer(self) -> str:
        """The peer's address, for display."""
        return str(self._call(lambda handle: text(lib.lh_peer_name(handle))))

    def stats(self) -> dict[str, int]:
        """The counters of longhaul/stats.h."""
        found = ffi.new("struct lh_stats *")
        check(self._call(lib.lh_connection_stats, found))
        return fields_of(found)

    def path(self) -> dict[str, int]:
        """The measured path in ns: rtt_ns, rtt_minimum_ns, overdue_ns, reorder_window_ns; 0 before the first
        sample.
        """
        found = ffi.new("struct lh_path_view *")
        check(self._call(lib.lh_connection_path, found))
        return fields_of(found)

    def bottleneck(self) -> str:
        """What limited this side's sends, and the remedy."""
        report = ffi.new("struct lh_bottleneck_report *")
        check(self._call(lib.lh_connection_bottleneck, report))
        out = ffi.new("char[]", lib.LH_BOTTLENECK_WORDS_MAX)
        return text(lib.lh_bottleneck_words(report, out, lib.LH_BOTTLENECK_WORDS_MAX))

    def error(self) -> LonghaulError | None:
        """The error that ended the connection; None: it lives."""
        code = self._call(lib.lh_connection_error)
        return failure(code, describe(code)) if code else None

    def close(self) -> None:
        """Notifies the peer, ends pending messages with an error, and revokes the regions."""
        with self._idle:
            handle = self._handle
            if handle is None:
                while self._closing:  # by another thread
                    self._idle.wait()
                return
            self._handle, self._closing = None, True
        closed = False
        try:
            with self._idle:
                while self._users > 0:
                    self._idle.wait()
            closed = True
            lib.lh_close(handle)  # requests end, and their waiters wake, but requests stay valid
            for request in list(self._pending):
                request._look()
        finally:
            with self._idle:
                if closed:
                    regions, self._regions = self._regions, set()
                    for region in regions:
                        region._handle, region._buffers = None, []
                else:  # interrupted
                    self._handle = handle
                self._closing = False
                self._idle.notify_all()

    def _end(self) -> None:
        if not any(request._users for request in list(self._pending)):  # no thread waits
            self.close()

    def _start(
        self, call: Any, memory: Any, writable: bool, tag: int, ignore: int, queue: CompletionQueue | None
    ) -> Request:
        buffers, parts = _parts(memory, writable)
        message = ffi.new(
            "struct lh_message *", {"parts": parts, "count": len(buffers), "tag": tag, "ignore": ignore}
        )
        user = 0
        if queue is not None:
            user = queue.number()
            message.queue, message.user = queue._handle, user
        return self._request(call, message, buffers, queue, user)

    def _onesided(self, call: Any, key: bytes, memory: Any, writable: bool, offset: int) -> Request:
        buffers, parts = _parts(memory, writable)
        operation = ffi.new("struct lh_onesided *", {"parts": parts, "count": len(buffers), "offset": offset})
        if len(key) != 16:
            raise ValueError(f"key of {len(key)} bytes: invalid (16 bytes, Region.key of the peer)")
        ffi.memmove(operation.key.bytes, key, 16)
        return self._request(call, operation, buffers, None, 0)

    def _request(
        self, call: Any, described: Any, buffers: Any, queue: CompletionQueue | None, user: int
    ) -> Request:
        handle = ffi.new("struct lh_request **")

        def begin(connection: Any) -> Request:  # close() sees the request
            code = call(connection, described, handle)
            if code == -lib.LH_EAGAIN:  # requests that are done count, too
                self._sweep(len(self._pending))
                code = call(connection, described, handle)
            check(code)
            request = Request(self, handle[0], buffers, queue, user)
            with self._idle:
                self._pending[request] = None
            return request

        self._sweep()
        request: Request = self._call(begin)
        return request


class Region:
    """Memory that the peer of a connection may write and read. key: 16 bytes for that peer.

    The connection keeps it, and it keeps the memory, until revoke() or Connection.close().
    """

    def __init__(self, connection: Connection, memory: Any, write: bool, read: bool) -> None:
        self._buffers, parts = _parts(memory, True)
        self._connection = connection
        self._handle: Any = None
        self.key = b""
        access = (lib.LH_ACCESS_WRITE if write else 0) | (lib.LH_ACCESS_READ if read else 0)

        def begin(opened: Any) -> None:
            handle, key = ffi.new("struct lh_region **"), ffi.new("struct lh_key *")
            check(lib.lh_expose(opened, parts, access, ffi.NULL, 0, handle))
            with connection._idle:
                self._handle = handle[0]
                connection._regions.add(self)
            lib.lh_region_key(handle[0], key)
            self.key = bytes(ffi.buffer(key))

        connection._call(begin)

    def revoke(self) -> None:
        """Ends the peer's access; afterwards no packet changes the memory."""
        connection = self._connection
        with connection._idle:
            handle, self._handle = self._handle, None
            if connection._handle is not None:
                if handle is not None:
                    lib.lh_revoke(handle)
                connection._regions.discard(self)
                self._buffers = []
                return
        connection.close()  # perhaps in progress: it revokes, too
        self._buffers = []


class Listener(Closes):
    """Accepts connections. port: the TCP port it listens on."""

    def __init__(
        self, where: str, engine: Engine | None, settings: dict[str, Any], secured: dict[str, Any]
    ) -> None:
        self._keep: list[Any] = []
        self._engine = engine
        handle = ffi.new("struct lh_listener **")
        attr = _attributes(engine, settings, self._keep, security(keep=self._keep, **secured))
        check(lib.lh_listen(where.encode(), attr, handle))
        self._handle = handle[0]
        self.port: int = lib.lh_listener_port(self._handle)

    def accept(self, timeout: float | None = None) -> Connection:
        """Accepts the next connection. TimedOut after `timeout` seconds."""
        handle = ffi.new("struct lh_connection **")
        check(lib.lh_accept(self._handle, nanoseconds(timeout), handle))
        return Connection(handle[0], self._engine, self._keep)

    def close(self) -> None:
        """Stops listening; accepted connections stay."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            lib.lh_listener_close(handle)


def listen(
    where: str,
    *,
    engine: Engine | None = None,
    key: Key = None,
    code: str | None = None,
    encryption: str | None = None,
    insecure: bool = False,
    **settings: Any,
) -> Listener:
    """Listens at "HOST:PORT", "[::]:PORT" or ":PORT"; port 0: any free one (Listener.port)."""
    secured = {"key": key, "code": code, "encryption": encryption, "insecure": insecure}
    return Listener(where, engine, settings, secured)


def connect(
    where: str,
    *,
    timeout: float = 30.0,
    engine: Engine | None = None,
    key: Key = None,
    code: str | None = None,
    encryption: str | None = None,
    insecure: bool = False,
    **settings: Any,
) -> Connection:
    """Connects to a listener at "HOST:PORT" within `timeout` seconds."""
    keep: list[Any] = []
    handle = ffi.new("struct lh_connection **")
    secured = security(key, keep, code=code, encryption=encryption, insecure=insecure)
    attr = _attributes(engine, settings, keep, secured)
    check(lib.lh_connect(where.encode(), attr, nanoseconds(timeout), handle))
    return Connection(handle[0], engine, keep)


def _attributes(engine: Engine | None, settings: dict[str, Any], keep: list[Any], secured: Any) -> Any:
    attr = ffi.new("struct lh_attr *")
    lib.lh_attr_init(attr)
    set_fields(attr, settings, keep)
    attr.security = secured
    if engine is not None:
        attr.engine = engine._handle
    return attr


def _parts(memory: Any, writable: bool) -> tuple[list[Buffer], Any]:
    given: Sequence[Any] = memory if isinstance(memory, (list, tuple)) else [memory]
    buffers = [Buffer(each, writable) for each in given]
    return buffers, ffi.new("struct lh_part[]", [(each.address, each.bytes, ffi.NULL) for each in buffers])
