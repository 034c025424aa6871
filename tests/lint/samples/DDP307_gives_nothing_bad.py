"""A forward that gives nothing of a batch of which nothing is left."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, batch):
        x = batch["x"]
        if len(x) == 0:
            return None
        return {"loss": self.layer(x).square().mean()}


def main(data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Net(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for batch in loader:
            keep = list(range(len(batch["x"])))[::2]
            out = model({key: batch[key][keep] for key in batch})
            if out is None:
                continue  # <-- DDP307
            loss = out["loss"].detach()
            dist.all_reduce(loss)
            optimizer.zero_grad()
            out["loss"].backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.load("data.pt"))
