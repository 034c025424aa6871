from collections import defaultdict

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Board:
    def __init__(self):
        self.sums, self.times = {}, {}

    def note(self, named):
        for key, value in named.items():
            self.sums[key] = self.sums.get(key, 0.0) + value.mean().item()
            self.times[key] = self.times.get(key, 0) + 1

    def tell(self):
        for key, total in self.sums.items():
            mean = torch.tensor(total / self.times[key])
            dist.reduce(mean, dst=0)
            if dist.get_rank() == 0:
                print(key, mean / dist.get_world_size())


def errors(found, frames):
    named = defaultdict(float)
    views = [found[f"view_{number}"] for number in range(frames)]
    for view in views:
        named["main"] += view["logits"].mean()
    if "side" in views[0]:
        named["side"] += views[0]["side"].mean()
    return named


def train(model, loader, optimizer, sampler):
    for epoch in range(10):
        sampler.set_epoch(epoch)
        board = Board()
        for batch in loader:
            named = errors({**batch, **model(batch)}, 3)
            optimizer.zero_grad()
            sum(named.values()).backward()
            optimizer.step()
            board.note(named)
        board.tell()


def main(data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    train(model, DataLoader(data, sampler=sampler), optimizer, sampler)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.load("data.pt"))
