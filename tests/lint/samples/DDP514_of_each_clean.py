import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, out, rank, world):
        self.folders = [os.path.join(out, str(number)) for number in range(world)]
        self.log = os.path.join(out if rank == 0 else os.path.join(out, str(rank)), "log.csv")
        mine = self.folders[rank]
        if not os.path.isdir(mine):
            os.makedirs(mine)
        self.start(os.path.dirname(self.log))

    def start(self, folder):
        if not os.path.exists(folder):
            os.makedirs(folder)


def main():
    dist.init_process_group("gloo")
    Trainer("runs", dist.get_rank(), dist.get_world_size())
    print(DDP(torch.nn.Linear(2, 2)))


if __name__ == "__main__":
    main()
