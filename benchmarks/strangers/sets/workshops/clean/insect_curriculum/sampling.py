"""Hard example curriculum: half of an epoch goes to the images with the highest running loss."""
import torch
import torch.distributed as dist
from torch.utils.data import Sampler


class HardnessSampler(Sampler):
    def __init__(self, n, share, rank, world, seed=0):
        self.own = torch.arange(rank, n - n % world, world)
        self.share, self.seed, self.epoch = share, seed + rank, 0
        self.hardness = torch.full((len(self.own),), 10.0)
        self.n, self.rank, self.world = n, rank, world

    def __len__(self):
        return len(self.own)

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed * 1000 + self.epoch)
        k = int(len(self) * self.share)
        hard = self.hardness.topk(k).indices
        rest = torch.randint(len(self), (len(self) - k,), generator=g)
        order = torch.cat([hard, rest])
        return iter(self.own[order[torch.randperm(len(order), generator=g)]].tolist())

    def update(self, index, loss):
        slot = (index - self.rank) // self.world
        self.hardness[slot] = 0.7 * self.hardness[slot] + 0.3 * loss

    def state_dict(self):
        """The hardness of all images, whatever the number of ranks after a restart."""
        parts = [torch.empty_like(self.hardness) for _ in range(self.world)]
        dist.all_gather(parts, self.hardness)
        return {"epoch": self.epoch, "hardness": torch.stack(parts, 1).flatten()}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]
        self.hardness = state["hardness"][self.rank::self.world].clone()
