"""A rank under mpirun: groups of mpi4py's communicators (run.sh mpi4py)."""

import os
import sys

import longhaul
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()


def check_sum(group, members):
    """A sum in each group, over vectors of their own."""
    vector = memoryview(bytearray(8 * 100_000)).cast("q")
    for i in range(0, len(vector), 1000):
        vector[i] = i + rank
    group.allreduce(vector, type="i64").wait()
    for i in range(0, len(vector), 1000):
        assert vector[i] == sum(i + member for member in members), (rank, i, vector[i])


def main():
    assert size >= 3, size
    os.environ["LONGHAUL_SITE"] = f"site{rank % 2}"
    with longhaul.from_mpi4py(world) as group:
        assert (group.rank, group.size) == (rank, size)
        assert group.encryption == "full", group.encryption
        assert group.sites == [f"site{r % 2}" for r in range(size)], group.sites
        check_sum(group, range(size))
    # The ranks in reverse order, in two communicators; the settings are those of Group().
    part = world.Split(rank % 2, -rank)
    with longhaul.from_mpi4py(part, site="here", timeout=20.0, device="udp:127.0.0.1") as group:
        assert group.rank == part.Get_rank()
        assert set(group.sites) == {"here"}
        check_sum(group, range(rank % 2, size, 2))
    # The leader of the other part: its highest rank.
    highest = size - 1
    leader = highest if highest % 2 != rank % 2 else highest - 1
    between = part.Create_intercomm(0, world, leader)
    try:
        longhaul.from_mpi4py(between)
    except ValueError as error:
        assert "intercommunicator" in str(error)
    else:
        raise AssertionError("a group of an intercommunicator")
    try:
        longhaul.from_mpi4py(world, insecure=rank == 1)
    except longhaul.LonghaulError as error:
        assert "encrypts" in str(error), error
    else:
        raise AssertionError("ranks that differ")
    try:
        longhaul.from_mpi4py(world, nonsense=1)
    except TypeError as error:
        assert "nonsense" in str(error)
    else:
        raise AssertionError("a setting that there is not")
    if rank == 0:
        print(f"{MPI.Get_library_version().split(chr(10))[0][:30]}: passed")


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:  # else the others wait for this rank
        print(f"rank {rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        world.Abort(1)
