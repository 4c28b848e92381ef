"""The process group of torchft: members come and go, and errors never end the process.

    import longhaul.torchft, torchft
    manager = torchft.Manager(pg=longhaul.torchft.ProcessGroupLonghaul(timeout=timedelta(seconds=30)), ...)

configure() makes a group of the members of a quorum over the store that torchft names. An operation that
fails, here or at another member, ends its future with LonghaulError (RankFailed where a member died), and
errored() returns that error until the next configure().
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import threading
from collections.abc import Iterator
from typing import Any

import torchft.process_group

from longhaul._native import LonghaulError
from longhaul.torch import Options
from longhaul.torch import ProcessGroupLonghaul as Group

__all__ = ["ProcessGroupLonghaul"]

_Base: Any = torchft.process_group.ProcessGroupWrapper


class ProcessGroupLonghaul(_Base):
    """A process group that torchft reconfigures.

    timeout: of each operation, and of configure(). options: as pg_options of torch.distributed
    (longhaul.torch.Options).
    """

    def __init__(
        self,
        timeout: datetime.timedelta = datetime.timedelta(seconds=60),
        options: Options | None = None,
    ) -> None:
        super().__init__(timeout)
        self._options = options
        self._error: Exception | None = None  # of this group:
        self._configured: Group | None = None
        self._lock = threading.Lock()

    def getBackendName(self) -> str:
        return "torchft-longhaul"

    def _create_pg(self, store: Any, rank: int, world_size: int) -> Group:
        group = Group(store, rank, world_size, self._timeout, self._options)
        with self._lock:
            self._configured, self._error = group, None
        return group

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self._timeout = timeout
        group = self._pg
        if group is not None:
            group.set_timeout(timeout)

    def errored(self) -> Exception | None:
        """The first error of an operation since configure(); None: all went well."""
        with self._lock:
            return self._error

    def _note(self, group: Any, error: BaseException) -> None:
        """Keeps the error of an operation, unless its group has been replaced."""
        with self._lock:
            if group is self._configured and self._error is None and isinstance(error, Exception):
                self._error = error

    @contextlib.contextmanager
    def _run_context(self) -> Iterator[None]:
        group = self._configured
        try:
            yield
        except LonghaulError as error:  # the operation did not start
            self._note(group, error)
            raise

    def _wrap_work(self, work: Any, opts: Any) -> Any:
        work.tell_error(functools.partial(self._note, work.group))
        return work

    def shutdown(self) -> None:
        """Aborts: members that are gone would keep pending operations waiting."""
        self.abort(errored=False)
