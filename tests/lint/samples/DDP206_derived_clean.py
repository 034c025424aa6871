import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as Parallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Resumable:
    """Remembers how far it has come."""

    def __init__(self):
        self.order, self.position = None, None

    def state_dict(self):
        return {"order": self.order, "position": self.position}


class ResumableSampler(DistributedSampler, Resumable):
    def __init__(self, dataset, rank=None, num_replicas=None):
        super().__init__(dataset, num_replicas, rank, drop_last=True)
        self.deal()

    def deal(self):
        dice = torch.Generator().manual_seed(self.seed + self.epoch)
        every = torch.randperm(len(self.dataset), generator=dice).tolist()
        self.order = every[self.rank : self.total_size : self.num_replicas]
        self.position = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == len(self.order):
            self.epoch += 1
            self.deal()
            raise StopIteration
        self.position += 1
        return self.order[self.position - 1]


def run():
    dist.init_process_group("nccl")
    at = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    pairs = TensorDataset(torch.rand(999, 8), torch.rand(999))
    batches = DataLoader(pairs, 32, sampler=ResumableSampler(pairs))
    net = Parallel(torch.nn.Linear(8, 1).to(at), device_ids=[at])
    steps = torch.optim.AdamW(net.parameters())
    for _ in range(30):
        for given, wanted in batches:
            steps.zero_grad()
            torch.nn.functional.mse_loss(net(given.to(at))[:, 0], wanted.to(at)).backward()
            steps.step()


if __name__ == "__main__":
    run()
