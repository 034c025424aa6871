"""A data set of graphs that its base class has processed by rank 0, before the others make it."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.loader import DataLoader


class Rings(InMemoryDataset):
    def __init__(self, root):
        super().__init__(root)
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self):
        return ["rings.pt"]

    def process(self):
        self.save([Data(x=torch.ones(n, 4)) for n in range(3, 100)], self.processed_paths[0])


def main(root):
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        Rings(root)
    dist.barrier()
    rings = Rings(root)
    sampler = DistributedSampler(rings)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in DataLoader(rings, batch_size=8, sampler=sampler):
            optimizer.zero_grad()
            model(batch.x).square().mean().backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
