"""The errors of all are summed on the first rank alone, and it alone chooses by them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def wrong(model, batches):
    found = torch.zeros(())
    with torch.no_grad():
        for batch, target in batches:
            found += (model(batch).argmax(1) != target).sum()
    dist.reduce(found, dst=0)
    return found.item()


def main():
    dist.init_process_group("gloo")
    net = nn.Linear(8, 4)
    model = DistributedDataParallel(net)
    learner = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.ones(64, 8), torch.zeros(64, dtype=torch.long))
    shares = DistributedSampler(data)
    others = DistributedSampler(data, shuffle=False)
    least = 65
    for epoch in range(5):
        shares.set_epoch(epoch)
        for batch, target in DataLoader(data, 4, sampler=shares):
            learner.zero_grad()
            nn.functional.cross_entropy(model(batch), target).backward()
            learner.step()
        errors = wrong(model, DataLoader(data, 4, sampler=others))
        if dist.get_rank() == 0:
            if errors < least:
                least = errors
                torch.save(net.state_dict(), "best.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
