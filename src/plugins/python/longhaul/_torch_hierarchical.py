"""All-reduces by a backend inside each site and another across sites (longhaul.torch.hierarchical())."""

from __future__ import annotations

import concurrent.futures
import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

_KIND: Any = dist.ReduceOp.RedOpType
_OPS = (_KIND.SUM, _KIND.AVG, _KIND.PRODUCT, _KIND.MIN, _KIND.MAX, _KIND.BAND, _KIND.BOR, _KIND.BXOR)


class Hierarchical:
    """Reduces inside each site by one backend, and across sites by another: made by hierarchical().

    sites: ranks of each site. Where all sites have the same number of ranks, each rank takes its share of a
    tensor across: a reduce-scatter inside, an all-reduce across, an all-gather inside. Otherwise, the first
    rank of each site takes all of it across.
    """

    # DDP reads annotations, which are text here.
    __signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("state", "bucket")]
    )

    def __init__(self, names: Sequence[str], intra: str, inter: str, options: Any) -> None:
        self.__name__ = self.__qualname__ = "hierarchical"  # as of a function: DDP logs them
        sites: dict[str, list[int]] = {}
        for rank, name in enumerate(names):
            sites.setdefault(name, []).append(rank)
        self.sites = list(sites.values())
        self._size = len(names)
        own = sites[names[dist.get_rank()]]
        self._leader = own[0]
        self._shares = len(own) if len({len(ranks) for ranks in self.sites}) == 1 else 1
        # All ranks create all groups, in one order.
        columns = [list(ranks) for ranks in zip(*self.sites)][: self._shares]
        self._inside = _own_group(self.sites, intra, None)
        self._across = _own_group(columns, inter, options)
        # One thread, so that all ranks begin reductions in the order of the calls.
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "longhaul-sites")

    def all_reduce(self, tensor: torch.Tensor, op: Any = _KIND.SUM) -> None:
        """Reduces a contiguous tensor over all ranks, in place, and waits for it.

        op: a dist.ReduceOp, but not PREMUL_SUM: ValueError. RankFailed and others: of the backends.
        """
        kind = getattr(op, "op", op)
        if kind not in _OPS:
            raise ValueError(f"{kind}: not supported (SUM, AVG, PRODUCT, MIN, MAX or a bitwise reduction)")
        if not tensor.is_contiguous():
            raise ValueError("tensor: not contiguous (pass tensor.contiguous(), and copy the result back)")
        with torch.no_grad():
            self._thread.submit(_on_stream(tensor, lambda: self._all_reduce(tensor, kind))).result()

    def __call__(self, state: object, bucket: Any) -> Future[torch.Tensor]:
        """The hook of DDP that averages gradients: model.register_comm_hook(None, hierarchical)."""
        tensor: torch.Tensor = bucket.buffer()
        done: Future[torch.Tensor] = Future(devices=[tensor.device] if tensor.is_cuda else None)

        def average() -> None:
            try:
                with torch.no_grad():
                    self._all_reduce(tensor, _KIND.AVG)
            except Exception as error:
                done.set_exception(error)  # type: ignore[arg-type]  # torch declares a result here
            else:
                done.set_result(tensor)

        self._thread.submit(_on_stream(tensor, average))
        return done

    def _all_reduce(self, tensor: torch.Tensor, kind: Any) -> None:
        op = _KIND.SUM if kind == _KIND.AVG else kind
        if self._shares > 1:
            self._by_shares(tensor.view(-1), op)
        else:
            self._by_leaders(tensor, op)
        if kind == _KIND.AVG and (tensor.is_floating_point() or tensor.is_complex()):
            tensor.div_(self._size)
        elif kind == _KIND.AVG:
            tensor.div_(self._size, rounding_mode="trunc")

    def _by_shares(self, tensor: torch.Tensor, op: Any) -> None:
        share = -(-tensor.numel() // self._shares)
        whole = tensor
        if share * self._shares > tensor.numel():  # fill up: these elements are not read
            whole = tensor.new_zeros(share * self._shares)
            whole[: tensor.numel()].copy_(tensor)
        part = tensor.new_empty(share)
        dist.reduce_scatter_tensor(part, whole, op, group=self._inside)
        dist.all_reduce(part, op, group=self._across)
        dist.all_gather_into_tensor(whole, part, group=self._inside)
        if whole is not tensor:
            tensor.copy_(whole[: tensor.numel()])

    def _by_leaders(self, tensor: torch.Tensor, op: Any) -> None:
        alone = dist.get_world_size(self._inside) == 1
        if not alone:
            dist.reduce(tensor, self._leader, op, group=self._inside)
        if dist.get_rank() == self._leader:
            dist.all_reduce(tensor, op, group=self._across)
        if not alone:
            dist.broadcast(tensor, self._leader, group=self._inside)


def _own_group(all_ranks: Sequence[Sequence[int]], backend: str, options: Any) -> Any:
    """Creates a group for each list of ranks: the one that has this rank, or None."""
    own = None
    for ranks in all_ranks:
        group = dist.new_group(list(ranks), backend=backend, pg_options=options)
        if dist.get_rank() in ranks:
            own = group
    return own


def _on_stream(tensor: torch.Tensor, call: Callable[[], None]) -> Callable[[], None]:
    """A call for another thread, on the stream that is the current one now."""
    stream = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None

    def run() -> None:
        with torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext():
            call()

    return run


_made = 0


def names_of_all(site: str) -> list[str]:
    """The names of all ranks' sites, by the store of the default group. ValueError: one has none."""
    global _made
    _made += 1  # all ranks call it in one order
    store: Any = dist.distributed_c10d._get_default_store()
    store.set(f"longhaul/site/{_made}/{dist.get_rank()}", site)
    names = [
        store.get(f"longhaul/site/{_made}/{rank}").decode("utf-8", "replace")
        for rank in range(dist.get_world_size())
    ]
    if "" in names:
        raise ValueError(f"rank {names.index('')} has no site (pass site=, or set LONGHAUL_SITE)")
    return names
