import numpy as np
import torch
import torch.distributed as dist

from mining import Neighbours


class MemoryBank(torch.nn.Module):
    def __init__(self, entries, size):
        super().__init__()
        self.rank = dist.get_rank()
        self.is_spread = dist.get_world_size() > 1
        self.register_buffer("entries", torch.zeros(entries, size))

    def mine(self):
        nearest = np.zeros((len(self.entries), 8)).astype(int)
        if not self.is_spread or self.is_spread and self.rank == 0:
            nearest = Neighbours(self.entries).search()
        if nearest is not None:
            self.nearest = torch.from_numpy(nearest.astype(np.int64)).cuda()
            if self.is_spread:
                dist.broadcast(self.nearest, 0)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    bank = MemoryBank(1000, 128).cuda()
    bank.mine()
