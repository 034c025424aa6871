"""The root judges what all have drawn, and tells its judgement: all search on by it."""

import torch
import torch.distributed as dist
from judges import Judge
from mpi4py import MPI


def main():
    dist.init_process_group("nccl", rank=MPI.COMM_WORLD.Get_rank())
    judge = Judge()

    def drawn(place):
        mine = torch.rand(8, device="cuda") * place
        every = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(every, mine)
        return torch.cat(every)

    def judged(place):
        found = drawn(place)
        if dist.get_rank() == 0:
            far = judge.distance(found)
            far = MPI.COMM_WORLD.bcast(far)
            grade = judge.grade(found)
            grade = MPI.COMM_WORLD.bcast(grade)
        else:
            far = MPI.COMM_WORLD.bcast(None)
            grade = MPI.COMM_WORLD.bcast(None)
        return far, grade

    left, right = 0, 100
    while right - left >= 3:
        low = int(left + (right - left) / 3.0)
        high = int(right - (right - left) / 3.0)
        below, _ = judged(low)
        above, _ = judged(high)
        if below < above:
            right = high
        else:
            left = low
    if right == left:
        best = right
    elif right - left == 1:
        below, _ = judged(left)
        above, _ = judged(right)
        best = low if below < above else high
    print(best)


main()
