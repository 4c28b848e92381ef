"""The backend "longhaul" of torch.distributed.

    import longhaul.torch, torch.distributed as dist
    dist.init_process_group("longhaul")               # torchrun, or any store: no second rendezvous

The store that torch gives carries the addresses and the keys of the connections. Options of connections:

    options = longhaul.torch.Options(site="paris", attr={"reliability": "auto"}, attr_across={"rate_bps":
    10**9}) dist.init_process_group("longhaul", pg_options=options)

Environment: LONGHAUL_DEVICE ("udp:10.0.0.1", an address that the other ranks reach; default: the one that
reaches the store), LONGHAUL_SITE.

A group replaces all backends of its devices, so "cpu:longhaul,cuda:nccl" is not possible. torch refuses
monitored_barrier() for every backend but gloo: use barrier() with a timeout. Reductions that the library
lacks are mapped: complex numbers are pairs; averages of 8- and 16-bit integers, and MIN, MAX and AVG of
unsigned ones, are computed in a wider type.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

from longhaul._torch_bounded import BoundedHook, BoundedStep, reliability_of
from longhaul._torch_feedback import Feedback
from longhaul._torch_group import Options, ProcessGroupLonghaul, SiteOptions
from longhaul._torch_hierarchical import make_reducer, sites_of
from longhaul._torch_works import Exchange

if torch.__version__ < "2.7":  # compares versions
    # C++ kept no works of groups in Python, and waited for their remains without end; nor did it close them.
    raise ImportError(f"torch {torch.__version__}: no backend in Python is safe (install torch 2.7 or later)")

__all__ = [
    "BoundedHook",
    "BoundedStep",
    "Options",
    "ProcessGroupLonghaul",
    "bounded_hook",
    "hierarchical",
    "register",
]


def _create(opts: Any, backend_options: Any = None) -> ProcessGroupLonghaul:
    if backend_options is not None and not isinstance(backend_options, Options):
        raise TypeError(f"pg_options: {type(backend_options).__name__}, expected longhaul.torch.Options")
    return ProcessGroupLonghaul(opts.store, opts.group_rank, opts.group_size, opts.timeout, backend_options)


def bounded_hook(
    deadline: float | str | None = "auto",
    code: str | None = None,
    ranks: Sequence[int] | None = None,
    options: Options | None = None,
    *,
    feedback: bool = False,
    hadamard: bool = True,
    stride: int = 0,
) -> BoundedHook:
    """Makes a hook of DDP or FSDP2 that averages gradients by a deadline, with what has arrived.

        hook = longhaul.torch.bounded_hook()            # all ranks call it, after init_process_group()
        hook.register(model)                            # DistributedDataParallel, or after fully_shard()
        ...
        hook.steps[-1].missing_share                    # of the last backward pass

    deadline: seconds from the start of a reduction; "auto": learned from earlier ones; None: none, an
    all-reduce ends when no more data is expected. code: parity, "mds,k=32,m=2". ranks: as of new_group(), of
    which the hook makes one; at other ranks, the hook raises ValueError when it is used. options: of this
    group; with a `site`, only paths to other sites are bounded.

    Gradients are encoded (Hadamard): lost data are spread over a tensor, and a sum that lacks contributions
    is scaled. Where data is missing, ranks may get different averages, and replicas drift apart: average the
    parameters now and then (torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager).

    feedback: of DistributedDataParallel: what is missing at some rank is added by all ranks two steps later.
    So replicas stay together, but for the last two steps, and for rounding. The first step is reliable, since
    DDP makes other buckets after it. Each rank then gets the gradients of all others, ranks - 1 times their
    bytes, and keeps those of two steps: for few ranks, one a site. Until it comes, missing data counts as 0.
    hadamard: of feedback: gradients are encoded; stride: of the transform (longhaul.Hadamard), in elements;
    0: the default. Without feedback the library encodes, and chooses the stride.
    ValueError: deadline, code, or options that there are only with feedback.
    """
    if not feedback and (not hadamard or stride):
        raise ValueError("hadamard, stride: only with feedback=True (else the library chooses)")
    chosen = options or Options()
    bounded = {"reliability": reliability_of(deadline, code)}
    if chosen.site is None:
        chosen = dataclasses.replace(chosen, attr={**(chosen.attr or {}), **bounded})
    else:
        chosen = dataclasses.replace(chosen, attr_across={**(chosen.attr_across or {}), **bounded})
    group = dist.new_group(ranks, backend="longhaul", pg_options=chosen)
    fed = feedback and isinstance(group, ProcessGroupLonghaul)
    return BoundedHook(group, Feedback(group, hadamard, stride) if fed else None)


def hierarchical(
    intra: str = "gloo",
    inter: str = "longhaul",
    site: str | None = None,
    options: Options | None = None,
    timeout: datetime.timedelta | None = None,
) -> Any:
    """Makes a process group whose all-reduce uses one backend within each site, another between the sites.

        dist.init_process_group("gloo")                 # any backend
        group = longhaul.torch.hierarchical("gloo")     # all ranks call it; "nccl" where tensors are on GPUs
        model = DistributedDataParallel(model, process_group=group)

    A site reduces to its first rank; the first ranks all-reduce; each broadcasts the result in its site.
    Several all-reduces proceed at once. All other collectives are those of a longhaul group over all ranks,
    which knows the sites. intra, inter: backends that reduce the tensor's type. site: name of this rank's
    site; None: LONGHAUL_SITE. options: of the group between the sites, if its backend is "longhaul"; of the
    other group, its `settings`; of all groups of longhaul, its `key` and `insecure`. timeout: as of
    new_group(), for each of the three steps.

    A rank that fails ends pending all-reduces at all ranks with an error; later ones are refused. Tensors of
    all-reduces that failed may be written later: make others. abort() ends those of its rank at once, and of
    other sites; of ranks of its own site by the timeout, if `intra` tells them nothing. ValueError: a rank
    has no site.
    """
    name = site or os.environ.get("LONGHAUL_SITE")
    rank, size = dist.get_rank(), dist.get_world_size()
    if getattr(dist.distributed_c10d._get_default_group(), "bound_device_id", None) is not None:
        raise ValueError("hierarchical: not possible after init_process_group(device_id=...) (leave it out)")
    store = dist.distributed_c10d._get_default_store()
    call = store.add(f"longhaul/hierarchical/{rank}", 1)
    exchange = Exchange(PrefixStore(f"longhaul/hierarchical/{call}", store), rank, size)
    sites = sites_of(exchange, name)
    chosen = dataclasses.replace(options or Options(), site=name)
    reducer, failed = None, None
    try:
        reducer = make_reducer(sites, intra, inter, chosen, timeout)
    except Exception as error:
        failed = error
    # A rank that fails alone must not leave the others waiting in the next group.
    texts = exchange(b"" if failed is None else (str(failed) or type(failed).__name__).encode())
    wrong = [f"rank {each}: {text.decode()}" for each, text in enumerate(texts) if text]
    try:
        if failed is not None:
            raise failed
        if wrong:
            raise RuntimeError(wrong[0])
        whole = SiteOptions(
            site=name, settings=chosen.settings, key=chosen.key, insecure=chosen.insecure, reducer=reducer
        )
        return dist.new_group(None, timeout, "longhaul", pg_options=whole)
    except BaseException:
        if reducer is not None:
            reducer.cancel()
            reducer.close(False)
        raise


def register() -> None:
    """Registers the backend; importing this module does, too."""
    if "longhaul" not in dist.Backend.backend_list:
        dist.Backend.register_backend("longhaul", _create, extended_api=True, devices=["cpu", "cuda"])


register()
