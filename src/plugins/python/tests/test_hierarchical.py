"""longhaul.torch.hierarchical(): gloo within sites, longhaul between them."""

import contextlib
import datetime
import os
import signal
import sys
import threading
import time
import unittest
import unittest.mock

import ranks
from test_torch import close, enter, expected, values
from test_training import train

import torch
import torch.distributed as dist

import longhaul
import longhaul.torch

SITES = ("paris", "paris", "paris", "tokyo")  # one has one rank


def make(rank, sites=SITES, settings=None, seconds=20):
    options = longhaul.torch.Options(settings=settings or {})
    timeout = datetime.timedelta(seconds=seconds)
    return longhaul.torch.hierarchical("gloo", site=sites[rank], options=options, timeout=timeout)


def reductions(rank, size, port):
    enter(rank, size, port, "gloo")
    group = make(rank)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64):
        for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
            parts = [values(dtype, (40, 30), 9 * r + len(op)) for r in range(size)]
            tensor = parts[rank].clone().t()  # not contiguous
            dist.all_reduce(tensor, getattr(dist.ReduceOp, op), group=group)
            close(tensor, expected(op, parts).t())
            everyone = [torch.empty_like(parts[0]) for _ in range(size)]
            dist.all_gather(everyone, tensor.t().contiguous(), group=group)
            assert all(torch.equal(everyone[0], other) for other in everyone), (dtype, op)
    tensor = torch.full((5,), rank + 1.0)
    dist.all_reduce(tensor, torch.distributed._make_nccl_premul_sum(0.5), group=group)
    close(tensor, torch.full((5,), 5.0))
    tensor = torch.tensor([-3 - rank])
    dist.all_reduce(tensor, dist.ReduceOp.AVG, group=group)
    assert tensor.item() == -4, tensor  # -18 / 4, towards zero
    several = [torch.full((n,), rank + 1) for n in (3, 0, 5)]
    group.allreduce_coalesced(several).wait()
    assert [each.tolist() for each in several] == [[10] * 3, [], [10] * 5]
    works = [dist.all_reduce(torch.full((50,), rank + i), group=group, async_op=True) for i in range(50)]
    for i, work in enumerate(works):
        work.wait()
        assert (work.result()[0] == 6 + 4 * i).all()
    for op, wanted in (("SUM", True), ("PRODUCT", False)):
        tensor = torch.tensor([rank > 0])
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op), group=group)
        assert tensor.item() is wanted and tensor.view(torch.uint8).item() == wanted
    tensor = torch.full((3,), rank)
    dist.broadcast(tensor, 2, group=group)
    assert tensor.tolist() == [2] * 3
    del group
    dist.destroy_process_group()


def training(rank, size, port, sites):
    """Losses of DDP; sites: False for gloo over all ranks."""
    enter(rank, size, port, "gloo")
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 500), torch.nn.ReLU(), torch.nn.Linear(500, 2))
    model = torch.nn.parallel.DistributedDataParallel(
        model, bucket_cap_mb=0.02, process_group=make(rank) if sites else None
    )
    losses = train(model, rank, 40)
    del model
    dist.destroy_process_group()
    return losses


def ends(rank, size, port):
    """A group that is shut down, one that a callback aborts, one that is aborted in mid-operation."""
    enter(rank, size, port, "gloo")
    groups = [make(rank) for _ in range(3)]
    dist.all_reduce(torch.ones(3), group=groups[0])
    groups[0].shutdown()
    for attempt in (groups[0].allreduce, groups[0].barrier):
        try:
            attempt([torch.ones(3)] if attempt == groups[0].allreduce else None)
            raise AssertionError("a group that is closed took an operation")
        except longhaul.Canceled as error:
            assert "closed" in str(error), error
    called = threading.Event()

    def abort(_):
        groups[1].abort()
        called.set()

    work = groups[1].allreduce([torch.ones(3)])
    work.get_future().then(abort)
    with contextlib.suppress(RuntimeError):  # another rank may have aborted already
        work.wait()
    assert called.wait(30)
    dist.barrier()
    if rank != 3:
        work = dist.all_reduce(torch.ones(3), group=groups[2], async_op=True)  # rank 3 never takes part
    dist.barrier()
    groups[2].abort()
    if rank != 3:
        try:
            work.wait()
            raise AssertionError("an all-reduce without a rank succeeded")
        except longhaul.LonghaulError:  # canceled, or the other leader has left first
            pass
    dist.barrier()
    dist.destroy_process_group()


def unnamed(rank, size, port):
    enter(rank, size, port, "gloo")
    try:
        longhaul.torch.hierarchical(site=None if rank == 1 else "paris")
        raise AssertionError("a rank without a site was accepted")
    except ValueError as error:
        assert str(error).startswith("site of rank 1: missing"), error
    dist.destroy_process_group()


def keys(rank, size, port):
    """Of the options, at all groups of longhaul."""
    enter(rank, size, port, "gloo")
    found = []
    made = longhaul.torch.ProcessGroupLonghaul._made

    def noted(group, *arguments):
        found.append((group._key, group._options.insecure))
        return made(group, *arguments)

    with unittest.mock.patch.object(longhaul.torch.ProcessGroupLonghaul, "_made", noted):
        for key, insecure in ((b"sixteen bytes or more", False), (None, True)):
            found.clear()
            options = longhaul.torch.Options(key=key, insecure=insecure)
            site = "here" if rank < 2 else "there"
            longhaul.torch.hierarchical("longhaul", site=site, options=options)
            assert len(found) >= 2 and set(found) == {(key, insecure)}, found
    dist.destroy_process_group()


def dying(rank, size, port, victim):
    """A rank dies between all-reduces: the others get errors, also when they ask later. The last error."""
    enter(rank, size, port, "gloo")
    bound = 3.0
    group = make(rank, ("paris", "paris", "tokyo", "tokyo"), {"peer_timeout": bound}, 10)
    dist.all_reduce(torch.ones(10), group=group)
    store = dist.distributed_c10d._get_default_store()
    store.add("ready", 1)
    if rank == victim:
        while store.add("ready", 0) < size:  # the first all-reduce has ended at all ranks
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    started = time.monotonic()
    try:
        works = [dist.all_reduce(torch.ones(100_000), group=group, async_op=True) for _ in range(8)]
        for work in works:
            work.wait()
        raise AssertionError("an all-reduce without a rank succeeded")
    except RuntimeError:
        pass
    try:
        dist.all_reduce(torch.ones(3), group=group)
        raise AssertionError("an all-reduce after a failure succeeded")
    except RuntimeError as error:
        message = str(error)
    seconds = time.monotonic() - started
    for stage in ("failed", "left"):  # a survivor that ends is a failure to the others; the store ends last
        store.add(stage, 1)
        while (stage == "failed" or rank == 0) and store.add(stage, 0) < size - 1:
            time.sleep(0.01)
    group.abort()
    return seconds, message


class Hierarchical(unittest.TestCase):
    def test_reductions(self):
        ranks.run(reductions, 4)

    def test_training_is_that_of_gloo(self):
        for one, other in zip(ranks.run(training, 4, True), ranks.run(training, 4, False)):
            self.assertTrue(all(abs(a - b) < 1e-4 for a, b in zip(one, other)), (one, other))

    def test_keys(self):
        ranks.run(keys, 4)

    def test_ends(self):
        ranks.run(ends, 4)

    def test_a_rank_without_site(self):
        ranks.run(unnamed, 2)

    def test_a_rank_that_dies(self):
        for victim in (1, 2, 3):  # a member of the store's site; the leader and a member of another
            ends = ranks.run(dying, 4, victim, dies=(victim,))
            self.assertEqual(sum(end is not None for end in ends), 3)
            self.assertTrue(any("between sites" in message for _, message in filter(None, ends)), ends)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
