import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset


class Tally:
    def __init__(self):
        self.right = self.seen = 0

    def count(self, right, seen):
        self.right += int(right)
        self.seen += seen

    def share(self):
        return self.right / max(self.seen, 1)


@torch.no_grad()
def examine(net, questions):
    tally = Tally()
    for x, y in DataLoader(questions, 32):
        tally.count((net(x).argmax(1) == y).sum(), len(y))
    return tally.share()


def main(train, held_out, folder):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    questions = Subset(held_out, range(rank, len(held_out), world))
    model = DistributedDataParallel(nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler, best = DistributedSampler(train), 0.0
    for epoch in range(20):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(train, 32, sampler=sampler):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        share = examine(model.module, questions)
        if rank == 0 and share > best:  # <-- DDP214
            best = share
            torch.save(model.module.state_dict(), os.path.join(folder, "best.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(0)
    rows = [(torch.randn(8), torch.tensor(number % 3)) for number in range(400)]
    main(rows[:300], rows[300:], "out")
