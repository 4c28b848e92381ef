"""Works of torch.distributed that complete by themselves, the threads that end them, and the ranks'
addresses.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import datetime
import hashlib
import ipaddress
import itertools
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore, TCPStore
from torch.futures import Future

from longhaul._native import check, failure, ffi, lib
from longhaul._security import Key, key_of_environment, new_key
from longhaul.connection import Engine
from longhaul.group import address_towards, device_of

Finish = Callable[[], None]

# ---- completions -------------------------------------------------------------------------------------------


def _guarded(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result; None after an exception, which is printed: the thread serves the other groups, too."""
    try:
        return call(*arguments)
    except Exception:
        traceback.print_exc()
        return None


class Callers:
    """Threads that complete futures, and so run their callbacks. A callback may wait for another work: one
    thread is always idle, or takes the next call at once.
    """

    _KEPT = 4  # idle threads

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._idle = 0  # threads that are not in a call, also those that start
        self._stop = False
        self._threads: set[threading.Thread] = set()
        self._here = threading.local()

    def run(self, call: Callable[[], None]) -> None:
        """Runs call() in one of the threads, soon."""
        with self._wake:
            self._stop = False
            self._calls.append(call)
            self._wake.notify()
            first = self._idle == 0
            self._idle += first
        if first:
            self._start()

    def runs_here(self) -> bool:
        """Whether the caller is one of the threads."""
        return getattr(self._here, "is_one", False)

    def stop(self) -> None:
        """Ends the threads when there are no more calls; another run() starts them again."""
        with self._wake:
            self._stop = True
            self._wake.notify_all()

    def join(self, seconds: float) -> None:
        """Waits for the threads, which end after stop(), but no longer than that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._wake:
                alive = [thread for thread in self._threads if thread.is_alive()]
            if not alive:
                return
            alive[0].join(end - time.monotonic())  # it may have started another one

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="longhaul-callbacks", daemon=True)
        with self._wake:
            try:
                thread.start()
                self._threads = {thread, *(each for each in self._threads if each.is_alive())}
                return
            except RuntimeError:  # the interpreter ends: the calls run here
                self._stop = True
        self._serve()

    def _serve(self) -> None:
        self._here.is_one = True
        while True:
            with self._wake:
                while not self._calls:
                    if self._stop or self._idle > self._KEPT:
                        self._idle -= 1
                        return
                    self._wake.wait()
                call = self._calls.popleft()
                last = self._idle == 1
                self._idle -= not last
            if last:
                self._start()  # counted in place of this one
            _guarded(call)
            del call
            with self._wake:
                self._idle += 1


callers = Callers()
_states = threading.Lock()  # of works: their futures and their ends


class Work(dist.Work):
    """An operation: pending until _end(). Its future completes by itself, whether or not anything refers to
    the work. missing_bytes: of an operation that has ended, what a group with the reliability `bounded` did
    without; missing_ranges: (offset, bytes) of these. group: which started it.
    """

    missing_bytes = 0
    missing_ranges: Sequence[tuple[int, int]] = ()

    def __init__(self, outputs: list[torch.Tensor], pending: bool, group: Any = None) -> None:
        super().__init__()
        self.group = group
        self._outputs = outputs
        self._error: BaseException | None = None
        self._on_error: Callable[[BaseException], None] | None = None
        self._source = -1
        self._ending_thread = 0
        self._claimed = False
        self._ended = threading.Event() if pending else None
        self._given: Future[Any] | None = None  # set at the end
        self._future: Future[Any] | None = None  # follows it

    def _end(self, error: BaseException | None = None, then: Finish | None = None) -> None:
        """Ends the work, unless it has ended. Completes its future, if there is one, in another thread, as
        callbacks may wait. then(): called at the end in any case.
        """
        assert self._ended is not None
        with _states:
            if self._claimed:
                return
            self._claimed = True
            self._error = error  # before the next is read: see tell_error()
        if error is not None and self._on_error is not None:
            self._on_error(error)
        with _states:
            given = self._given
            if given is None:
                self._ended.set()
        if given is not None:
            callers.run(lambda: self._complete(given, then))
        elif then is not None:
            then()

    def _complete(self, given: Future[Any], then: Finish | None) -> None:
        assert self._ended is not None
        # As in torch: callbacks of the future have run when a wait() returns; one of them may wait, too.
        self._ending_thread = threading.get_ident()
        try:
            given.set_result(None)
        finally:
            self._ended.set()
            self._ending_thread = 0
            if then is not None:
                then()

    def _is_pending(self) -> bool:
        ended = self._ended
        return ended is not None and not ended.is_set() and self._ending_thread != threading.get_ident()

    def tell_error(self, on_error: Callable[[BaseException], None]) -> None:
        """Calls on_error(error) before a wait() raises it; perhaps twice."""
        self._on_error = on_error
        if self._error is not None:
            on_error(self._error)

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Waits for the end. timeout: zero, the default: without limit, as the group's timeout ends the
        operation.
        """
        if self._is_pending():
            assert self._ended is not None
            seconds = timeout.total_seconds() if timeout else 0.0
            if not self._ended.wait(seconds if seconds > 0 else None):
                raise failure(lib.LH_ETIMEDOUT, f"work: pending after {seconds} s")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return not self._is_pending()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Any:
        return self._error

    def get_future(self) -> Future[Any]:
        """The outputs, or the error as a RuntimeError with its text."""
        with _states:
            if self._future is None:
                # Not set_exception(): C++, such as DDP's reducer, would take the exception for a result.
                self._given = Future()
                self._future = self._given.then(self._outcome)
                if not self._is_pending():
                    self._given.set_result(None)
            return self._future

    def _outcome(self, _: Any) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._outputs

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._source

    def _source_rank(self) -> int:
        return self._source


class Endpoint:
    """The engine of this process, its completion queue, and the thread that ends asynchronous operations.

    The thread sleeps in the library while operations are pending, else on a condition. It is joined before
    the interpreter ends: a thread that torch's C++ code finds then would abort the process.
    """

    def __init__(self, device: str) -> None:
        self.engine = Engine(device=device)
        handle = ffi.new("struct lh_completion_queue **")
        check(lib.lh_completion_queue_create(self.engine._handle, 1 << 16, handle))
        self.queue = handle[0]
        self.users = 0  # groups
        self._handlers: dict[int, Callable[[Any], None]] = {}
        self._numbers = itertools.count(1)
        self._watchers: set[Callable[[], bool]] = set()
        self._wake = threading.Condition()
        self._stop = self._sleeps = False
        self._thread = threading.Thread(target=self._serve, name="longhaul", daemon=True)
        self._thread.start()

    def expect(self, handler: Callable[[Any], None]) -> int:
        """A number for an operation; handler(entry) runs in the thread when it is done."""
        number = next(self._numbers)
        self._handlers[number] = handler
        return number

    def forget(self, number: int) -> None:
        """The operation with this number has not started."""
        self._handlers.pop(number, None)

    def wake(self) -> None:
        """Wakes the thread, after an operation has started: it sleeps only after it has seen no handler."""
        if self._sleeps:
            with self._wake:
                self._wake.notify()

    def watch(self, watcher: Callable[[], bool]) -> None:
        """Calls watcher() every few milliseconds until it returns False."""
        with self._wake:
            self._watchers.add(watcher)
            self._wake.notify()

    def serves_here(self) -> bool:
        """Whether the caller is the thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        with self._wake:
            self._stop = True
            self._wake.notify()
        self._thread.join()
        check(lib.lh_completion_queue_destroy(self.queue))
        self.engine.close()

    def _serve(self) -> None:
        entries = ffi.new("struct lh_completion[]", 64)
        while True:
            if not self._handlers and not self._watchers:
                with self._wake:
                    self._sleeps = True
                    while not (self._handlers or self._watchers or self._stop):
                        self._wake.wait()
                    self._sleeps = False
                    if self._stop:
                        return
            # With messages alone, for which a receive is posted, it may be long until an entry comes.
            count = lib.lh_queue_wait(self.queue, entries, 64, 5_000_000 if self._watchers else 50_000_000)
            for i in range(max(0, count)):
                self._on_entry(entries[i])
            for watcher in list(self._watchers):
                self._watchers.discard(watcher)  # first: another thread may add it again meanwhile
                if _guarded(watcher):
                    self._watchers.add(watcher)
                del watcher
            if self._stop:
                return

    def _on_entry(self, entry: Any) -> None:
        """A call of its own: it keeps no handler, whose operation has buffers, until the next entry."""
        handler = self._handlers.pop(entry.user, None)
        if handler is not None:
            _guarded(handler, entry)


endpoints: dict[str, Endpoint] = {}
groups: set[Any] = set()
_lock = threading.Lock()


def enter(device: str) -> Endpoint:
    with _lock:
        endpoint = endpoints.get(device)
        if endpoint is None:
            endpoint = endpoints[device] = Endpoint(device)
        endpoint.users += 1
        return endpoint


def leave(endpoint: Endpoint) -> None:
    with _lock:
        endpoint.users -= 1
        if endpoint.users:
            return
        for device in [key for key, value in endpoints.items() if value is endpoint]:
            del endpoints[device]
        if not endpoints:
            callers.stop()
    endpoint.close()


_inherited: list[Any] = []  # by a child of fork(): it has no threads that would serve or end them


def _after_fork() -> None:
    global _lock, _states
    _inherited.extend((*endpoints.values(), *groups))
    endpoints.clear()
    groups.clear()
    _lock, _states = threading.Lock(), threading.Lock()  # a thread of the parent may have held them
    Callers.__init__(callers)


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end_all() -> None:
    for group in list(groups):
        _guarded(group.abort)
    callers.stop()
    callers.join(10.0)


def finish_work(
    work: Work, error: BaseException | None, finish: Finish | None, then: Finish | None = None
) -> None:
    """Ends a work after finish(), which stores its results. then(): called after callbacks of its future."""
    if error is None and finish is not None:
        try:
            with torch.no_grad():
                finish()
        except Exception as failed:  # it belongs to the caller of wait()
            error = failed
    work._end(error, then)


# ---- addresses ---------------------------------------------------------------------------------------------


def _innermost(store: Any) -> Any:
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store


def own_device(exchange: Callable[[bytes], list[bytes]], store: Any) -> str:
    """The device of this rank: an address that the ranks of other hosts reach."""
    chosen = os.environ.get("LONGHAUL_DEVICE")
    if chosen:
        exchange(b"chosen")
        return chosen
    mine = address_towards(getattr(_innermost(store), "host", None) or "127.0.0.1")
    others = [other.decode() for other in exchange(mine.encode()) if other != b"chosen"]
    if ipaddress.ip_address(mine.split("%")[0]).is_loopback:
        for other in others:  # the store is on this host, and some rank is not
            if not ipaddress.ip_address(other.split("%")[0]).is_loopback:
                mine = address_towards(other)
                break
    return device_of(mine)


class Exchange:
    """Gathers bytes of all ranks by a store; each call has keys of its own. token: a digest of all that was
    gathered, the same at all ranks; the keys of its connections make it that of one group alone.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.store, self.rank, self.size, self.round, self.token = store, rank, size, 0, ""

    def __call__(self, mine: bytes) -> list[bytes]:
        self.round += 1
        keys = [f"longhaul/{self.round}/{rank}" for rank in range(self.size)]
        self.store.set(keys[self.rank], mine)
        found = [bytes(self.store.get(key)) for key in keys]
        self.token = hashlib.sha256(self.token.encode() + b"".join(found)).hexdigest()
        return found


_KEY = "longhaul/key"


@contextlib.contextmanager
def shared_key(store: Any, rank: int, given: Key, insecure: bool) -> Iterator[Key]:
    """The key of a group, which is created meanwhile: given, the environment's, else random bytes that rank 0
    hands over by the store.

    Rank 0 does so whatever its own settings are, so no rank waits for it: where settings differ, the group
    finds it. It removes the bytes when all ranks have them; a rank that comes after a failure finds none.
    """
    if rank == 0:
        store.set(_KEY, new_key())
    key = None if insecure else given or key_of_environment()
    if key is None and not insecure:
        key = bytes(store.get(_KEY))
        if not key:
            raise RuntimeError("process group: rank 0 has failed to create it (see its error)")
    try:
        yield key
    except BaseException:
        if rank == 0:
            with contextlib.suppress(Exception):
                store.set(_KEY, b"")
        raise
    if rank == 0:
        _forget(store)


def _forget(store: Any) -> None:
    try:
        store.delete_key(_KEY)
    except Exception:  # some stores cannot
        with contextlib.suppress(Exception):
            store.set(_KEY, b"")


def own_store(store: Any, token: str) -> Any:
    """The same store, with a connection of its own where there is one: a call that waits for a key makes
    calls of other threads wait, too. token: the same at all ranks, of one group alone.
    """
    if hasattr(store, "clone"):
        return store.clone()
    base: Any = _innermost(store)
    if not hasattr(base, "host"):  # of a TCPStore alone
        return store
    # torch 2.8 has no clone(), and does not give the prefixes of a store.
    base = TCPStore(base.host, base.port, is_master=False, timeout=base.timeout, wait_for_workers=False)
    return PrefixStore(f"longhaul/{token}", base)
