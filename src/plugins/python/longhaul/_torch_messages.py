"""send, recv and recv from any rank between the ranks of a torch.distributed group."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from longhaul._native import LonghaulError, check, describe, failure, ffi, lib
from longhaul._torch_works import Endpoint, Finish, Work, finish_work
from longhaul.connection import Connection
from longhaul.group import Group

# ---- messages between two ranks ----------------------------------------------------------------------------

_HEADER = struct.Struct("<QQq")  # bytes of the message, number of its payload (0: it follows here), tag
_HEADER_MAX = 4096  # a small message: sent at once, before a receive is posted
_CHECK_S = 0.02  # interval of checks for peers that have not published their addresses


@dataclasses.dataclass(eq=False)
class _Receive:
    tensor: torch.Tensor
    source: int | None  # None: any
    tag: int
    work: Work
    end: float
    finish: Finish | None


class _Peer:
    """The connection to a rank. waiting: sends before it is connected."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.attached = False
        self.waiting: list[Callable[[], None]] = []
        self.listening = False  # a receive of a header is posted
        self.header = bytearray(_HEADER_MAX)
        self.numbers = itertools.count(1)
        self.error: LonghaulError | None = None


class Messages:
    """send, recv and recv from any rank, by connections of their own, which are opened by the first call.

    Each message is a header, which the receiver matches by source and tag, with the payload when both fit a
    small message. A longer payload follows under a number of its own, and is received into the tensor.
    """

    def __init__(self, group: Group, store: Any, endpoint: Endpoint, settings: dict[str, Any]) -> None:
        """settings: of the connections."""
        self._group = group
        # A call of another thread that waits for a key would make this one's thread wait, too.
        self._store = store.clone() if hasattr(store, "clone") else store
        self._endpoint = endpoint
        self._lock = threading.RLock()
        self._receives: list[_Receive] = []
        self._arrived: collections.deque[tuple[int, int, int, int, bytes]] = collections.deque()
        self._finished: list[tuple[Work, BaseException | None, Finish | None]] = []
        self._sends: dict[Work, tuple[int, float]] = {}  # to rank; time of its end
        self._peers: dict[int, _Peer] = {}
        self._checked = 0.0
        blobs = []
        for rank in range(group.size):
            blob = b""
            if rank != group.rank:
                self._peers[rank] = _Peer(Connection.open(endpoint.engine, **settings, match_tags=True))
                blob = self._peers[rank].connection.blob()
            blobs.append(struct.pack("<H", len(blob)) + blob)
        self._store.set(f"longhaul/mail/{group.rank}", b"".join(blobs))
        self._endpoint.watch(self._watch)

    def send(self, tensor: torch.Tensor, rank: int, tag: int, work: Work, seconds: float) -> None:
        peer, count = self._peer(rank), tensor.numel() * tensor.element_size()
        whole = count <= _HEADER_MAX - _HEADER.size
        with self._lock:
            self._sends[work] = (rank, time.monotonic() + seconds)

            def start() -> None:
                number = 0 if whole else next(peer.numbers)
                header = bytearray(_HEADER.pack(count, number, tag))
                parts = [(ffi.from_buffer(header), len(header))]
                data = (ffi.cast("void *", tensor.data_ptr()), count)
                self._post(
                    peer,
                    lib.lh_sendmsg,
                    parts + [data] * whole,
                    0,
                    None if not whole else sent,
                    (header, tensor),
                )
                if not whole:
                    self._post(peer, lib.lh_sendmsg, [data], number, sent, tensor)

            def sent(entry: Any) -> None:
                self._sends.pop(work, None)
                self._note(work, _entry_error(entry, rank), None)

            if peer.attached:
                start()
            else:
                peer.waiting.append(start)
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
        if source is not None:
            self._peer(source)
        receive = _Receive(tensor, source, tag, work, time.monotonic() + seconds, finish)
        with self._lock:
            for message in self._arrived:
                if self._fits(receive, message[0], message[1]):
                    self._arrived.remove(message)
                    self._take(receive, *message)
                    break
            else:
                self._receives.append(receive)
                self._listen()
        self._endpoint.watch(self._watch)
        self._deliver()

    def close(self, error: LonghaulError) -> None:
        """Closes the connections; pending messages end with the error."""
        with self._lock:
            for peer in self._peers.values():
                peer.connection.close()
                peer.error = peer.error or error
            self._end_all(error)
        self._deliver()

    # The rest holds the lock, and notes what has ended; _deliver() ends works without it.

    def _end_all(self, error: LonghaulError) -> None:
        for receive in self._receives:
            self._note(receive.work, error, None)
        for work in self._sends:
            self._note(work, error, None)
        self._receives, self._sends = [], {}

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

    def _post(self, peer: _Peer, call: Any, parts: list[Any], tag: int, handler: Any, keep: Any) -> None:
        """Starts a message; handler(entry) holds the lock when it is done."""

        def done(entry: Any, keep: Any = keep) -> None:
            with self._lock:
                if handler is not None:
                    try:
                        handler(entry)
                    except Exception as error:  # a defect: what waits must end all the same
                        self._end_all(failure(lib.LH_ESTATE, f"messages: {error!r}"))
            self._deliver()

        described = ffi.new("struct lh_part[]", [(memory, size, ffi.NULL) for memory, size in parts])
        number = self._endpoint.expect(done)
        message = ffi.new(
            "struct lh_message *", (described, len(parts), tag, 0, self._endpoint.queue, number)
        )
        code = call(peer.connection._handle, message, ffi.NULL)
        if code < 0:
            self._endpoint.forget(number)
            check(code)
        self._endpoint.wake()

    def _listen(self) -> None:
        """Posts a receive for the next header of each peer that a pending receive waits for."""
        wanted = {receive.source for receive in self._receives}
        for rank, peer in self._peers.items():
            if peer.attached and not peer.listening and not peer.error and (None in wanted or rank in wanted):
                peer.listening = True
                memory = [(ffi.from_buffer(peer.header), len(peer.header))]
                self._post(
                    peer,
                    lib.lh_recvmsg,
                    memory,
                    0,
                    lambda entry, rank=rank: self._on_header(rank, entry),
                    peer,
                )

    def _on_header(self, rank: int, entry: Any) -> None:
        peer = self._peers[rank]
        peer.listening = False
        error = _entry_error(entry, rank)
        if error is not None:
            self._on_lost(rank, error)
            return
        count, number, tag = _HEADER.unpack_from(peer.header)
        message = (rank, tag, count, number, bytes(peer.header[_HEADER.size : entry.result.bytes]))
        for receive in self._receives:
            if self._fits(receive, rank, tag):
                self._receives.remove(receive)
                self._take(receive, *message)
                break
        else:
            self._arrived.append(message)
        self._listen()

    def _on_lost(self, rank: int, error: LonghaulError) -> None:
        peer = self._peers[rank]
        peer.error = peer.error or error
        alone = all(other.error for other in self._peers.values()) or error.code == lib.LH_EPEER
        for receive in list(self._receives):
            if receive.source == rank or (receive.source is None and alone):
                self._receives.remove(receive)
                self._note(receive.work, error, None)
        for work in [work for work, (to, _) in self._sends.items() if to == rank]:
            del self._sends[work]
            self._note(work, error, None)

    def _take(self, receive: _Receive, rank: int, tag: int, count: int, number: int, data: bytes) -> None:
        tensor, work = receive.tensor, receive.work
        work._source = rank
        expected = tensor.numel() * tensor.element_size()
        into: Any = ffi.cast("void *", tensor.data_ptr())
        error: LonghaulError | None = None
        if count != expected:
            error = failure(
                lib.LH_ETRUNCATED,
                f"message of {count} bytes from rank {rank}, tag {tag}: the tensor has {expected} bytes "
                "(send and receive tensors of one type and one number of elements)",
                rank,
            )
            into = ffi.new("char[]", count)  # the sender's message is complete in any case
        if number == 0:
            if error is None:
                ffi.memmove(into, data, count)
            self._note(work, error, receive.finish)
            return
        self._post(
            self._peers[rank],
            lib.lh_recvmsg,
            [(into, count)],
            number,
            lambda entry: self._note(work, error or _entry_error(entry, rank), receive.finish),
            (tensor, into),
        )

    def _watch(self) -> bool:
        """Attaches peers that have published their addresses, and ends what has taken too long."""
        now = time.monotonic()
        with self._lock:
            if now >= self._checked + _CHECK_S:
                self._checked = now
                for rank, peer in self._peers.items():
                    if not peer.error:
                        self._check(rank, peer)
            for receive in list(self._receives):
                if now > receive.end:
                    self._receives.remove(receive)
                    self._note(receive.work, _late(f"recv, tag {receive.tag}", receive.source), None)
            for work, (rank, end) in list(self._sends.items()):
                if now > end:
                    del self._sends[work]
                    self._note(work, _late("send", rank), None)
            more = bool(self._receives or self._sends) or not all(
                p.attached or p.error for p in self._peers.values()
            )
        self._deliver()
        return more

    def _check(self, rank: int, peer: _Peer) -> None:
        """Ends what waits for a rank that has failed; attaches one that has published its address."""
        error = self._group.error(rank)
        if error is not None:
            self._on_lost(rank, error)
        elif not peer.attached:
            self._attach(rank, peer)

    def _attach(self, rank: int, peer: _Peer) -> None:
        try:
            key = f"longhaul/mail/{rank}"
            if not self._store.check([key]):
                return
            blobs, at = bytes(self._store.get(key)), 0
            for _ in range(self._group.rank):
                at += 2 + struct.unpack_from("<H", blobs, at)[0]
            peer.connection.attach(blobs[at + 2 : at + 2 + struct.unpack_from("<H", blobs, at)[0]])
            peer.attached = True
            for start in peer.waiting:
                start()
            peer.waiting = []
            self._listen()
        except LonghaulError as error:
            self._on_lost(rank, error)
        except RuntimeError as error:  # the store is gone
            self._on_lost(rank, failure(lib.LH_ECLOSED, f"store: {error}", rank))

    def _note(self, work: Work, error: BaseException | None, finish: Finish | None) -> None:
        if not work.is_completed() and all(work is not noted for noted, _, _ in self._finished):
            self._finished.append((work, error, finish))

    def _deliver(self) -> None:
        with self._lock:
            finished, self._finished = self._finished, []
        for work, error, finish in finished:
            finish_work(work, error, finish)


def _entry_error(entry: Any, rank: int) -> LonghaulError | None:
    code = entry.result.error
    return failure(code, f"rank {rank}: {describe(code)}", rank) if code else None


def _late(what: str, source: int | None) -> LonghaulError:
    whom = "" if source is None else f" of rank {source}"
    return failure(
        lib.LH_ETIMEDOUT, f"{what}{whom}: deadline passed (a longer timeout, or a peer that never called)"
    )
