"""An all-reduce of two levels (longhaul.torch.hierarchical()): within each site by one backend, between the
first ranks of the sites by another.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist

from longhaul._native import Canceled, LonghaulError, failure, lib
from longhaul._torch_works import Exchange, Finish, Work, finish_work

_REPORT_BYTES = 512
_JOIN_S = 5.0
_SLICE = datetime.timedelta(milliseconds=200)


@dataclasses.dataclass
class _Reduction:
    """An all-reduce between its start and its end. across: the work between the sites, at a leader."""

    work: Work
    tensor: torch.Tensor
    op: Any
    timeout: Any
    finish: Finish | None
    ready: Any = None  # event of the caller's stream
    across: Any = None
    error: BaseException | None = None


class SiteReducer:
    """Reduces within the site to its leader, between the leaders, and broadcasts within the site.

    up, down: groups of the ranks of this site, whose rank 0 is the leader; None: there is one rank. across:
    the group of the leaders; None at other ranks, and where there is one site. leaders: their ranks in the
    whole group.

    A thread reduces, another broadcasts, so that several all-reduces are between the sites at once. Each of
    the groups has one thread, so that the order of its calls is the same at all ranks. A first failure ends
    all later ones, too: ranks would no longer agree which of them comes next.
    """

    def __init__(self, up: Any, down: Any, across: Any, leaders: Sequence[int]) -> None:
        self._up, self._down, self._across, self._leaders = up, down, across, leaders
        self._leads = down is None or down.rank() == 0
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._pending: set[Work] = set()
        self._ending: set[Work] = set()  # callbacks of their futures may run
        self._broken: BaseException | None = None
        self._closed = False
        self._rise_failed: BaseException | None = None  # of the first thread
        self._rising: queue.SimpleQueue[_Reduction | None] = queue.SimpleQueue()
        self._sinking: queue.SimpleQueue[_Reduction | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=each, name="longhaul-sites", daemon=True)
            for each in ((self._rising, self._rise, self._sinking), (self._sinking, self._sink, None))
        ]
        for thread in self._threads:
            thread.start()

    def start(
        self,
        work: Work,
        tensor: torch.Tensor,
        op: Any,
        timeout: Any,
        finish: Finish | None,
    ) -> Work:
        """Reduces a contiguous tensor in place, then calls finish() and ends the work."""
        each = _Reduction(work, tensor, op, timeout, finish)
        if tensor.device.type == "cuda":
            each.ready = torch.cuda.current_stream(tensor.device).record_event()
        with self._lock:
            if self._closed or self._broken is not None:
                raise _copy_of(self._broken or _closed())
            self._pending.add(work)
            self._rising.put(each)
        return work

    def cancel(self) -> None:
        """Ends pending all-reduces with Canceled, at this rank and at the leaders of the other sites."""
        self._break(_closed())

    def close(self, in_callback: bool) -> None:
        """Waits for pending all-reduces and for callbacks of their futures, and ends the threads.

        After cancel() or a failure it waits for nothing. in_callback: of a future, whose work ends after it.
        """
        with self._lock:
            first, self._closed = not self._closed, True
            while self._pending or (self._ending and self._broken is None and not in_callback):
                self._idle.wait()  # each has a timeout
        if first:
            self._rising.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if self._broken is None else _JOIN_S)

    # ---- the threads ---------------------------------------------------------------------------------------

    def _serve(
        self,
        inbox: queue.SimpleQueue[_Reduction | None],
        step: Callable[[_Reduction], None],
        outbox: queue.SimpleQueue[_Reduction | None] | None,
    ) -> None:
        ends = False
        while not ends:
            each = inbox.get()
            ends = each is None
            if each is not None and self._broken is None:
                try:
                    with torch.no_grad(), _stream_of(each):
                        step(each)
                except Exception as error:
                    self._break(error)
            if outbox is not None:
                outbox.put(each)
            del each  # and its tensor, before the next one comes

    def _wait(self, work: Any, tensor: torch.Tensor) -> None:
        """In slices, where the backend does not wait in a stream: it ends when another thread has failed."""
        if tensor.device.type == "cuda":
            work.wait()
            return
        while self._broken is None:
            try:
                work.wait(_SLICE)
                return
            except Exception:
                if work.is_completed():
                    work.wait()  # raises its own error
                    return
        raise self._broken

    def _rise(self, each: _Reduction) -> None:
        """After a failure nothing is started any more: it would be taken for the operation that failed."""
        each.error = self._rise_failed
        if each.error is not None:
            return
        group = self._up
        try:
            if self._up is not None:
                options: Any = dist.ReduceOptions()
                options.reduceOp, options.rootRank, options.timeout = each.op, 0, each.timeout
                self._wait(self._up.reduce([each.tensor], options), each.tensor)
            group = self._across
            if self._across is not None:
                options = dist.AllreduceOptions()
                options.reduceOp, options.timeout = each.op, each.timeout
                each.across = self._across.allreduce([each.tensor], options)
            if each.ready is not None:
                each.ready = torch.cuda.current_stream(each.tensor.device).record_event()
        except Exception as error:
            self._rise_failed = each.error = self._renumbered(error, group)

    def _sink(self, each: _Reduction) -> None:
        try:
            if each.error is None and each.across is not None:
                self._wait(each.across, each.tensor)
                each.work.missing_bytes = getattr(each.across, "missing_bytes", 0)
        except Exception as error:
            each.error = self._renumbered(error, self._across)
        try:
            if self._down is not None and (self._leads or each.error is None):
                self._spread(each)
            if each.tensor.device.type == "cuda":
                torch.cuda.current_stream(each.tensor.device).synchronize()
        except Exception as error:
            each.error = each.error or self._renumbered(error, self._down)
        if each.error is not None:
            self._break(each.error)
            return
        with self._lock:
            if each.work not in self._pending:  # canceled
                return
            self._pending.remove(each.work)
            self._ending.add(each.work)
            self._idle.notify_all()
        finish_work(each.work, None, each.finish, functools.partial(self._forget, each.work))

    def _spread(self, each: _Reduction) -> None:
        """Broadcasts how the reduction ended, and its result, which is garbage after a failure."""
        told = _report(each.error, each.work.missing_bytes)
        report = torch.frombuffer(told, dtype=torch.uint8).to(each.tensor.device)
        works = []
        for tensor in (report, each.tensor):
            options: Any = dist.BroadcastOptions()
            # The leader may need its time to reduce, and again to all-reduce.
            options.rootRank, options.timeout = 0, 3 * each.timeout
            works.append(self._down.broadcast([tensor], options))
        for work in works:
            self._wait(work, each.tensor)
        if not self._leads:
            each.error, each.work.missing_bytes = _reported(bytes(report.tolist()))

    # ---- ends ----------------------------------------------------------------------------------------------

    def _renumbered(self, error: Exception, group: Any) -> Exception:
        """With the rank in the whole group instead of the one in this group. A leader that has left is not
        the cause: a rank of its site may have failed.
        """
        if not isinstance(error, LonghaulError) or error.rank is None:
            return error
        ranks = self._leaders if group is self._across else dist.get_process_group_ranks(group)
        where = "between sites" if group is self._across else "in the site"
        rank = ranks[error.rank]
        text = f"{where}, whose rank {error.rank} is rank {rank}: {error}"
        return failure(error.code, text, rank if error.code == lib.LH_EPEER else None)

    def _break(self, error: BaseException) -> None:
        """Ends all pending all-reduces; later ones are refused."""
        with self._lock:
            if self._broken is not None:
                return
            self._broken = error.with_traceback(None)  # it would keep tensors
            pending, self._pending = self._pending, set()
            self._ending |= pending
            self._idle.notify_all()
        if self._across is not None:
            with contextlib.suppress(Exception):
                self._across.abort()  # the leaders of the other sites wait for this one
        for work in pending:
            finish_work(work, error, None, functools.partial(self._forget, work))

    def _forget(self, work: Work) -> None:
        with self._lock:
            self._ending.discard(work)
            self._idle.notify_all()


def _closed() -> Canceled:
    return Canceled(lib.LH_ECANCELED, "all-reduce between sites: its group was closed (create another)")


def _copy_of(error: BaseException) -> Exception:
    """For another thread: each raise adds to the traceback."""
    copy, _ = _reported(_report(error, 0))
    assert copy is not None
    return copy


@contextlib.contextmanager
def _stream_of(each: _Reduction) -> Iterator[None]:
    """A stream of the tensor's device, behind what its caller has started there."""
    if each.tensor.device.type != "cuda":
        yield
        return
    cuda: Any = torch.cuda  # whose types are not complete
    stream = cuda.Stream(each.tensor.device)
    if each.ready is not None:
        stream.wait_event(each.ready)
    with cuda.stream(stream):
        yield


def _report(error: BaseException | None, missing: int) -> bytearray:
    """How a reduction ended, in _REPORT_BYTES bytes: 0 and the missing bytes, or an error as JSON."""
    if error is None:
        return bytearray((b"\0" + missing.to_bytes(8, "little")).ljust(_REPORT_BYTES))
    code = error.code if isinstance(error, LonghaulError) else 0
    rank = error.rank if isinstance(error, LonghaulError) else None
    message = str(error) or type(error).__name__
    while True:
        found = json.dumps([code, rank, message]).encode()
        if len(found) <= _REPORT_BYTES:
            return bytearray(found.ljust(_REPORT_BYTES))
        message = message[: len(message) // 2]


def _reported(report: bytes | bytearray) -> tuple[Exception | None, int]:
    if not report[0]:
        return None, int.from_bytes(report[1:9], "little")
    code, rank, message = json.loads(report)
    return failure(code, message, rank) if code else RuntimeError(message), 0


def sites_of(exchange: Exchange, name: str | None) -> list[list[int]]:
    """The ranks of each site, in their order. ValueError at all ranks: one of them names no site."""
    names = [each.decode() for each in exchange((name or "").encode())]
    missing = [rank for rank, each in enumerate(names) if not each]
    if missing:
        raise ValueError(
            f"site of rank {', '.join(map(str, missing))}: missing (set LONGHAUL_SITE, or pass site=)"
        )
    return [[rank for rank, each in enumerate(names) if each == site] for site in dict.fromkeys(names)]


def make_reducer(
    sites: list[list[int]], intra: str, inter: str, options: Any, timeout: datetime.timedelta | None
) -> SiteReducer:
    """The reducer of this rank. options: of the group between the sites, if its backend is "longhaul".

    All ranks make all groups in one order, also those that they are no members of.
    """
    rank = dist.get_rank()
    within: list[Any] = [None, None]
    inside = None
    if intra == "longhaul":  # of the options those that say who may take part
        inside = dataclasses.replace(options, site=None, attr=None, attr_across=None, settings={})
    for ranks in sites:
        if len(ranks) > 1:
            made = [dist.new_group(ranks, timeout, intra, pg_options=inside) for _ in within]
            if rank in ranks:
                within = made
    leaders, across = [ranks[0] for ranks in sites], None
    if len(sites) > 1:
        given = options if inter == "longhaul" else None
        made_across = dist.new_group(leaders, timeout, inter, pg_options=given)
        across = made_across if rank in leaders else None
    return SiteReducer(within[0], within[1], across, leaders)
