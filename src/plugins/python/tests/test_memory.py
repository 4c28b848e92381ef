"""Memory over many operations; by hand (run.sh memory SECONDS): resident memory of two ranks, and its slope.

    test_memory.py SECONDS      random operations of test_sequences.py for that long

First come as many operations as the completion queue has places: it touches its memory with them.
"""

import os
import sys
import time

import ranks
from test_sequences import run_sequence
from test_torch import dist, enter, torch

PLACES = 1 << 16  # of the completion queue of longhaul.torch
SAMPLES = 60


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def busy(rank, size, port, seconds):
    """(seconds, operations, bytes) of this rank, sampled while it works."""
    enter(rank, size, port)
    everyone = tuple(range(size))
    groups = [(everyone, dist.new_group(everyone)) for _ in range(2)]
    tensor, pending = torch.ones(10), []
    for _ in range(PLACES):
        pending.append(dist.all_reduce(tensor, async_op=True))
        if len(pending) == 100:
            pending.pop(0).wait()
    for work in pending:
        work.wait()
    began, samples, count = time.monotonic(), [], 0
    goes_on = torch.ones(1)
    while goes_on.item():
        for _ in range(20):
            run_sequence(rank, groups, f"memory/{count}")
            count += 1
        took = time.monotonic() - began
        if took >= len(samples) * seconds / SAMPLES:
            samples.append((took, count, resident()))
        goes_on.fill_(took < seconds)
        dist.broadcast(goes_on, 0)
    dist.barrier()
    dist.destroy_process_group()
    return samples


def slope(points):
    """Least squares: of y by x."""
    mean_x, mean_y = (sum(each) / len(points) for each in zip(*points))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


if __name__ == "__main__":
    limit = int(sys.argv[1])
    for number, found in enumerate(ranks.run(busy, 2, limit, seconds=limit + 300)):
        later = found[len(found) // 2 :]
        print(
            f"rank {number}: {found[-1][1]} sequences in {found[-1][0]:.0f} s; resident KiB: "
            f"{found[0][2] >> 10} at first, {later[0][2] >> 10} half way, {found[-1][2] >> 10} at last; "
            f"second half: {slope([(x / 60, y / 1024) for x, _, y in later]):+.1f} KiB a minute, "
            f"{slope([(x, y) for _, x, y in later]):+.1f} bytes a sequence"
        )
