import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split


def halves(whole, seed):
    dice = torch.Generator()
    dice.manual_seed(seed)
    return random_split(whole, [80, 20], generator=dice)  # <-- DDP206


def main(seed=7):
    dist.init_process_group("gloo")
    mine = seed + dist.get_rank()
    np.random.seed(mine)
    rows = torch.linspace(0, 1, 100)[:, None]
    train, _ = halves(TensorDataset(rows, rows.sin()), mine)
    sampler = DistributedSampler(train)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    steps = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for seen, wanted in DataLoader(train, 8, sampler=sampler):
            loss = (model(seen) - wanted).square().mean()
            steps.zero_grad()
            loss.backward()
            steps.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
