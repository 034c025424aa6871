# A second model that rank 0 alone fills and exports: no rank trains or asks the others' copies.
import os

import loaders
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        return self.last(self.first(x).relu())


def export(model, weights, path):
    model.load_state_dict(torch.load(weights, map_location="cpu"))
    model.eval()
    torch.onnx.export(model, torch.zeros(1, 64), path)


def make(size):
    if size == "tiny":
        return Net(16)
    elif size == "small":
        return Net(32)
    elif size == "base":
        return Net(64)
    elif size == "large":
        return Net(128)
    elif size == "huge":
        return Net(256)
    raise ValueError(size)


class Keeper:
    def __init__(self, rank, folder):
        self.rank = rank
        self.folder = folder

    def __call__(self, epoch, trained, spare):
        if self.rank == 0:
            weights = os.path.join(self.folder, f"net_{epoch}.pt")
            torch.save(trained.module.state_dict(), weights)
            export(spare, weights, os.path.join(self.folder, f"net_{epoch}.onnx"))


def main():
    loader, folder, size = loaders.training(), os.environ["OUTPUT"], os.environ["SIZE"]
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = DDP(make(size).cuda(), device_ids=[device])
    spare = make(size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    keep = Keeper(dist.get_rank(), folder)
    for epoch in range(20):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        keep(epoch, model, spare)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
