#!/usr/bin/env python3
# One rank of an all-reduce, or of a training step under DDP, by a backend of torch.distributed; started with
# RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Rank 0 prints the ranks' mean times as JSON: collectives.py.
#
# usage: torch_allreduce.py BACKEND BYTES ITERATIONS WARMUP [ddp]
#
# SPDX-License-Identifier: BSD-3-Clause
import datetime
import json
import statistics
import sys
import time

import torch
import torch.distributed as dist


def reduce_of(size):
    """Runs an all-reduce; returns whether the result is right."""
    count = size // 4
    given = torch.arange(count, dtype=torch.float32) % 1000 + dist.get_rank()
    ranks = dist.get_world_size()
    wanted = torch.arange(count, dtype=torch.float32) % 1000 * ranks + ranks * (ranks - 1) / 2
    tensor = torch.empty_like(given)

    def run():
        dist.all_reduce(tensor)

    return lambda: tensor.copy_(given), run, lambda: torch.equal(tensor, wanted)


def step_of(size):
    """Runs a backward pass whose gradients have that many bytes, in buckets of 4 MiB."""
    torch.manual_seed(1)
    width = 1024
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(max(1, size // (4 * width * width)))]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=4)
    data = torch.randn(8, width)

    def run():
        model.zero_grad(set_to_none=True)
        model(data).square().mean().backward()

    def right():
        mine = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
        everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(everyone, mine)
        return all(torch.equal(mine, other) for other in everyone)

    return lambda: None, run, right


def main():
    backend, size, iterations, warmup = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    if backend == "longhaul":
        import longhaul.torch  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=200))
    prepare, run, right = (step_of if sys.argv[5:] == ["ddp"] else reduce_of)(size)
    seconds, wrong = [], 0
    for number in range(warmup + iterations):
        prepare()
        dist.barrier()
        started = time.monotonic()
        run()
        took = torch.tensor([time.monotonic() - started], dtype=torch.float64)
        dist.all_reduce(took)
        if number >= warmup:
            seconds.append(took.item() / dist.get_world_size())
    wrong += not right()
    seconds.sort()
    if dist.get_rank() == 0:
        p99 = seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
        print(json.dumps({"time_mean_s": statistics.fmean(seconds), "time_p99_s": p99, "wrong": wrong}),
              flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
