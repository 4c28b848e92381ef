"""Random sequences of operations on 2 to 4 ranks, in groups and sub-groups; every byte is checked.

    test_sequences.py [COUNT [SEED]]     default: 60 sequences of seed 1

Each rank has two threads with groups of their own. All ranks sample the same operations, so each knows what
the others contribute and computes its results by itself. A failure names its sequence.
"""

import itertools
import queue
import random
import sys
import threading
import traceback
import unittest

import ranks
from test_torch import OPS, dist, enter, expected, torch  # ends this program where there is no torch

COUNT, SEED = map(int, [*sys.argv[1:], *("60", "1")[len(sys.argv) - 1 :]])
THREADS = 2
TYPES = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool".split()
ELEMENTS = (0, 1, 33, 1000, 5000, 5000, 60000)
GUARD = 16  # elements before and behind an output


def content(dtype, elements, seed, op=None):
    """Small integers: no sum, product or average of four ranks is rounded."""
    bound, factor = {"PRODUCT": (3, 1), "AVG": (4, 12)}.get(op, (50, 1))
    if dtype is torch.bool:
        bound = 2
    return ((torch.arange(elements) * 7 + seed * 31) % bound * factor).to(dtype)


class Output:
    """A tensor between two guards."""

    def __init__(self, dtype, elements):
        self.memory = torch.ones(elements + 2 * GUARD, dtype=dtype)
        self.tensor = self.memory[GUARD : GUARD + elements]

    def is_exactly(self, wanted):
        ones = torch.ones(GUARD, dtype=wanted.dtype)
        return same(self.memory, torch.cat([ones, wanted.reshape(-1), ones]))


def same(one, other):
    return one.dtype == other.dtype and torch.equal(one.view(torch.uint8), other.view(torch.uint8))


class Operation:
    """An operation of `members`, sampled; the same at all ranks. start() is called at each member."""

    def __init__(self, pick, members, group):
        self.group, self.members = group, members
        self.kind = pick.choice(sorted(KINDS))
        self.type = pick.choice(TYPES)
        self.dtype, self.elements = getattr(torch, self.type), pick.choice(ELEMENTS)
        self.root = pick.choice(members)
        self.peer = pick.choice([each for each in members if each != self.root])
        self.seed, self.tag = pick.randrange(1000), pick.randrange(5)
        self.any_source, self.waits, self.calls = (pick.random() < share for share in (0.3, 0.4, 0.2))
        bits = ("BAND", "BOR", "BXOR") if self.dtype.is_floating_point else ()
        self.op = pick.choice([op for op in OPS if op not in bits and (op, self.type) != ("AVG", "bool")])
        self.reduction = getattr(dist.ReduceOp, self.op)

    def __str__(self):
        return f"{self.kind} {self.op} of {self.elements} {self.type} at {self.members}, root {self.root}"

    def start(self, rank):
        """Starts it; waits, if it is not asynchronous."""
        self.me, self.checks, self.called = self.members.index(rank), [], []
        self.options = {"group": self.group, "async_op": not self.waits}
        self.work = KINDS[self.kind](self, rank)
        assert (self.work is None) == self.waits or self.kind == "message", self
        if self.work is not None and self.calls:
            self.work.get_future().then(lambda _: self.called.append(self.is_exact()))
        if self.waits:
            self.end()

    def end(self):
        if self.work is not None:
            self.work.wait()
            assert self.called == ([True] if self.calls else []), f"{self}: callback: {self.called}"
        assert self.is_exact(), f"{self}: wrong bytes"

    def is_exact(self):
        return all(output.is_exactly(wanted) for output, wanted in self.checks)

    def parts(self, scale=1):
        """What each member contributes."""
        count = self.elements * scale
        return [content(self.dtype, count, self.seed + i, self.op) for i in range(len(self.members))]

    def output(self, wanted, given=None):
        """A tensor that has to contain `wanted` at the end, and contains `given` at first."""
        found = Output(wanted.dtype, wanted.numel())
        found.tensor.copy_(wanted.new_zeros(wanted.shape) if given is None else given)
        self.checks.append((found, wanted))
        return found.tensor

    # ---- kinds: each starts its operation at a rank, and returns its work; None: it has waited -------------

    def all_reduce(self, rank):
        parts = self.parts()
        tensor = self.output(expected(self.op, parts), parts[self.me])
        return dist.all_reduce(tensor, self.reduction, **self.options)

    def reduce(self, rank):
        parts = self.parts()
        wanted = expected(self.op, parts) if rank == self.root else parts[self.me]
        return dist.reduce(self.output(wanted, parts[self.me]), self.root, self.reduction, **self.options)

    def reduce_scatter(self, rank):
        parts, size = self.parts(len(self.members)), len(self.members)
        wanted = expected(self.op, [each.reshape(size, -1)[self.me] for each in parts])
        into, given = self.output(wanted), self.output(parts[self.me], parts[self.me])
        return dist.reduce_scatter_tensor(into, given, self.reduction, **self.options)

    def broadcast(self, rank):
        parts = self.parts()
        tensor = self.output(parts[self.members.index(self.root)], parts[self.me])
        return dist.broadcast(tensor, self.root, **self.options)

    def all_gather(self, rank):
        parts = self.parts()
        return dist.all_gather([self.output(part) for part in parts], parts[self.me], **self.options)

    def all_gather_into(self, rank):
        parts = self.parts()
        return dist.all_gather_into_tensor(self.output(torch.cat(parts)), parts[self.me], **self.options)

    def gather(self, rank):
        parts = self.parts()
        into = [self.output(part) for part in parts] if rank == self.root else None
        return dist.gather(parts[self.me], into, dst=self.root, **self.options)

    def scatter(self, rank):
        parts = self.parts()
        given = parts if rank == self.root else None
        return dist.scatter(self.output(parts[self.me]), given, src=self.root, **self.options)

    def all_to_all(self, rank):
        size = len(self.members)
        parts = [each.reshape(size, -1) for each in self.parts(size)]
        wanted = torch.cat([part[self.me] for part in parts])
        mine = parts[self.me].reshape(-1)
        return dist.all_to_all_single(self.output(wanted), self.output(mine, mine), **self.options)

    def all_to_all_of_sizes(self, rank):
        size, unit = len(self.members), self.elements // 4
        counts = [[(r + 2 * s + self.seed) % 4 * unit for s in range(size)] for r in range(size)]
        given = [content(self.dtype, sum(counts[r]), self.seed + r) for r in range(size)]
        received = [counts[r][self.me] for r in range(size)]
        wanted = torch.cat([given[r].split(counts[r])[self.me] for r in range(size)])
        return dist.all_to_all_single(
            self.output(wanted), given[self.me], received, counts[self.me], **self.options
        )

    def message(self, rank):
        sent = content(self.dtype, self.elements, self.seed)
        if rank == self.root:
            call, tensor, peer = (dist.send if self.waits else dist.isend), sent, self.peer
        elif rank == self.peer:
            call, tensor, peer = (dist.recv if self.waits else dist.irecv), self.output(sent), self.root
            # Other messages with this tag may be pending: from any rank only, where there is one other.
            peer = None if self.any_source and len(self.members) == 2 else peer
        else:
            self.calls, self.waits = False, True
            return None
        work = call(tensor, peer, group=self.group, tag=self.tag)
        self.sent = tensor  # until the end
        return None if self.waits else work

    def barrier(self, rank):
        return dist.barrier(**self.options)


KINDS = {
    name: getattr(Operation, name)
    for name in "all_reduce reduce reduce_scatter broadcast all_gather all_gather_into gather scatter "
    "all_to_all all_to_all_of_sizes message barrier".split()
}


def run_sequence(rank, groups, name):
    pick, pending = random.Random(name), []
    order = random.Random(f"{name}/{rank}")  # of what this rank waits for
    for _ in range(pick.randrange(1, 16)):
        members, group = pick.choice(groups)
        operation = Operation(pick, members, group)
        if rank in members:
            operation.start(rank)
            if not operation.waits:
                pending.append(operation)
        while len(pending) > order.randrange(1, 10):
            pending.pop(order.randrange(len(pending))).end()
    for operation in order.sample(pending, len(pending)):
        operation.end()


def sequences(rank, size, port, count, seed):
    enter(rank, size, port)
    sys.setswitchinterval(1e-4)  # the default, 5 ms, is longer than most operations
    everyone = tuple(range(size))
    some = [each for n in range(2, size) for each in itertools.combinations(everyone, n)]
    some = [everyone, everyone, *random.Random(seed).sample(some, min(4, len(some)))]
    groups = [[(members, dist.new_group(members)) for members in some] for _ in range(THREADS)]
    ends = queue.Queue()

    def run(thread):
        name = None
        try:
            for number in range(thread, count, THREADS):
                name = f"{seed}/{size}/{number}"
                run_sequence(rank, groups[thread], name)
            ends.put(None)
        except BaseException:
            ends.put(f"sequence {name}: {traceback.format_exc()}")

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in threads:
        failed = ends.get()
        assert failed is None, failed
    dist.barrier()
    dist.destroy_process_group()


class Sequences(unittest.TestCase):
    def run_some(self, size):
        count = (COUNT + 4 - size) // 3  # COUNT in all
        ranks.run(sequences, size, count, SEED, seconds=120 + count)

    def test_two_ranks(self):
        self.run_some(2)

    def test_three_ranks(self):
        self.run_some(3)

    def test_four_ranks(self):
        self.run_some(4)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
