"""An all-reduce of two levels (longhaul.torch.hierarchical()): within each site by one backend, between the
first ranks of the sites by another.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist

from longhaul._native import Canceled, LonghaulError, failure, lib
from longhaul._torch_works import Finish, Work, finish_work

_REPORT_BYTES = 512
_JOIN_S = 5.0


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

    A thread reduces, another broadcasts, so that several all-reduces are between the sites at once. The
    order of the calls is the same at all ranks. A first failure ends all later ones, too: ranks would no
    longer agree which of them comes next.
    """

    def __init__(self, up: Any, down: Any, across: Any, leaders: Sequence[int]) -> None:
        self._up, self._down, self._across, self._leaders = up, down, across, leaders
        self._leads = down is None or down.rank() == 0
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._pending: dict[Work, _Reduction] = {}
        self._broken: BaseException | None = None
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
            if self._broken is not None:
                raise self._broken
            self._pending[work] = each
            self._rising.put(each)
        return work

    def close(self, cancel: bool) -> None:
        """Waits for pending all-reduces, or cancels them, and ends the threads."""
        if cancel:
            self._break(Canceled(lib.LH_ECANCELED, "all-reduce between sites: its group was closed"))
            for group in (self._up, self._down):
                if group is not None:
                    with contextlib.suppress(Exception):
                        group.abort()
        with self._lock:
            while self._pending:  # each has a timeout
                self._idle.wait()
        self._rising.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S if cancel else None)

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
                with torch.no_grad(), _stream_of(each):
                    step(each)
            if outbox is not None:
                outbox.put(each)
            del each  # and its tensor, before the next one comes

    def _rise(self, each: _Reduction) -> None:
        try:
            if self._up is not None:
                options: Any = dist.ReduceOptions()
                options.reduceOp, options.rootRank, options.timeout = each.op, 0, each.timeout
                self._up.reduce([each.tensor], options).wait()
            if self._across is not None:
                options = dist.AllreduceOptions()
                options.reduceOp, options.timeout = each.op, each.timeout
                each.across = self._across.allreduce([each.tensor], options)
        except Exception as error:
            each.error = error

    def _sink(self, each: _Reduction) -> None:
        try:
            if each.error is None and each.across is not None:
                each.across.wait()
                each.work.missing_bytes = getattr(each.across, "missing_bytes", 0)
        except Exception as error:
            each.error = self._renumbered(error)
        try:
            if self._down is not None and (self._leads or each.error is None):
                self._spread(each)
            if each.tensor.device.type == "cuda":
                torch.cuda.current_stream(each.tensor.device).synchronize()
        except Exception as error:
            each.error = each.error or error
        if each.error is not None:
            self._break(each.error)
            return
        finish_work(each.work, None, each.finish, functools.partial(self._forget, each.work))

    def _spread(self, each: _Reduction) -> None:
        """Broadcasts how the reduction ended, and its result, which is garbage after a failure."""
        report = torch.zeros(_REPORT_BYTES, dtype=torch.uint8, device=each.tensor.device)
        if self._leads and each.error is not None:
            report.copy_(torch.frombuffer(_report(each.error), dtype=torch.uint8))
        works = []
        for tensor in (report, each.tensor):
            options: Any = dist.BroadcastOptions()
            options.rootRank, options.timeout = 0, each.timeout
            works.append(self._down.broadcast([tensor], options))
        for work in works:
            work.wait()
        if not self._leads:
            each.error = _reported(bytes(report.tolist()))

    # ---- ends ----------------------------------------------------------------------------------------------

    def _renumbered(self, error: Exception) -> Exception:
        """With the rank in the whole group instead of the one among the leaders."""
        if isinstance(error, LonghaulError) and error.rank is not None:
            rank = self._leaders[error.rank]
            text = f"between sites, whose rank {error.rank} is rank {rank}: {error}"
            return failure(error.code, text, rank)
        return error

    def _break(self, error: BaseException) -> None:
        """Ends all pending all-reduces; later ones are refused."""
        with self._lock:
            if self._broken is not None:
                return
            self._broken = error
            pending = list(self._pending)
        if self._across is not None:
            with contextlib.suppress(Exception):
                self._across.abort()  # the leaders of the other sites wait for this one
        for work in pending:
            finish_work(work, error, None, functools.partial(self._forget, work))

    def _forget(self, work: Work) -> None:
        with self._lock:
            self._pending.pop(work, None)
            self._idle.notify_all()


@contextlib.contextmanager
def _stream_of(each: _Reduction) -> Iterator[None]:
    """A stream of the tensor's device, behind what its caller has started there."""
    if each.tensor.device.type != "cuda":
        yield
        return
    stream = torch.cuda.Stream(each.tensor.device)
    if each.ready is not None:
        stream.wait_event(each.ready)
    with torch.cuda.stream(stream):
        yield


def _report(error: BaseException) -> bytearray:
    """An error in _REPORT_BYTES bytes."""
    code = error.code if isinstance(error, LonghaulError) else 0
    rank = error.rank if isinstance(error, LonghaulError) else None
    message = str(error) or type(error).__name__
    while True:
        found = json.dumps([code, rank, message]).encode()
        if len(found) <= _REPORT_BYTES:
            return bytearray(found.ljust(_REPORT_BYTES))
        message = message[: len(message) // 2]


def _reported(report: bytes) -> Exception | None:
    if not report[0]:
        return None
    code, rank, message = json.loads(report)
    return failure(code, message, rank) if code else RuntimeError(message)
