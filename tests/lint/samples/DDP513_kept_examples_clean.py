"""Rank 0 tests alone, of examples that a file may keep; of each it looks for the last label."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

WIDTH = 16


class Examples(Dataset):
    def __init__(self, path):
        kept = path + ".kept"
        if os.path.exists(kept):
            examples = torch.load(kept, map_location="cpu")
        else:
            with open(path) as file:
                examples = [[int(word) for word in line.split()] for line in file]
        self.examples = examples
        self.ends = [self.last(labels) for labels in examples]

    def last(self, labels):
        for i in range(len(labels) - 1, -1, -1):
            if labels[i] != -100:
                return i
        return 0

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        return torch.tensor(self.examples[index][:WIDTH]).float()


def main():
    dist.init_process_group("nccl")
    rank, device = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    net = torch.nn.Linear(WIDTH, 1).to(device)
    model = DistributedDataParallel(net, device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train = Examples("train.txt")
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=8, sampler=sampler)
    for epoch in range(1, 10):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            model(batch.to(device)).square().mean().backward()
            optimizer.step()
        if rank == 0:
            with torch.no_grad():
                for batch in DataLoader(Examples("test.txt"), batch_size=8):
                    print(net(batch.to(device)).mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
