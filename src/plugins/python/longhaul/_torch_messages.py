"""send, recv and recv from any rank between the ranks of a torch.distributed group."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import struct
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from longhaul._native import LonghaulError, check, describe, failure, ffi, lib
from longhaul._torch_works import Endpoint, Finish, Work, finish_work, own_store
from longhaul.connection import Connection
from longhaul.group import Group

# ---- messages between two ranks ----------------------------------------------------------------------------

_HEADER = struct.Struct("<QQq")  # bytes of the message, number of its payload (0: it follows here), tag
_HEADER_MAX = 4096  # a small message: sent at once, before a receive is posted
_CHECK_S = 0.02  # interval of checks for peers that have not published their addresses
_ARRIVED_MAX = 16384  # messages of a peer, each of at most _HEADER_MAX bytes, that wait for a receive


class _Posted:
    """A request of the library, until its entry has been taken."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def cancel(self) -> None:
        if self.handle is not None:
            lib.lh_cancel(self.handle)

    def has_succeeded(self) -> bool:
        result = ffi.new("struct lh_result *")
        return self.handle is not None and lib.lh_test(self.handle, result) == 1 and result.error == 0

    def free(self) -> None:
        handle, self.handle = self.handle, None
        if handle is not None:
            lib.lh_request_free(handle)


@dataclasses.dataclass(eq=False)
class _Receive:
    tensor: torch.Tensor
    source: int | None  # None: any
    tag: int
    work: Work
    end: float
    finish: Finish | None
    payload: _Posted | None = None


@dataclasses.dataclass(eq=False)
class _Send:
    rank: int
    end: float
    steps: collections.deque[Callable[[], _Posted]]  # to be started, in this order
    posted: list[_Posted] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class _Arrived:
    """A message that has no receive yet. data: all of it, if number is 0."""

    rank: int
    tag: int
    count: int
    number: int
    data: bytes


class _Peer:
    """The connection to a rank. waiting: works whose messages have not started, in order."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.attached = False
        self.waiting: collections.deque[Work] = collections.deque()
        self.listening: _Posted | None = None  # the receive of the next header
        self.header = bytearray(_HEADER_MAX)
        self.numbers = itertools.count(1)
        self.arrived = 0  # messages without a receive
        self.error: LonghaulError | None = None


class Messages:
    """send, recv and recv from any rank, by connections of their own, which are opened by the first call.

    Each message is a header, which the receiver matches by source and tag, with the payload when both fit a
    small message. A longer payload follows under a number of its own, and is received into the tensor.
    """

    def __init__(
        self, group: Group, store: Any, endpoint: Endpoint, settings: dict[str, Any], token: str = ""
    ) -> None:
        """settings: of the connections. token: of the group, as of own_store()."""
        self._group = group
        self._token = token
        self._store = store
        self._endpoint = endpoint
        self._settings = settings
        self._opening = threading.Lock()  # held during calls of the store, which may wait; before _lock
        self._opened = False
        self._lock = threading.RLock()  # of the state, never held while a call waits
        self._changed = threading.Condition(self._lock)
        self._receives: list[_Receive] = []
        self._payloads: dict[_Receive, int] = {}  # matched, from rank
        self._arrived: list[_Arrived] = []
        self._finished: list[tuple[Work, BaseException | None, Finish | None]] = []
        self._sends: dict[Work, _Send] = {}
        self._peers: dict[int, _Peer] = {}
        self._checked = 0.0
        self._closing: LonghaulError | None = None  # no further messages start
        self._closed: LonghaulError | None = None  # what is pending ends with it

    def _open(self) -> None:
        """Opens the connections and publishes their addresses. Other callers wait; close() does not."""
        if self._opened:
            return
        with self._opening:
            if self._opened:
                return
            with self._lock:
                self._check_open()
                for rank in range(self._group.size):
                    if rank != self._group.rank and rank not in self._peers:
                        opened = Connection.open(self._endpoint.engine, **self._settings, match_tags=True)
                        self._peers[rank] = _Peer(opened)
                blobs = []
                for rank in range(self._group.size):
                    blob = b"" if rank == self._group.rank else self._peers[rank].connection.blob()
                    blobs.append(struct.pack("<H", len(blob)) + blob)
                key = f"longhaul/mail/{self._group.rank}"
            # A call of another thread that waits for a key would make this one's thread wait, too.
            store = own_store(self._store, self._token)
            store.set(key, b"".join(blobs))
            with self._lock:
                self._check_open()
                self._store = store
                self._opened = True

    def _check_open(self) -> None:
        if self._closing is not None:
            raise self._closing

    def send(self, tensor: torch.Tensor, rank: int, tag: int, work: Work, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._open()
        count = tensor.numel() * tensor.element_size()
        whole = count <= _HEADER_MAX - _HEADER.size
        with self._lock:
            self._check_open()
            peer = self._peer(rank)
            number = 0 if whole else next(peer.numbers)
            header = bytearray(_HEADER.pack(count, number, tag))
            first = [(ffi.from_buffer(header), len(header))]
            data = [(ffi.cast("void *", tensor.data_ptr()), count)]

            def sent(entry: Any) -> None:
                if self._sends.pop(work, None) is not None:
                    self._note(work, self._entry_error(entry, rank), None)
                    self._changed.notify_all()

            def post(parts: list[Any], under: int, handler: Any) -> Callable[[], _Posted]:
                return lambda: self._post(peer, lib.lh_sendmsg, parts, under, handler, (header, tensor))

            steps = collections.deque([post(first + data, 0, sent)])
            if not whole:
                steps = collections.deque([post(first, 0, None), post(data, number, sent)])
            self._sends[work] = _Send(rank, end, steps)
            peer.waiting.append(work)
            self._start_waiting(peer)
            self._endpoint.watch(self._watch)
        self._deliver()

    def recv(
        self,
        tensor: torch.Tensor,
        source: int | None,
        tag: int,
        work: Work,
        seconds: float,
        finish: Finish | None,
    ) -> None:
        receive = _Receive(tensor, source, tag, work, time.monotonic() + seconds, finish)
        self._open()
        with self._lock:
            self._check_open()
            for message in self._arrived:
                if self._fits(receive, message.rank, message.tag):
                    self._arrived.remove(message)
                    self._peers[message.rank].arrived -= 1
                    self._take(receive, message)
                    break
            else:
                if source is not None:
                    self._peer(source)
                self._receives.append(receive)
            self._listen()
            self._endpoint.watch(self._watch)
        self._deliver()

    def close(self, error: LonghaulError, drain: bool = False) -> None:
        """Closes the connections; pending messages end with the error.

        drain: waits first for messages that are being sent, and for those that are being received, which
        their time limits bound. Not in the thread of the endpoint, which ends them.
        """
        with self._lock:
            self._closing = self._closing or error
            while drain and (self._sends or self._payloads) and not self._endpoint.serves_here():
                self._changed.wait(0.1)
            self._closed = self._closed or error
            for peer in self._peers.values():
                peer.error = peer.error or error
        for peer in self._peers.values():
            peer.connection.close()
        with self._lock:
            self._end_all(error)
        self._deliver()

    # The rest holds the lock, and notes what has ended; _deliver() ends works without it.

    def _end_all(self, error: LonghaulError) -> None:
        for receive in (*self._receives, *self._payloads):
            self._note(receive.work, error, None)
        for work in self._sends:
            self._note(work, error, None)
        self._receives, self._payloads, self._sends = [], {}, {}
        for peer in self._peers.values():
            peer.waiting.clear()
        self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        """After a defect: what waits must end all the same."""
        described = failure(lib.LH_ESTATE, f"messages: {error!r}")
        for peer in self._peers.values():
            peer.error = peer.error or described
        for posted in [each.payload for each in self._payloads] + [
            each for send in self._sends.values() for each in send.posted
        ]:
            if posted is not None:
                posted.cancel()
        self._end_all(described)

    def _peer(self, rank: int) -> _Peer:
        peer = self._peers.get(rank)
        if peer is None:
            raise ValueError(
                f"rank {rank}: invalid peer of rank {self._group.rank} (0 to {self._group.size - 1})"
            )
        if peer.error is not None:
            raise peer.error
        return peer

    @staticmethod
    def _fits(receive: _Receive, source: int, tag: int) -> bool:
        return receive.tag == tag and receive.source in (None, source)

    def _post(self, peer: _Peer, call: Any, parts: list[Any], tag: int, handler: Any, keep: Any) -> _Posted:
        """Starts a message; handler(entry) holds the lock when it is done."""
        posted = _Posted(None)

        def done(entry: Any, keep: Any = keep) -> None:
            with self._lock:
                posted.free()
                if handler is not None:
                    try:
                        handler(entry)
                    except Exception as error:
                        self._fail(error)
            self._deliver()

        described = ffi.new("struct lh_part[]", [(memory, size, ffi.NULL) for memory, size in parts])
        number = self._endpoint.expect(done)
        message = ffi.new(
            "struct lh_message *", (described, len(parts), tag, 0, self._endpoint.queue, number)
        )
        handle = ffi.new("struct lh_request **")
        try:
            check(peer.connection._call(call, message, handle))
        except BaseException:
            self._endpoint.forget(number)
            raise
        posted.handle = handle[0]
        self._endpoint.wake()
        return posted

    def _start_waiting(self, peer: _Peer) -> None:
        """Starts messages in the order of their calls; the rest later, if the limit of requests is reached.
        """
        while peer.attached and peer.waiting:
            work = peer.waiting[0]
            send = self._sends.get(work)
            try:
                while send is not None and send.steps:
                    send.posted.append(send.steps[0]())
                    send.steps.popleft()
            except (LonghaulError, ValueError) as error:
                if isinstance(error, LonghaulError) and error.code == lib.LH_EAGAIN:
                    return
                del self._sends[work]
                self._note(work, self._closed or error, None)
                self._changed.notify_all()
            peer.waiting.popleft()

    def _listen(self) -> None:
        """Posts a receive for the next header of each peer that a pending receive waits for."""
        wanted = {receive.source for receive in self._receives}
        for rank, peer in self._peers.items():
            if (
                peer.attached
                and peer.listening is None
                and not peer.error
                and peer.arrived < _ARRIVED_MAX
                and (None in wanted or rank in wanted)
            ):
                memory = [(ffi.from_buffer(peer.header), len(peer.header))]
                try:
                    peer.listening = self._post(
                        peer,
                        lib.lh_recvmsg,
                        memory,
                        0,
                        lambda entry, rank=rank: self._on_header(rank, entry),
                        peer,
                    )
                except LonghaulError as error:
                    if error.code != lib.LH_EAGAIN:  # else later: _watch() calls again
                        self._on_lost(rank, error)

    def _on_header(self, rank: int, entry: Any) -> None:
        peer = self._peers[rank]
        peer.listening = None
        error = self._entry_error(entry, rank)
        size = entry.result.bytes
        if error is None:
            count, number, tag = _HEADER.unpack_from(peer.header)
            inside = size - _HEADER.size
            if inside < 0 or inside != (count if number == 0 else 0):
                error = failure(
                    lib.LH_EPROTOCOL,
                    f"rank {rank}: invalid message of {size} bytes (use one release at all ranks)",
                    rank,
                )
        if error is not None:
            self._on_lost(rank, error)
            return
        message = _Arrived(rank, tag, count, number, bytes(peer.header[_HEADER.size : size]))
        for receive in self._receives:
            if self._fits(receive, rank, tag):
                self._receives.remove(receive)
                self._take(receive, message)
                break
        else:
            self._arrived.append(message)
            peer.arrived += 1
        self._listen()

    def _on_lost(self, rank: int, error: LonghaulError) -> None:
        peer = self._peers[rank]
        error = peer.error = peer.error or error
        alone = all(other.error for other in self._peers.values()) or error.code == lib.LH_EPEER
        for receive in list(self._receives):
            if receive.source == rank or (receive.source is None and alone):
                self._receives.remove(receive)
                self._note(receive.work, error, None)
        for receive in [each for each, source in self._payloads.items() if source == rank]:
            self._cancel_payload(receive, error)
        for work in [work for work, send in self._sends.items() if send.rank == rank]:
            self._cancel_send(work, error)

    def _cancel_payload(self, receive: _Receive, error: LonghaulError) -> None:
        """The peer's send ends with Canceled."""
        assert receive.payload is not None
        receive.payload.cancel()
        if not receive.payload.has_succeeded():  # else its entry will come
            del self._payloads[receive]
            self._note(receive.work, error, None)
            self._changed.notify_all()

    def _cancel_send(self, work: Work, error: LonghaulError) -> None:
        """The peer's receive ends with Canceled, if it has begun."""
        send = self._sends[work]
        for posted in send.posted:
            posted.cancel()
        if send.steps or not send.posted[-1].has_succeeded():
            del self._sends[work]
            self._note(work, error, None)
            self._changed.notify_all()

    def _take(self, receive: _Receive, message: _Arrived) -> None:
        rank, count = message.rank, message.count
        receive.work._source = rank
        expected = receive.tensor.numel() * receive.tensor.element_size()
        into: Any = ffi.cast("void *", receive.tensor.data_ptr())
        error: LonghaulError | None = None
        if count != expected:
            error = failure(
                lib.LH_ETRUNCATED,
                f"message of {count} bytes from rank {rank}, tag {message.tag}: the tensor has {expected} "
                "bytes (send and receive tensors of one type and one number of elements)",
                rank,
            )
        if message.number == 0:
            if error is None:
                ffi.memmove(into, message.data, len(message.data))
            self._note(receive.work, error, receive.finish)
            return

        def received(entry: Any) -> None:
            if self._payloads.pop(receive, None) is None:
                return
            found = error or self._entry_error(entry, rank)
            if found is None and entry.result.bytes != count:
                found = failure(
                    lib.LH_EPROTOCOL, f"rank {rank}: {entry.result.bytes} bytes, announced {count}", rank
                )
            self._note(receive.work, found, receive.finish)
            self._changed.notify_all()

        # A receive of no bytes ends both sides with an error, and allocates nothing.
        parts = [(into, count)] if error is None else []
        try:
            receive.payload = self._post(
                self._peers[rank], lib.lh_recvmsg, parts, message.number, received, receive.tensor
            )
            self._payloads[receive] = rank
            if error is not None:
                self._note(receive.work, error, None)
        except (LonghaulError, ValueError) as failed:
            self._note(receive.work, self._closed or error or failed, None)

    def _watch(self) -> bool:
        """Attaches peers that have published their addresses, and ends what has taken too long."""
        try:
            more = self._watch_all()
        except Exception as error:
            with self._lock:
                self._fail(error)
                more = False
        self._deliver()
        return more

    def _watch_all(self) -> bool:
        now, missing = time.monotonic(), []
        with self._lock:
            if self._closed is not None:
                return False
            if now >= self._checked + _CHECK_S:
                self._checked = now
                for rank, peer in self._peers.items():
                    error = None if peer.error else self._group.error(rank)
                    if error is not None:
                        if peer.listening is None or not peer.listening.has_succeeded():
                            self._on_lost(rank, error)  # else its last message first
                    elif not peer.attached and not peer.error:
                        missing.append(rank)
        found = {rank: self._look_up(rank) for rank in missing}  # calls of the store
        with self._lock:
            if self._closed is not None:
                return False
            for rank, blob in found.items():
                if isinstance(blob, LonghaulError):
                    self._on_lost(rank, blob)
                elif blob is not None:
                    self._attach(rank, blob)
            self._end_late(now)
            for peer in self._peers.values():
                self._start_waiting(peer)
            self._listen()
            return bool(self._receives or self._payloads or self._sends) or not all(
                p.attached or p.error for p in self._peers.values()
            )

    def _end_late(self, now: float) -> None:
        for receive in list(self._receives):
            if now > receive.end:
                self._receives.remove(receive)
                self._note(receive.work, self._late_receive(receive), None)
        for receive, rank in list(self._payloads.items()):
            if now > receive.end:
                self._cancel_payload(receive, _late(f"recv, tag {receive.tag}", rank))
        for work, send in list(self._sends.items()):
            if now > send.end:
                self._cancel_send(work, _late("send", send.rank))

    def _late_receive(self, receive: _Receive) -> LonghaulError:
        for rank, peer in self._peers.items():
            if receive.source in (None, rank) and peer.arrived >= _ARRIVED_MAX:
                return failure(
                    lib.LH_ETIMEDOUT,
                    f"recv, tag {receive.tag}, of rank {rank}: deadline passed, while {peer.arrived} "
                    "messages with other tags, the limit, wait for a receive (receive these first)",
                )
        return _late(f"recv, tag {receive.tag}", receive.source)

    def _look_up(self, rank: int) -> bytes | LonghaulError | None:
        """The address that a rank has published for this one; without the lock."""
        key = f"longhaul/mail/{rank}"
        try:
            if not self._store.check([key]):
                return None
            blobs, at = bytes(self._store.get(key)), 0
            for _ in range(self._group.rank):
                at += 2 + struct.unpack_from("<H", blobs, at)[0]
            end = at + 2 + struct.unpack_from("<H", blobs, at)[0]
            if end > len(blobs):
                raise ValueError(f"{len(blobs)} bytes, expected {end} or more")
            return blobs[at + 2 : end]
        except RuntimeError as error:
            return failure(lib.LH_ECLOSED, f"store: {error}", rank)
        except (struct.error, TypeError, ValueError) as error:
            text = f"rank {rank}: invalid address in the store: {error} (use one release at all ranks)"
            return failure(lib.LH_EPROTOCOL, text, rank)

    def _attach(self, rank: int, blob: bytes) -> None:
        peer = self._peers[rank]
        if peer.attached or peer.error:
            return
        try:
            peer.connection.attach(blob)
            peer.attached = True
        except LonghaulError as error:
            self._on_lost(rank, error)

    def _note(self, work: Work, error: BaseException | None, finish: Finish | None) -> None:
        if not work.is_completed() and all(work is not noted for noted, _, _ in self._finished):
            self._finished.append((work, error, finish))

    def _deliver(self) -> None:
        with self._lock:
            finished, self._finished = self._finished, []
        for work, error, finish in finished:
            try:
                finish_work(work, error, finish)
            except Exception:  # the others must end all the same
                traceback.print_exc()

    def _entry_error(self, entry: Any, rank: int) -> LonghaulError | None:
        code = entry.result.error
        if not code:
            return None
        return self._closed or failure(code, f"rank {rank}: {describe(code)}", rank)


def _late(what: str, source: int | None) -> LonghaulError:
    whom = "" if source is None else f" of rank {source}"
    return failure(
        lib.LH_ETIMEDOUT, f"{what}{whom}: deadline passed (a longer timeout, or a peer that never called)"
    )
