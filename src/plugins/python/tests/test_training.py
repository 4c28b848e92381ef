"""Training by the backend of torch.distributed: DDP and FSDP2, reliable and bounded, compared with gloo or
with one process.
"""

import datetime
import os
import re
import signal
import sys
import unittest

import ranks
from test_torch import enter

import torch
import torch._dynamo  # noqa: F401 what ranks need is imported once, here: they are forked
import torch.distributed as dist
import torch.distributed.fsdp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh

import longhaul
import longhaul.torch
from longhaul import _torch_works as works

# Groups that live until their process ends: where the last reference to a group of gloo is a callback's, a
# thread of that group frees it, joins itself, and aborts ("Resource deadlock avoided").
KEPT = []
HOOKED = hasattr(torch.distributed.fsdp.FSDPModule, "set_custom_reduce_scatter")  # since torch 2.9


def data_of(rank):
    return torch.Generator().manual_seed(10 + rank)


def loss_of(model, batch, generator):
    data = torch.randn(batch, 20, generator=generator)
    return torch.nn.functional.cross_entropy(model(data), (data.sum(1) > 0).long())


def train(model, rank, steps, batch=16, rate=0.1):
    """Trains by SGD on data of this rank; the losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    generator = data_of(rank)
    losses = []
    for _ in range(steps):
        loss = loss_of(model, batch, generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def training(rank, size, port, backend, steps):
    """Losses of a small model with batch normalization, whose gradients need two buckets."""
    enter(rank, size, port, backend)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 300), torch.nn.BatchNorm1d(300), torch.nn.ReLU(), torch.nn.Linear(300, 1000),
        torch.nn.ReLU(), torch.nn.Linear(1000, 2),
    )  # fmt: skip
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    losses = train(model, rank, steps, rate=0.05)
    digest = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    everyone = [torch.zeros_like(digest) for _ in range(size)]
    dist.all_gather(everyone, digest)
    assert all(torch.equal(digest, other) for other in everyone)
    del model
    dist.destroy_process_group()
    return losses


def power(rank, size, port, backend, steps):
    """Losses under a hook of torch whose callbacks wait for all-reduces."""
    enter(rank, size, port, backend, 30)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.Linear(300, 2))
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=3)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    losses = train(model, rank, steps, batch=32)
    del model
    KEPT.append(dist.group.WORLD)
    dist.destroy_process_group()
    return losses


def failing(rank, size, port):
    """A rank dies within a backward pass of DDP: that of the other raises, in C++."""
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    options = longhaul.torch.Options(settings={"peer_timeout": 2.0})
    dist.init_process_group("longhaul", pg_options=options, timeout=datetime.timedelta(seconds=50))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    ready = ["the other has made its model, too"]
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(ready)
        os.kill(os.getpid(), signal.SIGKILL)
    store.set(ready[0], "")
    with unittest.TestCase().assertRaisesRegex(RuntimeError, "rank 1"):
        model(torch.randn(4, 64)).sum().backward()
    dist.distributed_c10d._get_default_group().abort()


def bounded(rank, size, port, link, steps):
    """Losses of a small model whose gradients may miss data; what they missed; how far replicas drifted."""
    enter(rank, size, port)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(20, 400), torch.nn.ReLU(), torch.nn.Linear(400, 2))
    model = torch.nn.parallel.DistributedDataParallel(model)
    options = longhaul.torch.Options(attr={"link": link} if link else None)
    hook = longhaul.torch.bounded_hook(deadline=5.0, options=options)
    hook.register(model)
    losses = train(model, rank, steps, batch=32)
    assert len(hook.steps) == steps
    mine = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    mean = mine.clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    drift = (mine - mean).norm() / mean.norm()
    missing = sum(step.missing_bytes for step in hook.steps)
    assert all(step.bytes == 4 * mine.numel() for step in hook.steps)
    del model
    dist.destroy_process_group()
    return losses, missing, drift.item()


def fed_back(rank, size, port, feedback, loss):
    """Sums of what a hook averages, and of the true averages; what was missing. The last steps are zeros."""
    enter(rank, size, port)
    options = longhaul.torch.Options(attr={"link": f"loss={loss},seed=5"})
    hook = longhaul.torch.bounded_hook(5.0, options=options, **feedback)
    count, steps = 70000, 24
    found, wanted = torch.zeros(2, count), torch.zeros(2, count)
    parameters = [[torch.zeros(count)] for _ in range(2)]
    for step in range(steps):
        each = [values(r, step, count) * (step < steps - 12) for r in range(size)]
        for bucket in range(2):  # two that are reduced at once
            wanted[bucket] += sum(one[bucket] for one in each) / size
        futures = [
            hook(None, Bucket(each[rank][bucket].clone(), bucket, 2, parameters[bucket]))
            for bucket in range(2)
        ]
        for bucket in range(2):
            found[bucket] += futures[bucket].wait()
    dist.destroy_process_group()
    missing = sum(step.missing_bytes for step in hook.steps)
    return ((found - wanted).norm() / wanted.norm()).item(), missing


class Three(torch.nn.Module):
    """Parameters of one size, whose gradients come in another order than DDP supposes at first."""

    COUNT = 40_000

    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ParameterList(torch.zeros(self.COUNT) for _ in range(3))

    def forward(self, x, factors):
        return sum((part * x * factor).sum() for part, factor in zip(self.parts, factors))


def fed_back_to_its_own(rank, size, port):
    """DDP makes other buckets after the first step; a hook has two models. What is late goes where it
    belongs: the sums of gradients are those of a training without loss.
    """
    enter(rank, size, port)
    options = longhaul.torch.Options(attr={"link": "loss=1e-1,seed=5"})
    hook = longhaul.torch.bounded_hook(5.0, options=options, feedback=True, hadamard=False)
    factors, steps = ((1, 100, 10_000), (7, 5, 3)), 24
    models = [torch.nn.parallel.DistributedDataParallel(Three()) for _ in factors]
    sums = [[torch.zeros(Three.COUNT) for _ in range(3)] for _ in models]
    for model in models:
        hook.register(model)
    for step in range(steps):
        x = torch.full((Three.COUNT,), float(step < steps - 18))
        for model, factor, total in zip(models, factors, sums):
            model.zero_grad()
            model(x, factor).backward()
            for part, each in zip(model.module.parts, total):
                each += part.grad
    assert sum(step.missing_bytes for step in hook.steps) > 0
    assert len(hook._feedback._buckets) == 2  # those of before are gone
    for factor, total in zip(factors, sums):
        for wanted, each in zip(factor, total):
            close = torch.isclose(each, torch.tensor(6.0 * wanted), rtol=1e-4)
            assert close.all(), (wanted, each[~close])
    del model, models
    dist.destroy_process_group()


def fed_back_alone(rank, size, port):
    """One rank; gradients of another type, which are refused."""
    enter(rank, size, port)
    hook = longhaul.torch.bounded_hook(feedback=True)
    parameters = [torch.zeros(1000)]
    for step in range(4):
        result = hook(None, Bucket(torch.full((1000,), float(step)), 0, 1, parameters)).wait()
        assert torch.allclose(result, torch.full((1000,), float(step)), atol=1e-5), result
    for dtype in (torch.float16, torch.bfloat16):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 3).to(dtype))
        hook.register(model)
        try:
            model(torch.ones(3, dtype=dtype)).sum().backward()
        except (TypeError, RuntimeError) as error:
            assert "no feedback (float32 only)" in str(error), error
        else:
            raise AssertionError(dtype)
    del model
    dist.destroy_process_group()


def fed_back_after_a_failure(rank, size, port):
    """Rank 1 leaves out a reduction: what is missing where is no longer known, and the hook says so."""
    enter(rank, size, port)
    hook = longhaul.torch.bounded_hook(None, feedback=True)
    bucket = Bucket(torch.ones(1000), 0, 1, [torch.zeros(1000)])
    for _ in range(3):
        hook(None, bucket).wait()
    if rank == 0:
        hook.group.set_timeout(datetime.timedelta(seconds=0.5))
        for reason in ("timed out|timeout|deadline", "a reduction has failed", "a reduction has failed"):
            try:
                hook(None, bucket).wait()
            except (RuntimeError, longhaul.LonghaulError) as error:
                assert re.search(reason, str(error)), (reason, error)
            else:
                raise AssertionError(reason)
    dist.barrier()
    dist.destroy_process_group()


def values(rank, step, count):
    return torch.randn(2, count, generator=torch.Generator().manual_seed(100 * step + rank))


def scored(rank, size, port, loss, seed, steps, feedback):
    """Accuracy of a model whose labels another one made, after training by a hook; share that was missing."""
    enter(rank, size, port)
    generator = torch.Generator().manual_seed(seed)
    teacher = torch.randn(20, 5, generator=generator)
    inputs = torch.randn(6000, 20, generator=generator)
    labels = (inputs.tanh() @ teacher).argmax(1)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(20, 400), torch.nn.ReLU(), torch.nn.Linear(400, 5))
    model = torch.nn.parallel.DistributedDataParallel(model)
    hook = None
    if feedback is not None:
        options = longhaul.torch.Options(attr={"link": f"loss={loss},seed={seed}"})
        hook = longhaul.torch.bounded_hook(5.0, options=options, **feedback)
        hook.register(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    batches = torch.Generator().manual_seed(seed + rank)
    for _ in range(steps):
        chosen = torch.randint(0, 4000, (128,), generator=batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen]).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        right = (model(inputs[4000:]).argmax(1) == labels[4000:]).float().mean().item()
    mine = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    mean = mine.clone()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    del model
    dist.destroy_process_group()
    passed = list(hook.steps) if hook else []
    share = sum(step.missing_bytes for step in passed) / max(1, sum(step.bytes for step in passed))
    return 100 * right, share, ((mine - mean).norm() / mean.norm()).item()


class Bucket:
    """A bucket of DDP: its place among `count` of a backward pass."""

    def __init__(self, tensor, place, count, parameters=()):
        self.buffer, self.index, self.parameters = (lambda: tensor), (lambda: place), (lambda: parameters)
        self.is_last = lambda: place == count - 1


class LateGroup(dist.ProcessGroup):
    """All-reduces end when the test says so."""

    def __init__(self):
        super().__init__(0, 1)
        self.works = []

    def allreduce(self, tensors, options):
        work = works.Work(tensors, True)
        work.missing_bytes = 10 ** len(self.works)
        self.works.append(work)
        return work


def buckets(rank, size, port):
    """Buckets that end in another order than they begin, or fail, count for their own backward pass."""
    group = LateGroup()
    hook = longhaul.torch.BoundedHook(group)
    tensors = [torch.ones(n) for n in (1000, 100, 1)]
    futures = [hook(None, Bucket(tensor, i, 3)) for i, tensor in enumerate(tensors)]
    futures += [hook(None, Bucket(tensor, i, 3)) for i, tensor in enumerate(tensors)]
    failure = longhaul.LonghaulError(1, "failed")
    for i in (2, 5, 3, 0):
        group.works[i]._end()
    group.works[4]._end(failure)
    group.works[1]._end()
    for i in (0, 1, 2, 3, 5):
        futures[i].wait()
    try:
        futures[4].wait()
        raise AssertionError("the failure of a bucket is lost")
    except RuntimeError as error:
        assert "failed" in str(error), error
    steps = sorted(hook.steps, key=lambda step: step.failed_buckets)
    assert [(s.bytes, s.missing_bytes, s.failed_buckets) for s in steps] == [
        (4404, 111, 0), (4004, 101000, 1)
    ], steps  # fmt: skip
    enter(rank, size, port)
    model = torch.nn.Sequential(torch.nn.Linear(4, 400000, bias=False), torch.nn.Linear(400000, 4))
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    hook = longhaul.torch.bounded_hook(deadline=5.0)
    model.register_comm_hook(None, hook)
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
    total = sum(4 * each.numel() for each in model.parameters())
    assert [step.bytes for step in hook.steps] == [total] * 3, hook.steps
    outside = longhaul.torch.bounded_hook(ranks=[0])
    if rank:
        try:
            outside(None, Bucket(torch.ones(3), 0, 1))
            raise AssertionError("a rank that is no member used the hook")
        except ValueError as error:
            assert "not among" in str(error), error
    dist.barrier()
    dist.destroy_process_group()


def two_layers():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(20, 400), torch.nn.ReLU(), torch.nn.Linear(400, 2))


def in_one_process(rank, size, port, ranks_of_data, steps):
    """Losses on the data of each rank, of a model that is trained by the average of their gradients. gloo is
    no reference for FSDP2: a reduce-scatter of torch 2.7's adds where it should average.
    """
    torch.set_num_threads(1)
    model, generators = two_layers(), [data_of(r) for r in range(ranks_of_data)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        found = [loss_of(model, 16, generator) for generator in generators]
        (sum(found) / ranks_of_data).backward()
        optimizer.step()
        losses.append([loss.item() for loss in found])
    return list(zip(*losses))


def sharded(rank, size, port, backend, steps, link=None):
    """Losses of a model under FSDP2; with `bounded`, by a hook, and what its steps missed."""
    enter(rank, size, port)
    mesh = init_device_mesh("cpu", (size,))
    model = two_layers()
    torch.distributed.fsdp.fully_shard(model[0], mesh=mesh)
    torch.distributed.fsdp.fully_shard(model, mesh=mesh)
    hook = None
    if backend == "bounded":
        options = longhaul.torch.Options(attr={"link": link} if link else None)
        hook = longhaul.torch.bounded_hook(deadline=5.0, options=options)
        hook.register(model)
        for each in (model[0], model):
            each.set_gradient_divide_factor(2 * size)  # torch multiplies before it adds, then
    losses = train(model, rank, steps, rate=0.2 if hook else 0.1)
    del model
    dist.destroy_process_group()
    return losses, list(hook.steps) if hook else None


class Fails(torch.nn.Module):
    """Its backward fails, if it is to, after those of the modules behind it."""

    fails = False

    def forward(self, given):
        given.register_hook(lambda gradient: 1 / (not self.fails) and gradient)
        return given * 1


def sharded_in_sites(rank, size, port, steps):
    """FSDP2 within each of two sites, whose shards a hook averages across them: losses, and parameters."""
    enter(rank, size, port)
    torch.manual_seed(1)
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("site", "shard"))
    hooks = [longhaul.torch.bounded_hook(5.0, ranks=[i, i + size // 2]) for i in range(size // 2)]
    hook = hooks[rank % (size // 2)]
    model = torch.nn.Linear(20, 2)
    torch.distributed.fsdp.fully_shard(model, mesh=mesh["shard"])
    hook.register(model)
    losses = torch.tensor(train(model, rank, steps))
    dist.all_reduce(losses, dist.ReduceOp.AVG)
    losses = losses.tolist()
    assert len(hook.steps) == steps, hook.steps
    tensor = torch.full((5,), float(rank))
    hook.average(tensor)
    assert tensor.tolist() == [(rank % 2 + rank % 2 + 2) / 2] * 5, tensor
    assert hook.steps[-1] == longhaul.torch.BoundedStep(20, 0, 0), hook.steps[-1]
    try:
        hook.average(tensor.long())
        raise AssertionError("integers were averaged")
    except TypeError as error:
        assert "int64" in str(error), error
    parameters = [p.full_tensor().tolist() for p in model.parameters()]
    # A backward pass that fails behind a reduction, and one that does not.
    failing = torch.nn.Sequential(Fails(), torch.nn.Linear(4, 2))
    for parameter in failing.parameters():
        parameter.register_post_accumulate_grad_hook(lambda each: hook.average(each.grad))
    known = len(hook.steps)
    for fails in (True, False):
        failing[0].fails = fails
        try:
            failing(torch.ones(2, 4, requires_grad=True)).sum().backward()
            assert not fails
        except ZeroDivisionError:
            assert fails
    assert len(hook.steps) == known + 1, list(hook.steps)[known:]
    assert hook.steps[-1] == longhaul.torch.BoundedStep(4 * (4 * 2 + 2), 0, 0), hook.steps[-1]
    try:
        hook.register(torch.distributed.fsdp.fully_shard(torch.nn.Linear(4, 4), mesh=mesh))
        raise AssertionError("replicas that torch averages were accepted")
    except TypeError as error:
        assert "averages its replicas" in str(error), error
    try:
        other = init_device_mesh("cpu", (size,))
        hook.register(torch.distributed.fsdp.fully_shard(torch.nn.Linear(4, 4), mesh=other))
        raise AssertionError("shards of other ranks were accepted")
    except ValueError as error:
        assert "not the same" in str(error), error
    del model, failing
    dist.destroy_process_group()
    return losses, parameters


class Training(unittest.TestCase):
    def test_ddp_with_a_rank_that_dies(self):
        ranks.run(failing, 2, dies=(1,))

    def test_power_sgd_is_that_of_gloo(self):
        for one, other in zip(ranks.run(power, 2, "longhaul", 30), ranks.run(power, 2, "gloo", 30)):
            self.assertTrue(all(abs(a - b) < 1e-3 for a, b in zip(one, other)), (one, other))
            self.assertLess(one[-1], one[0])

    def test_bounded_gradients(self):
        steps = 60
        plain = ranks.run(bounded, 2, None, steps)
        lossy = ranks.run(bounded, 2, "loss=5e-2,seed=3", steps)
        for losses, missing, drift in plain:
            self.assertEqual(missing, 0)
            self.assertEqual(drift, 0)
            self.assertLess(sum(losses[-10:]), 0.6 * sum(losses[:10]))
        for losses, missing, drift in lossy:
            self.assertGreater(missing, 0)
            self.assertLess(drift, 0.5)
            self.assertLess(sum(losses[-10:]), 0.6 * sum(losses[:10]))
        for invalid in ("soon", 0, -1.0):
            with self.assertRaisesRegex(ValueError, "deadline"):
                longhaul.torch.bounded_hook(invalid)

    def test_feedback_loses_nothing(self):
        for options in ({}, {"hadamard": False}, {"stride": 64}):
            for size in (2, 3):
                for error, missing in ranks.run(fed_back, size, {"feedback": True, **options}, "5e-2"):
                    self.assertGreater(missing, 0)
                    self.assertLess(error, 1e-4)
        ranks.run(fed_back_to_its_own, 2)
        ranks.run(fed_back_alone, 1)
        ranks.run(fed_back_after_a_failure, 2)
        for error, missing in ranks.run(fed_back, 2, {}, "5e-2"):
            self.assertGreater(error, 1e-2)
        with self.assertRaisesRegex(ValueError, "only with feedback"):
            longhaul.torch.bounded_hook(stride=64)

    def test_accuracy_with_feedback(self):
        """Against a reliable training of the same seed; losses are injected, and deadlines never cut off."""
        seeds, fed = (1, 2, 3), {"feedback": True}
        reliable = [ranks.run(scored, 2, "0", seed, 300, None)[0] for seed in seeds]
        changes = {}
        for loss, feedback in (("1e-2", fed), ("5e-2", fed), ("1e-2", {}), ("5e-2", {})):
            found = [ranks.run(scored, 2, loss, seed, 300, feedback)[0] for seed in seeds]
            differ = [one[0] - other[0] for one, other in zip(found, reliable)]
            changes[loss, bool(feedback)] = sum(differ) / len(differ)
            share, apart = (sum(each[i] for each in found) / len(found) for i in (1, 2))
            print(
                f"loss {loss}, {'with' if feedback else 'without'} feedback: accuracy changes by",
                " ".join(f"{each:+.2f}" for each in differ),
                f"points; missing {100 * share:.2f} %, replicas apart {apart:.1e}",
                file=sys.stderr,
            )
        self.assertLess(abs(changes["1e-2", True]), 0.5)

    def test_bounded_gradients_in_buckets(self):
        ranks.run(buckets, 2)

    def test_training_is_that_of_gloo(self):
        for one, other in zip(ranks.run(training, 2, "longhaul", 60), ranks.run(training, 2, "gloo", 60)):
            self.assertTrue(all(abs(a - b) < 1e-4 for a, b in zip(one, other)), (one, other))
            self.assertLess(one[-1], one[0])

    def test_sharded_training_is_that_of_one_process(self):
        wanted = ranks.run(in_one_process, 1, 2, 30)[0]
        for backend in ("longhaul", "bounded") if HOOKED else ("longhaul",):
            for (one, passes), other in zip(ranks.run(sharded, 2, backend, 30), wanted):
                self.assertTrue(all(abs(a - b) < 1e-4 for a, b in zip(one, other)), (one, other))
                if backend == "bounded":
                    self.assertEqual([step.missing_bytes for step in passes], [0] * 30)

    def test_a_model_that_takes_no_hook(self):
        with self.assertRaisesRegex(TypeError, "Linear: not supported"):
            longhaul.torch.BoundedHook(None).register(torch.nn.Linear(1, 1))

    @unittest.skipUnless(HOOKED, "FSDP2 of this torch takes no hook")
    def test_bounded_gradients_of_shards(self):
        for losses, passes in ranks.run(sharded, 2, "bounded", 60, "loss=5e-2,seed=3"):
            self.assertEqual(len(passes), 60)
            self.assertEqual(len({step.bytes for step in passes}), 1)
            self.assertGreater(sum(step.missing_bytes for step in passes), 0)
            self.assertLess(sum(losses[-10:]), 0.8 * sum(losses[:10]))

    @unittest.skipUnless(HOOKED, "FSDP2 of this torch takes no hook")
    def test_shards_of_sites(self):
        (losses, parameters), *others = ranks.run(sharded_in_sites, 4, 30)
        self.assertLess(losses[-1], losses[0])
        for other in others:
            self.assertEqual(other, (losses, parameters))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
