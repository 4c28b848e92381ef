"""torchft's process group: members that die and come back; torchft's own tests, run with it."""

import datetime
import os
import signal
import statistics
import sys
import time
import unittest

import ranks

try:
    import torch
    import torchft  # noqa: F401
except ModuleNotFoundError as error:
    if error.name not in ("torch", "torchft"):
        raise
    print(f"skipped: {error}")
    sys.exit(77)
import torch.distributed as dist
from torchft import local_sgd_integ_test, manager_integ_test
from torchft import process_group_test as theirs

import longhaul
import longhaul.torchft

TRAINING = False
SECOND = datetime.timedelta(seconds=1)


def options():
    return longhaul.torch.Options(settings={"peer_timeout": 2.0})


class TheirGroup(theirs.MultiPgBaseTest):
    """Their tests of a group, three ranks in threads of a process: each collective, before and after one of
    the ranks has ended.
    """

    WORLD_SIZE = 3

    @classmethod
    def _create_pg(cls, backend):
        return longhaul.torchft.ProcessGroupLonghaul(10 * SECOND, options())

    def test_collectives(self):
        for name in sorted(theirs._ALL_COLLECTIVES):
            with self.subTest(name):
                self._run_parallel(name)

    def test_reconfigured(self):
        store = f"localhost:{self.store.port}/again"
        for size in (2, 3, 1, 3):
            futures = [
                self.executor.submit(self.pg_pool[rank].configure, f"{store}{size}", "0", rank, size)
                for rank in range(size)
            ]
            self._collect(futures)
            store += "_"
            for rank in range(size):
                self.assertIsNone(self.pg_pool[rank].errored())
                self.assertEqual(self.pg_pool[rank].size(), size)
        self._run_parallel("allreduce")

    def test_ends_with_a_member(self):
        def worker(rank):
            group = self.pg_pool[rank]
            group.configure(f"localhost:{self.store.port}/ends", "0", rank, self.WORLD_SIZE)
            group.set_timeout(5 * SECOND)
            if rank == self.WORLD_SIZE - 1:
                group.shutdown()
                return
            with self.assertRaises(longhaul.LonghaulError):
                for _ in range(10_000):
                    group.allreduce([torch.ones(1000)], dist.AllreduceOptions()).wait()
            self.assertIsInstance(group.errored(), longhaul.LonghaulError)

        self._collect([self.executor.submit(worker, rank) for rank in range(self.WORLD_SIZE)])
        after = f"localhost:{self.store.port}/after"
        self._collect(
            [
                self.executor.submit(self.pg_pool[rank].configure, after, "0", rank, self.WORLD_SIZE)
                for rank in range(self.WORLD_SIZE)
            ]
        )
        self._run_parallel("allreduce")


# Quorums: which of three replicas are members.
QUORUMS = ((0, 1, 2), (0, 1), (0, 1, 2), (1, 2), (0, 1, 2))


def meet(store, rank, size):
    """Waits for all ranks; rank 0, whose process has the store, until the others need it no more."""
    store.set(f"over/{rank}", b"1")
    store.wait([f"over/{other}" for other in range(size)])
    if rank > 0:
        store.set(f"left/{rank}", b"1")
    elif size > 1:
        store.wait([f"left/{other}" for other in range(1, size)])


def replica(rank, size, port, rounds):
    """Goes through all quorums; returns whether all sums were right, and the median time of a configure()."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    group = longhaul.torchft.ProcessGroupLonghaul(20 * SECOND, options())
    found, times = [], []
    for number in range(rounds):
        members = QUORUMS[number % len(QUORUMS)]
        store.set(f"ready/{number}/{rank}", b"1")
        if rank not in members:
            group.abort()
            continue
        began = time.monotonic()
        place = members.index(rank)
        address = f"127.0.0.1:{port}/torchft/{number}/0"
        group.configure(address, f"replica{rank}", place, len(members), number, 0, 1, list(members))
        times.append(time.monotonic() - began)
        assert group._configured.encryption == "full"
        for _ in range(5):
            tensor = torch.full((1000,), float(rank + 1))
            group.allreduce([tensor], dist.ReduceOp.SUM).wait()
            found.append(tensor[0].item() == sum(member + 1 for member in members))
        assert group.errored() is None
    group.shutdown()
    meet(store, rank, size)
    return all(found) and len(found) > 0, statistics.median(times)


def mortal(rank, size, port):
    """Rank 2 dies within an operation; the others agree on a smaller group and go on."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    group = longhaul.torchft.ProcessGroupLonghaul(20 * SECOND, options())
    group.configure(f"127.0.0.1:{port}/torchft/0/0", "", rank, size)
    began = time.monotonic()
    for step in range(1_000_000):
        if rank == size - 1 and step == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        try:
            group.allreduce([torch.ones(1 << 16)], dist.ReduceOp.SUM).wait()
        except longhaul.LonghaulError:
            break
    assert group.errored() is not None
    took = time.monotonic() - began
    group.configure(f"127.0.0.1:{port}/torchft/1/0", "", rank, size - 1)
    assert group.errored() is None
    tensor = torch.ones(10)
    group.allreduce([tensor], dist.ReduceOp.SUM).wait()
    group.shutdown()
    meet(store, rank, size - 1)
    return tensor[0].item(), took


def late_errors(rank, size, port):
    """Errors of a group that was replaced are not those of the next one."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
    group = longhaul.torchft.ProcessGroupLonghaul(20 * SECOND, options())
    group.configure(f"127.0.0.1:{port}/torchft/0/0", "", rank, size)
    wrap, held = group._wrap_work, []
    group._wrap_work = lambda work, opts: held.append((work, opts))  # as of a thread that is slow
    if rank == 0:
        group.allreduce([torch.ones(3)], dist.AllreduceOptions())
    group._wrap_work = wrap
    group.configure(f"127.0.0.1:{port}/torchft/1/0", "", rank, size)
    for work, opts in held:
        assert isinstance(work.exception(), longhaul.LonghaulError)
        wrap(work, opts)
    assert group.errored() is None, group.errored()
    group.allreduce([torch.ones(3)], dist.AllreduceOptions()).wait()
    if rank == 0:
        work = group.allreduce([torch.ones(3)], dist.AllreduceOptions())
        group._pg.abort()
        assert isinstance(work.exception(), longhaul.LonghaulError)
        assert isinstance(group.errored(), longhaul.LonghaulError)
    group.shutdown()
    meet(store, rank, size)


class Members(unittest.TestCase):
    def test_late_errors(self):
        ranks.run(late_errors, 2)

    def test_come_and_go(self):
        for right, median in ranks.run(replica, 3, 20):
            self.assertTrue(right)
            print(f"configure: {median * 1e3:.0f} ms (median)")

    def test_die(self):
        for total, took in ranks.run(mortal, 3, dies=(2,))[:2]:
            self.assertEqual(total, 2.0)
            self.assertLess(took, 20)  # far below the time limit; the bound of silence is 2 s
            print(f"a dead member is known after {took:.1f} s")


class TheirGloo(longhaul.torchft.ProcessGroupLonghaul):
    """In the place of their ProcessGroupGloo."""

    def __init__(self, *arguments, **named):
        super().__init__(30 * SECOND, options())


# Their tests of Manager, LocalSGD, DiLoCo and Streaming DiLoCo: replicas that die, come back and join.
for module in (manager_integ_test, local_sgd_integ_test):
    module.ProcessGroupGloo = TheirGloo


# They need a machine that is not busy: a quorum of theirs must be made within seconds.
def load_tests(loader, tests, pattern):
    if TRAINING:
        modules = (manager_integ_test, local_sgd_integ_test)
        return unittest.TestSuite(loader.loadTestsFromModule(module) for module in modules)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (Members, TheirGroup))


if __name__ == "__main__":
    TRAINING = sys.argv[1:] == ["training"]
    unittest.main(verbosity=2, argv=sys.argv[:1] if TRAINING else None)
