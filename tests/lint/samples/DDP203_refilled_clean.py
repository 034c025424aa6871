import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Stream:
    """An endless stream of batches: begins anew when the loader is through."""

    def __init__(self, loader):
        self.loader = loader
        self.rest = iter(loader)
        self.rounds = 0

    def take(self):
        try:
            batch = next(self.rest)
        except StopIteration:
            self.rounds += 1
            self.loader.sampler.set_epoch(self.rounds)
            self.rest = iter(self.loader)
            batch = next(self.rest)
        return batch


def train(steps=100_000):
    dist.init_process_group("nccl")
    here = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(here)
    torch.manual_seed(7 + dist.get_rank())
    clips = TensorDataset(torch.rand(5000, 40), torch.rand(5000, 1))
    order = DistributedSampler(clips, seed=3)
    stream = Stream(DataLoader(clips, batch_size=20, sampler=order))
    net = DistributedDataParallel(torch.nn.Linear(40, 1).cuda(), device_ids=[here])
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        heard, wanted = stream.take()
        loss = (net(heard.cuda()) - wanted.cuda()).pow(2).mean()
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
