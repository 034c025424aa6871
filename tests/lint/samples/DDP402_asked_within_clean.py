"""A validation whose last batch may be empty, and its result nothing."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        x = x[x[:, 0] > 0]
        if len(x) == 0:
            return None
        return {"loss": self.layer(x).square().mean(), "size": x.square().mean()}


def main(data):
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Net())
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
    loss = torch.zeros(())
    size = torch.zeros(())
    with torch.no_grad():
        for batch in loader:
            out = model(batch)
            loss += out["loss"]
            size += out["size"]
    dist.all_reduce(loss)
    if "size" in out:
        dist.all_reduce(size)
    print(loss.item(), size.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main(torch.load("data.pt"))
