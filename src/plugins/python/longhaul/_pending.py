"""Handles of the library that keep their operations until they are done, and close when the program ends."""

from __future__ import annotations

import atexit
import collections
import os
import threading
import weakref
from collections.abc import Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

from longhaul._native import LonghaulError, check, failure, ffi, lib, sliced

Value = TypeVar("Value")
_SWEPT = 2  # earlier operations that a call looks at: each call adds one
_open: weakref.WeakSet[Handle] = weakref.WeakSet()
_kept: set[Handle] = set()  # open as well, though the program may have dropped them


class Closes:
    """A context manager that closes its object."""

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class Handle(Closes):
    """A handle that any thread may use: close() waits for the calls in progress."""

    _NAME = ""
    _KEPT = False  # it stays open when nothing refers to it

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._idle = threading.Condition()  # also the lock of the operations
        self._users = 0  # threads in a call with the handle
        self._pending: collections.OrderedDict[Pending[Any], None] = collections.OrderedDict()
        (_kept if self._KEPT else _open).add(self)

    def _end(self) -> None:
        """Closes it when the program ends."""
        self.close()

    def _live(self) -> Any:
        if self._handle is None:
            raise ValueError(f"{self._NAME}: closed")
        return self._handle

    def _call(self, call: Any, *arguments: Any) -> Any:
        """call(handle, ...)"""
        with self._idle:
            handle = self._live()
            self._users += 1
        try:
            return call(handle, *arguments)
        finally:
            with self._idle:
                self._leave()

    def _leave(self) -> None:
        self._users -= 1
        if self._users == 0 and self._handle is None:
            self._idle.notify_all()

    def _sweep(self, count: int = _SWEPT) -> None:
        """Ends some operations that are done, in turn: a caller need not wait for them."""
        for _ in range(count):
            with self._idle:
                if not self._pending:
                    return
                oldest = next(iter(self._pending))
                self._pending.move_to_end(oldest)
            oldest._look()


class Pending(Generic[Value]):
    """An operation in progress. It keeps its buffers, and its owner keeps it, until it is done.

    Any thread may use it.
    """

    # The library's calls, the struct of a result, and the words of wait().
    _WAIT = _TEST = _CANCEL = _FREE = _RESULT = _NAME = _REMEDY = ""
    _NEEDS_OWNER = False  # the owner's handle must stay while a call has this one

    def __init__(self, owner: Handle, handle: Any, buffers: Any, queue: Any, user: int) -> None:
        self._owner = owner
        self._handle = handle
        self._buffers = buffers
        self._queue = queue  # a CompletionQueue, or None
        self._user = user
        self._users = 0  # threads in a call with the handle
        self._outcome: Value | LonghaulError | None = None
        self._ranges: list[tuple[int, int]] = []

    def __del__(self) -> None:
        self._free()

    def _free(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle is not None:
            getattr(lib, self._FREE)(handle)

    def wait(self, timeout: float | None = None) -> Value:
        """Waits for the end, and returns the result. timeout: seconds; None: without limit.

        TimedOut: the timeout has passed, and the operation is still pending, or its deadline has; RankFailed:
        a rank of the group has failed; Canceled; LonghaulError: another error.
        """
        call = getattr(lib, self._WAIT)
        code = sliced(lambda ns: self._use(call, 0, ns), timeout)
        if code == -lib.LH_ETIMEDOUT:
            raise failure(code, f"{self._NAME}: pending after {timeout} s (wait longer, or {self._REMEDY})")
        check(code)
        return self._value()

    def test(self) -> Value | None:
        """Returns the result, or None while the operation is pending. Errors as wait()."""
        check(self._look())
        return None if self._outcome is None else self._value()

    @property
    def done(self) -> bool:
        """Whether the operation has ended, with or without an error."""
        self._look()
        return self._outcome is not None

    def cancel(self) -> None:
        """Cancels the operation, a collective at all ranks: it ends with Canceled, unless it was done."""
        with self._owner._idle:
            if self._outcome is None:
                check(getattr(lib, self._CANCEL)(self._handle))

    def missing_ranges(self) -> list[tuple[int, int]]:
        """(offset, bytes) of each range that did not arrive by the deadline, sorted, never adjacent; none
        while the operation is pending.

        Their bytes are 0. For a sum they are ranges of the encoded tensor (longhaul/collective.h).
        """
        return list(self._ranges)

    def __await__(self) -> Generator[Any, None, Value]:
        """Awaits the end, in a loop that serves the operation's queue (CompletionQueue.attach())."""
        if self._look() == 0:
            if self._queue is None:
                raise RuntimeError(
                    f"{self._NAME} without a completion queue: pass queue= to the call, or use wait()"
                )
            yield from self._queue.future(self._user).__await__()
        return self.wait()

    def _look(self) -> int:
        """1: the operation is done; 0: it is pending."""
        return self._use(getattr(lib, self._TEST), 1)

    def _use(self, call: Any, done: int, *arguments: Any) -> int:
        """A call that may find the end, which it reports by `done`. The last of several threads frees."""
        owner = self._owner
        with owner._idle:
            if self._outcome is not None:
                return done
            self._users += 1
            owner._users += self._NEEDS_OWNER
        found, code = ffi.new(self._RESULT), -1
        try:
            code = int(call(self._handle, *arguments, found))
        finally:
            with owner._idle:
                try:
                    self._users -= 1
                    if code == done and self._outcome is None:
                        self._outcome = self._result(found)
                        self._buffers = ()
                        owner._pending.pop(self, None)
                    if self._outcome is not None and self._users == 0:
                        self._free()
                finally:
                    if self._NEEDS_OWNER:
                        owner._leave()
        return code

    def _result(self, found: Any) -> Value | LonghaulError:
        """The outcome that the library has reported, while the handle is alive."""
        raise NotImplementedError

    def _value(self) -> Value:
        if isinstance(self._outcome, LonghaulError):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


def ranges_of(call: Any, handle: Any) -> list[tuple[int, int]]:
    """All ranges that lh_missing() or lh_collective_ranges() reports."""
    found: list[tuple[int, int]] = []
    ranges = ffi.new("struct lh_range[]", 256)
    while True:
        count = check(call(handle, len(found), ranges, 256))
        found += [(ranges[i].offset, ranges[i].bytes) for i in range(count)]
        if count < 256:
            return found


@atexit.register
def _close_all() -> None:
    """A peer may still need acknowledgements and repairs of this process."""
    for handle in [*_kept, *_open]:
        try:
            if handle._handle is not None and not handle._users:
                handle._end()
        except Exception:
            pass  # the peer has failed: there is nobody to tell


def _after_fork() -> None:
    """These belong to the parent."""
    _open.clear()
    _kept.clear()


os.register_at_fork(after_in_child=_after_fork)
