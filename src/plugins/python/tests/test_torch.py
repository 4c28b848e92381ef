"""The backend of torch.distributed, compared with gloo in the same processes, on loopback."""

import datetime
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

import ranks

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    print(f"skipped: {error}")
    sys.exit(77)
import torch._dynamo  # noqa: F401 what ranks need is imported once, here: they are forked
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh

import longhaul
import longhaul.torch
from longhaul import _torch_works as works

OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
DTYPES = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool complex64 complex128".split()


def enter(rank, size, port, backend="longhaul", seconds=60):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=seconds))


def values(dtype, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_complex:
        return torch.complex(
            *(torch.randn(shape, generator=generator, dtype=torch.float64) for _ in "ri")
        ).to(dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 100, shape, generator=generator).to(dtype)


def expected(op, parts):
    """The reduction of all ranks' tensors, computed here."""
    kind = parts[0].dtype
    if kind is torch.bool:
        op = {"SUM": "BOR", "MAX": "BOR", "PRODUCT": "BAND", "MIN": "BAND"}.get(op, op)
    wide = [part.to(torch.float64) if kind.is_floating_point else part for part in parts]
    if op == "AVG" and not kind.is_floating_point and not kind.is_complex:
        wide = [part.to(torch.int64) for part in parts]
    result = wide[0]
    for part in wide[1:]:
        result = {
            "SUM": torch.add, "AVG": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum,
            "MAX": torch.maximum, "BAND": torch.bitwise_and,
            "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor,
        }[op](result, part)  # fmt: skip
    if op == "AVG":
        result = (
            result / len(parts) if result.is_floating_point() or result.is_complex() else result // len(parts)
        )
    return result.to(kind)


def close(one, other):
    loose = {torch.bfloat16: 5e-2, torch.float16: 5e-3}.get(one.dtype, 1e-5)
    torch.testing.assert_close(one, other, rtol=loose, atol=loose)


def reductions(rank, size, port):
    enter(rank, size, port)
    refused = []
    for dtype in (getattr(torch, name) for name in DTYPES):
        for op in OPS:
            for shape in ((7, 5), (3000,)):
                parts = [values(dtype, shape, 100 * r + len(op)) for r in range(size)]
                tensor = parts[rank].clone()
                try:
                    dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
                except (NotImplementedError, ValueError):
                    refused.append((str(dtype).split(".")[1], op))
                    continue
                close(tensor, expected(op, parts))
                reduced = parts[rank].clone()
                dist.reduce(reduced, 1, getattr(dist.ReduceOp, op))
                close(reduced, expected(op, parts) if rank == 1 else parts[rank])
                inputs = torch.stack([values(dtype, shape, 7 * r + rank) for r in range(size)])
                into = torch.empty(shape, dtype=dtype)
                dist.reduce_scatter_tensor(into, inputs, getattr(dist.ReduceOp, op))
                close(into, expected(op, [values(dtype, shape, 7 * rank + r) for r in range(size)]))
                into.zero_()
                dist.reduce_scatter(into, list(inputs), getattr(dist.ReduceOp, op))
                close(into, expected(op, [values(dtype, shape, 7 * rank + r) for r in range(size)]))
    dist.destroy_process_group()
    return sorted(set(refused))


def premultiplied(rank, size, port):
    enter(rank, size, port)
    tensor = torch.full((10,), rank + 1.0)
    dist.all_reduce(tensor, torch.distributed._make_nccl_premul_sum(0.5))
    close(tensor, torch.full((10,), 0.5 * size * (size + 1) / 2))
    dist.destroy_process_group()


def mixed_types(rank, size, port):
    """Outputs of another type than the input: refused, and nothing is written behind them."""
    enter(rank, size, port)
    pool = torch.zeros(4000, dtype=torch.uint8)
    small, wide = pool[:2000].view(torch.bfloat16), torch.ones(1000 * size)
    parts = [small[:500], small[500:]]
    group = dist.distributed_c10d._get_default_group()
    for call in (
        lambda: dist.reduce_scatter_tensor(small, wide),
        lambda: dist.reduce_scatter(small, list(wide.chunk(size))),
        lambda: group.reduce_scatter_tensor_coalesced(parts, [torch.ones(500 * size)] * 2).wait(),
        lambda: dist.all_gather_into_tensor(small, torch.ones(1000 // size)),
        lambda: dist.all_gather([torch.zeros(10), small[:10]], torch.ones(10)),
        lambda: group.allgather_coalesced([[parts[0]]] * size, [torch.ones(500)]).wait(),
        lambda: group.alltoall_base(small, torch.ones(1000), [], [], dist.AllToAllOptions()).wait(),
        lambda: group.allreduce_coalesced([torch.ones(3), torch.ones(3, dtype=torch.int64)]).wait(),
    ):
        try:
            call()
            raise AssertionError("tensors of two types were accepted")
        except (ValueError, RuntimeError) as error:  # torch checks some of them itself
            assert "type" in str(error) or "bfloat16" in str(error), error
    half = dist._make_nccl_premul_sum(torch.tensor([0.5]))  # a product of two types
    dist.reduce_scatter_tensor(small, wide.to(torch.bfloat16), half)
    assert (small == 0.5 * size).all() and not pool[2000:].any()
    dist.destroy_process_group()


def copies_of(group, dtype, rank, size):
    """Every collective that copies, for tensors of a type; returns all results."""
    found = []
    for shape in ((4 * size,), (0,), (size, 3), (2 * size, 700)):
        mine = values(dtype, shape, rank)
        tensor = mine.clone()
        dist.broadcast(tensor, size - 1, group=group)
        found.append(tensor)
        everyone = [torch.zeros_like(mine) for _ in range(size)]
        dist.all_gather(everyone, mine, group=group)
        found += everyone
        whole = torch.zeros((size * shape[0], *shape[1:]), dtype=dtype)
        dist.all_gather_into_tensor(whole, mine, group=group)
        found.append(whole)
        gathered = [torch.zeros_like(mine) for _ in range(size)] if rank == 1 else None
        dist.gather(mine, gathered, dst=1, group=group)
        found += gathered or []
        part = torch.zeros_like(mine)
        dist.scatter(
            part, [values(dtype, shape, r) for r in range(size)] if rank == 1 else None, src=1, group=group
        )
        found.append(part)
        crossed = torch.zeros_like(mine)
        dist.all_to_all_single(crossed, mine, group=group)
        found.append(crossed)
    sizes = [[(r + s) % 3 for s in range(size)] for r in range(size)]
    sent, received = sizes[rank], [sizes[r][rank] for r in range(size)]
    into = torch.zeros((sum(received), 5), dtype=dtype)
    dist.all_to_all_single(into, values(dtype, (sum(sent), 5), rank), received, sent, group=group)
    found.append(into)
    strided = torch.zeros((8, 6), dtype=dtype).t()
    strided.copy_(values(dtype, (6, 8), rank))
    dist.broadcast(strided, 0, group=group)
    found.append(strided.clone())
    return found


def copies(rank, size, port):
    enter(rank, size, port, "gloo")
    group = dist.new_group(backend="longhaul")
    for dtype in (
        torch.float32,
        torch.int8,
        torch.uint8,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.bool,
    ):
        for one, other in zip(copies_of(group, dtype, rank, size), copies_of(None, dtype, rank, size)):
            assert torch.equal(one, other), (dtype, one, other)
    dtype = torch.complex64
    copies_of(group, dtype, rank, size)
    # What gloo lacks: lists of different sizes.
    into = [torch.zeros(r + 1) for r in range(size)]
    dist.all_to_all(into, [torch.full((rank + 1,), float(10 * rank + r)) for r in range(size)], group=group)
    assert [t.tolist() for t in into] == [[10.0 * r + rank] * (r + 1) for r in range(size)], into
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank}, group=group)
    assert [each["rank"] for each in objects] == list(range(size))
    box = [{"from": rank}, "y" * 10000] if rank == 0 else [None, None]
    dist.broadcast_object_list(box, 0, group=group)
    assert box[0] == {"from": 0}
    dist.barrier(group=group)
    close_all()


def close_all():
    dist.destroy_process_group()
    assert not works.groups and not works.endpoints


def coalesced(rank, size, port):
    enter(rank, size, port)
    group = dist.distributed_c10d._get_default_group()
    tensors = [torch.full((n,), float(rank + n)) for n in (3, 0, 700)]
    work = group.allreduce_coalesced(tensors)
    work.wait()
    for n, tensor in zip((3, 0, 700), tensors):
        assert torch.equal(tensor, torch.full((n,), float(sum(r + n for r in range(size))))), tensor
    outs = [torch.zeros(size * 2), torch.zeros((size * 3, 4), dtype=torch.int64)]
    ins = [torch.full((2,), float(rank)), torch.full((3, 4), rank)]
    group.allgather_into_tensor_coalesced(outs, ins).wait()
    assert outs[0].tolist() == [float(r) for r in range(size) for _ in range(2)]
    assert outs[1][:, 0].tolist() == [r for r in range(size) for _ in range(3)]
    outs = [torch.zeros(2), torch.zeros(3)]
    ins = [torch.arange(2.0 * size), torch.arange(3.0 * size)]
    group.reduce_scatter_tensor_coalesced(outs, ins).wait()
    for n, out in zip((2, 3), outs):
        assert out.tolist() == [float(size * (rank * n + i)) for i in range(n)], out
    result = functional.all_reduce(torch.full((5,), float(rank)), "sum", group)
    assert result.tolist() == [size * (size - 1) / 2] * 5
    result = functional.all_gather_tensor(torch.full((2,), rank), 0, group)
    assert result.tolist() == [r for r in range(size) for _ in range(2)]
    result = functional.reduce_scatter_tensor(torch.arange(2.0 * size), "sum", 0, group)
    assert result.tolist() == [size * (2.0 * rank), size * (2.0 * rank + 1)]
    del result
    dist.destroy_process_group()


def asynchronous(rank, size, port):
    enter(rank, size, port)
    tensors = [torch.full((1 + 500 * i,), float(rank)) for i in range(40)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future() for work in works[::2]]
    chained = futures[0].then(lambda future: future.value()[0] / size)
    del works
    gc.collect()
    for future in futures:
        future.wait()
    assert chained.wait().tolist() == [(size - 1) / 2]
    dist.barrier()
    assert all(t[0] == size * (size - 1) / 2 for t in tensors)
    for _ in range(20):
        dist.all_reduce(torch.ones(3000), async_op=True)  # nobody waits
    work = dist.barrier(async_op=True)
    work.wait()
    assert work.is_completed() and work.is_success()
    dist.destroy_process_group()


def keeps_nothing(rank, size, port):
    """After operations, some of which nobody waited for, no work is left."""
    enter(rank, size, port)
    group = dist.distributed_c10d._get_default_group()
    for number in range(2000):
        work = dist.all_reduce(torch.ones(10), async_op=True)
        if number % 3 == 0:
            work.get_future().then(lambda future: future.value())
        if number % 100 == 0:
            work.wait()
    work.wait()
    del work
    dist.barrier()
    (endpoint,) = works.endpoints.values()
    end = time.monotonic() + 20
    while time.monotonic() < end and (group._pending or endpoint._handlers):
        time.sleep(0.01)
    assert (group._pending, group._waited, group._kept, endpoint._handlers) == ({}, set(), [], {})
    while time.monotonic() < end and [each for each in gc.get_objects() if isinstance(each, works.Work)]:
        time.sleep(0.1)  # the last callbacks may be running
    left = [each for each in gc.get_objects() if isinstance(each, works.Work)]
    assert not left, len(left)
    dist.barrier()
    dist.destroy_process_group()


def messages(rank, size, port):
    enter(rank, size, port)
    after, before = (rank + 1) % size, (rank - 1) % size
    for count in (0, 1, 1000, 1 << 18):  # in the header, and behind it
        into = torch.zeros(count, dtype=torch.int64)
        work = dist.isend(torch.full((count,), rank), after)
        dist.recv(into, before)
        work.wait()
        assert (into == before).all()
    # Tags choose, whatever the order.
    works = [
        dist.isend(torch.full((n,), float(tag)), after, tag=tag) for tag, n in ((1, 5), (2, 9000), (3, 7))
    ]
    for tag, n in ((3, 7), (1, 5), (2, 9000)):
        into = torch.zeros(n)
        dist.recv(into, before, tag=tag)
        assert (into == tag).all()
    for work in works:
        work.wait()
    strided = torch.zeros((40, 50)).t()
    work = dist.isend(torch.arange(2000.0).reshape(50, 40), after)
    dist.recv(strided, before)
    work.wait()
    assert torch.equal(strided, torch.arange(2000.0).reshape(50, 40))
    if rank == 0:  # from any rank
        seen = []
        for _ in range(2 * (size - 1)):
            into = torch.zeros(4000)
            seen.append((dist.recv(into, tag=9), int(into[0])))
        assert sorted(seen) == sorted([(r, i) for r in range(1, size) for i in (10 * r, 10 * r + 1)]), seen
    else:
        for i in range(2):
            dist.send(torch.full((4000,), 10.0 * rank + i), 0, tag=9)
    ops = [dist.P2POp(dist.isend, torch.full((3,), float(rank)), after)]
    ops.append(dist.P2POp(dist.irecv, got := torch.zeros(3), before))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert got.tolist() == [float(before)] * 3
    every = []  # all pairs at once, more than one receive pending
    for peer in (r for r in range(size) if r != rank):
        every.append(dist.P2POp(dist.irecv, torch.full((peer + 1, 3), -1.0), peer))
        every.append(dist.P2POp(dist.isend, torch.full((rank + 1, 3), float(rank)), peer))
    for work in dist.batch_isend_irecv(every):
        work.wait()
    assert all((each.tensor == each.peer).all() for each in every[::2])
    dist.barrier()
    work = dist.isend(torch.zeros(10), after)
    try:
        dist.recv(torch.zeros(11), before)
        raise AssertionError("a message of another size was accepted")
    except longhaul.LonghaulError as error:
        assert "40 bytes" in str(error) and "44 bytes" in str(error), error
    work.wait()
    dist.barrier()
    dist.destroy_process_group()


def messages_while_a_thread_waits_for_the_store(rank, size, port):
    enter(rank, size, port, seconds=20)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        work = dist.isend(torch.ones(3), 1)  # connects when the other rank has published its address
        store.wait(["received"])
        work.wait()
    else:
        time.sleep(0.5)
        dist.recv(torch.zeros(3), 0)
        store.set("received", b"1")
    dist.barrier()
    dist.destroy_process_group()


def subgroups(rank, size, port):
    enter(rank, size, port)
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3]), dist.new_group([3, 0])]
    for members, group in zip(([0, 1], [2, 3], [3, 0]), pairs):
        if rank in members:
            tensor = torch.full((10,), float(rank))
            dist.all_reduce(tensor, group=group)
            assert tensor[0] == sum(members)
            dist.broadcast(tensor.fill_(rank), members[1], group=group)
            assert tensor[0] == members[1]
            other = members[1 - members.index(rank)]
            work = dist.isend(torch.full((2,), float(rank)), other, group=group)
            dist.recv(into := torch.zeros(2), other, group=group)
            work.wait()
            assert into[0] == other
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("site", "inside"))
    tensor = torch.ones(1) * rank
    dist.all_reduce(tensor, group=mesh.get_group("inside"))
    assert tensor.item() == (1 if rank < 2 else 5)
    dist.barrier()
    dist.destroy_process_group(pairs[0])
    dist.all_reduce(tensor)
    dist.destroy_process_group()


def callbacks(rank, size, port):
    """Callbacks have run when a wait() returns; they may wait themselves, and close the group."""
    enter(rank, size, port)
    group = dist.new_group()
    for _ in range(300):
        seen = []
        work = dist.all_reduce(torch.ones(10), async_op=True)
        work.get_future().then(lambda future: seen.append((work.wait(), work.is_completed())))
        work.wait()
        assert seen == [(True, True)] and work.get_future().done(), seen
    closed = threading.Event()
    work = dist.all_reduce(torch.ones(10), async_op=True, group=group)
    work.get_future().add_done_callback(lambda _: (group.shutdown(), closed.set()))
    assert closed.wait(30)
    dist.barrier()
    dist.destroy_process_group()


def waits_in_callbacks(rank, size, port):
    """A callback waits for works that start later, and for messages; abort() does not wait for callbacks."""
    enter(rank, size, port, seconds=20)
    group = dist.new_group()

    def inner(value):
        return dist.all_reduce(value, async_op=True).get_future()

    work = dist.all_reduce(torch.ones(10), async_op=True)
    nested = work.get_future().then(
        lambda first: inner(first.value()[0]).then(lambda second: inner(second.value()[0]).wait()[0]).wait()
    )
    assert nested.wait().tolist() == [float(size**3)] * 10
    into = torch.zeros(3)
    received = dist.irecv(into, 1 - rank).get_future()
    waited = received.then(lambda _: inner(into.clone()).wait()[0])
    dist.send(torch.ones(3), 1 - rank)
    assert waited.wait().tolist() == [float(size)] * 3
    free, inside = threading.Event(), threading.Event()
    blocked = dist.all_reduce(torch.ones(10), group=group, async_op=True)
    here = threading.current_thread()  # runs it if the work has ended

    def wait(_):
        inside.set()
        return threading.current_thread() is here or free.wait(30)

    blocked.get_future().then(wait)
    assert inside.wait(30)
    began = time.monotonic()
    group.abort()
    assert time.monotonic() - began < 10
    free.set()
    blocked.wait()
    dist.barrier()
    dist.destroy_process_group()


class SlowStore:
    def __init__(self, store):
        self.store = store

    def clone(self):
        time.sleep(0.5)
        return self.store.clone() if hasattr(self.store, "clone") else self.store


def closed_by_two(rank, size, port):
    """Two threads close a group; one closes it while the other makes the connections of messages."""
    enter(rank, size, port)
    users = [endpoint.users for endpoint in works.endpoints.values()]
    for closes in ("abort", "shutdown"):
        group = dist.new_group()
        failed = []

        def close(group=group, closes=closes, failed=failed):
            try:
                getattr(group, closes)()
            except BaseException as error:
                failed.append(repr(error))

        closers = [threading.Thread(target=close, daemon=True) for _ in range(2)]
        with group._start_lock:
            for closer in closers:
                closer.start()
            time.sleep(0.05)
        for closer in closers:
            closer.join(20)
        assert not failed and not any(closer.is_alive() for closer in closers), failed
        assert [endpoint.users for endpoint in works.endpoints.values()] == users
    group = dist.new_group()
    group._store = SlowStore(group._store)
    results = []

    def receive():
        try:
            group.recv_anysource([torch.zeros(3)], 0).wait()
        except longhaul.LonghaulError as error:
            results.append(error)

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()
    time.sleep(0.2)
    group.abort()
    receiver.join(20)
    assert len(results) == 1 and isinstance(results[0], longhaul.Canceled), results
    dist.barrier()
    close_all()


def random_calls(rank, size, port, count):
    """Operations picked at random, some asynchronous, in the group and in a sub-group; results are checked.
    """
    enter(rank, size, port)
    half = [dist.new_group([r for r in range(size) if r % 2 == side]) for side in range(2)][rank % 2]
    pick, pending = random.Random(7), []
    for number in range(count):
        kind, elements, waits = pick.randrange(5), pick.choice((0, 1, 33, 5000)), pick.random() < 0.5
        group, members = (None, size) if pick.random() < 0.6 else (half, len(range(rank % 2, size, 2)))
        base = sum(range(size)) if group is None else sum(range(rank % 2, size, 2))
        tensor = torch.full((elements,), number + rank, dtype=torch.int64)
        if kind < 2:
            work = dist.all_reduce(tensor, group=group, async_op=not waits)
            checked = (tensor, members * number + base)
        elif kind == 2:
            root = 0 if group is None else rank % 2
            work = dist.broadcast(tensor, root, group=group, async_op=not waits)
            checked = (tensor, number + root)
        elif kind == 3:
            into = torch.zeros(members * elements, dtype=torch.int64)
            work = dist.all_gather_into_tensor(into, tensor, group=group, async_op=not waits)
            checked = (into[:elements], number + (0 if group is None else rank % 2))
        else:
            work, checked = dist.barrier(group=group, async_op=not waits), (tensor, number + rank)
        if not waits:
            pending.append((work, *checked))
        else:
            assert (checked[0] == checked[1]).all(), (number, kind, checked)
        while len(pending) > pick.randrange(1, 10):
            work, result, value = pending.pop(pick.randrange(len(pending)))
            work.wait()
            assert (result == value).all(), (number, result, value)
    for work, result, value in pending:
        work.wait()
        assert (result == value).all()
    dist.barrier()
    dist.destroy_process_group()


def killed(rank, size, port, moment):
    bound = 3.0
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    options = longhaul.torch.Options(settings={"peer_timeout": bound})
    dist.init_process_group("longhaul", pg_options=options, timeout=datetime.timedelta(seconds=50))
    dist.barrier()
    store = dist.distributed_c10d._get_default_store()
    store.add("ready", 1)
    tensor = torch.ones(1 << 18)
    started = time.monotonic()
    for step in range(10_000_000):
        if rank == size - 1 and step == moment:
            while store.add("ready", 0) < size:  # the barrier has ended at all ranks
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            started = time.monotonic()
            work = dist.all_reduce(tensor, async_op=step % 2 == 1)
            if work is not None:
                work.wait()
        except longhaul.RankFailed as error:
            assert error.rank == size - 1, error
            break
    if rank == 0:
        try:
            dist.recv(torch.zeros(3), size - 1)
            raise AssertionError("a dead rank sent")
        except longhaul.LonghaulError:
            pass
    dist.distributed_c10d._get_default_group().abort()
    return time.monotonic() - started


def late(rank, size, port):
    enter(rank, size, port)
    group = dist.new_group(timeout=datetime.timedelta(seconds=0.3))
    other = dist.new_group(timeout=datetime.timedelta(seconds=0.3))
    if rank == 0:
        for call in (
            lambda: dist.barrier(group=group),
            lambda: dist.recv(torch.zeros(3), 1, group=other),
            lambda: dist.recv(torch.zeros(3), group=other),
        ):
            try:
                call()
                raise AssertionError("a call that no other rank makes succeeded")
            except longhaul.TimedOut as error:
                assert str(error)
    dist.barrier()
    third = dist.new_group()
    if rank == 0:
        work = dist.all_reduce(torch.ones(3), group=third, async_op=True)  # the other rank does not call yet
        third.abort()
        assert isinstance(work.exception(), longhaul.LonghaulError), work.exception()
    fourth = dist.new_group()
    if rank == 0:  # abort by another thread than the one that waits in the library
        aborter = threading.Thread(target=lambda: (fourth_begins.wait(), fourth.abort()))
        fourth_begins = threading.Event()
        aborter.start()
        fourth_begins.set()
        try:
            dist.barrier(group=fourth)
            raise AssertionError("an aborted operation succeeded")
        except longhaul.LonghaulError:
            pass
        aborter.join()
    dist.barrier()
    try:
        dist.all_reduce(torch.ones(3), group=third)
        raise AssertionError("an aborted group works")
    except longhaul.LonghaulError as error:
        assert rank or "closed" in str(error), error
    dist.destroy_process_group()


def again(rank, size, port):
    """Groups over one store, one after the other."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, size, is_master=rank == 0, wait_for_workers=False)
    for number in range(3):
        dist.init_process_group(
            "longhaul", store=store, rank=rank, world_size=size, timeout=datetime.timedelta(seconds=10)
        )
        dist.all_reduce(tensor := torch.ones(3))
        assert tensor[0] == size
        work = dist.isend(torch.full((3,), float(number)), 1 - rank)
        dist.recv(into := torch.zeros(3), 1 - rank)
        work.wait()
        assert into[0] == number
        close_all()
    store.set(f"over/{rank}", b"1")
    store.wait(["over/0", "over/1"])
    if rank:
        store.set("left", b"1")
    else:
        store.wait(["left"])


def forked(rank, size, port):
    """A child of a process with a group makes a group of its own, on an engine of its own."""
    dist.init_process_group("longhaul", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert not works.groups and not works.endpoints
            group = longhaul.torch.ProcessGroupLonghaul(dist.HashStore(), 0, 1, datetime.timedelta(seconds=9))
            work = group.allreduce([torch.ones(3)])
            work.get_future().wait()
            work.wait()
            group.shutdown()
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + 30
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.01)
    if done == (0, 0):
        os.kill(child, 9)
    assert done == (child, 0), done
    dist.all_reduce(torch.ones(3))
    close_all()


def alone(rank, size, port):
    dist.init_process_group("longhaul", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(tensor := torch.ones(3))
    assert tensor.tolist() == [1, 1, 1]
    try:
        dist.monitored_barrier()
    except ValueError as error:
        assert "only implemented for GLOO" in str(error), error
    close_all()


def secured(rank, size, port):
    """Encrypted by default, with a key of the store, which is gone when all ranks have it."""
    enter(rank, size, port)
    group = dist.group.WORLD
    assert group.encryption == "full", group.encryption
    dist.send(torch.ones(1), 1) if rank == 0 else dist.recv(torch.ones(1), 0)
    assert group._mail._settings["key"] == group._key and len(group._key) == 32
    dist.barrier()
    assert not group._store.check([works._KEY])
    part = dist.new_group()
    assert part.encryption == "full" and part._key != group._key
    plain = dist.new_group(pg_options=longhaul.torch.Options(insecure=True))
    assert plain.encryption == "off"
    dist.all_reduce(torch.ones(3), group=plain)
    if rank == 0:
        os.environ["LONGHAUL_SECRET"] = "sixteen characters or more"
    try:
        dist.new_group()
    except longhaul.LonghaulError as error:
        assert "another key" in str(error), error
    else:
        raise AssertionError("ranks with two keys")
    os.environ["LONGHAUL_SECRET"] = "sixteen characters or more"
    assert dist.new_group()._key == b"sixteen characters or more"
    dist.destroy_process_group()


def secured_differently(rank, size, port, first):
    """Ranks that do not agree hear it at once, whichever rank says what; the store keeps no key."""
    store = dist.TCPStore("127.0.0.1", port, size, rank == 0, datetime.timedelta(seconds=30))
    options = longhaul.torch.Options
    for number, given in enumerate((options(insecure=True), options(key=b"of one rank alone"))):
        prefix = dist.PrefixStore(str(number), store)
        chosen = given if (rank == 0) == first else None
        began = time.monotonic()
        try:
            longhaul.torch.ProcessGroupLonghaul(prefix, rank, size, datetime.timedelta(seconds=20), chosen)
        except longhaul.LonghaulError as error:
            assert "key" in str(error), error
        else:
            raise AssertionError("ranks that differ")
        assert time.monotonic() - began < 15  # no rank waits for the key of the other
        store.set(f"ended/{number}/{rank}", b"")
        store.get(f"ended/{number}/0")
        assert prefix.get(f"longhaul/1/{works._KEY}") == b""
        store.set(f"looked/{number}/{rank}", b"")
        if rank == 0:  # whose store it is
            store.get(f"looked/{number}/1")


def forgets_keys_of_failures():
    """What a rank finds that comes after the group has failed: not the key, and no long wait."""
    store = dist.HashStore()
    for _ in range(2):
        try:
            with works.shared_key(store, 0, None, False) as key:
                assert store.get(works._KEY) == key and len(key) == 32
                raise InterruptedError
        except InterruptedError:
            pass
        try:
            with works.shared_key(store, 1, None, False):
                raise AssertionError("a key")
        except RuntimeError as error:
            assert "rank 0 has failed" in str(error)


EXITS = """
import os, sys, time, torch, torch.distributed as dist
import longhaul.torch
dist.init_process_group("longhaul")
dist.all_reduce(torch.ones(3))
work = dist.all_reduce(torch.ones(3), async_op=True)
dist.send(torch.ones(1), 1 - dist.get_rank()) if dist.get_rank() else dist.recv(torch.ones(1), 1)
for _ in range(100):  # callbacks that are pending at the exit
    work = dist.all_reduce(torch.ones(100), async_op=True)
    work.get_future().then(lambda future: (time.sleep(0.001), future.value()[0] * 2)[1])
print("done")
"""


INTERRUPTED = """
import datetime, os, signal, threading, time, torch, torch.distributed as dist
import longhaul.torch
dist.init_process_group("longhaul", timeout=datetime.timedelta(seconds=50))
dist.barrier()
if dist.get_rank() == 0:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        dist.all_reduce(torch.ones(1000))
    except KeyboardInterrupt:
        assert time.monotonic() - began < 10
        print("interrupted", flush=True)
else:
    time.sleep(1.5)
print("done", flush=True)
"""


def run_script(script, size=2):
    """(exit status, output) of each rank."""
    environment = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ranks.free_port()),
        "WORLD_SIZE": str(size),
    }  # fmt: skip
    children = [
        subprocess.Popen([sys.executable, "-c", script], env={**environment, "RANK": str(rank)}, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for rank in range(size)
    ]  # fmt: skip
    try:
        outputs = [child.communicate(timeout=40)[0] for child in children]
    finally:
        for child in children:
            child.kill()
    return [(child.returncode, output) for child, output in zip(children, outputs)]


BROKEN = """
import os, warnings
os.environ["LONGHAUL_LIBRARY"] = "/nowhere"
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
assert any("without the backend longhaul" in str(each.message) for each in caught), caught
"""


OLD = """
import os
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
import torch
torch.__version__ = type(torch.__version__)("2.6.0")
try:
    import longhaul.torch
    raise AssertionError("torch 2.6 was accepted")
except ImportError as error:
    assert "torch 2.6.0: " in str(error) and "install torch 2.7" in str(error), error
"""


class Torch(unittest.TestCase):
    def test_callbacks(self):
        ranks.run(callbacks, 2)

    def test_callbacks_that_wait(self):
        ranks.run(waits_in_callbacks, 2)

    def test_a_group_that_two_threads_close(self):
        ranks.run(closed_by_two, 2)

    def test_reductions_of_every_type(self):
        refused = ranks.run(reductions, 2)[0]
        floats = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
        self.assertEqual(
            refused,
            sorted(
                [(kind, op) for kind in floats for op in ("BAND", "BOR", "BXOR")]
                + [(kind, op) for kind in floats[4:] for op in ("PRODUCT", "MIN", "MAX")]
                + [("bool", "AVG")]
            ),
        )

    def test_reductions_of_three(self):
        ranks.run(reductions, 3)

    def test_premultiplied_sums(self):
        ranks.run(premultiplied, 2)

    def test_tensors_of_two_types(self):
        ranks.run(mixed_types, 2)

    def test_copies_are_those_of_gloo(self):
        for size in (2, 3):
            ranks.run(copies, size)

    def test_coalesced_and_functional_forms(self):
        ranks.run(coalesced, 2)

    def test_works_complete_by_themselves(self):
        ranks.run(asynchronous, 2)

    def test_works_that_have_ended_are_freed(self):
        ranks.run(keeps_nothing, 2)

    def test_messages(self):
        for size in (2, 4):
            ranks.run(messages, size)

    def test_messages_while_a_thread_waits_for_the_store(self):
        ranks.run(messages_while_a_thread_waits_for_the_store, 2)

    def test_subgroups(self):
        ranks.run(subgroups, 4)

    def test_random_calls(self):
        ranks.run(random_calls, 3, 1000, seconds=120)

    def test_a_killed_rank(self):
        for moment in (0, 7):
            seconds = ranks.run(killed, 3, moment, dies=(2,))
            self.assertLess(max(seconds[:2]), 30)  # twice the bound, and a loaded machine

    def test_timeouts_and_abort(self):
        ranks.run(late, 2)

    def test_exit_without_destroy(self):
        for status, output in run_script(EXITS):
            self.assertEqual(status, 0, output)
            self.assertIn("done", output)

    def test_an_interrupted_call(self):
        results = run_script(INTERRUPTED)
        for status, output in results:
            self.assertEqual(status, 0, output)
            self.assertIn("done", output)
        self.assertIn("interrupted", results[0][1])

    def test_groups_over_one_store(self):
        ranks.run(again, 2)

    def test_a_child_of_fork(self):
        ranks.run(forked, 1)

    def test_torch_without_the_library(self):
        for status, output in run_script(BROKEN, 1):
            self.assertEqual(status, 0, output)

    def test_an_old_torch(self):
        for status, output in run_script(OLD, 1):
            self.assertEqual(status, 0, output)

    def test_options(self):
        with self.assertRaisesRegex(TypeError, "expected longhaul.torch.Options"):
            dist.init_process_group(
                "longhaul", store=dist.HashStore(), rank=0, world_size=1, pg_options=object()
            )

    def test_encrypted(self):
        ranks.run(secured, 2)
        for first in (False, True):
            ranks.run(secured_differently, 2, first)
        forgets_keys_of_failures()

    def test_one_rank(self):
        ranks.run(alone, 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
