"""Steps on patches of a mosaic: as many as are wanted, of those that show enough."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def patch(mosaic, source):
    top, left = torch.randint(0, 96, (2,), generator=source).tolist()
    return mosaic[top : top + 32, left : left + 32]


def main(wanted=200):
    dist.init_process_group("gloo")
    mosaic = torch.rand(128, 128, generator=torch.Generator().manual_seed(5))
    source = torch.Generator().manual_seed(dist.get_rank())
    model = DistributedDataParallel(nn.Linear(32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    done = tried = 0
    while done < wanted:
        seen = patch(mosaic, source)
        if seen.std().item() > 0.2:
            optimizer.zero_grad()
            (model(seen) - seen).square().mean().backward()
            optimizer.step()
            done = done + 1
        tried = tried + 1
    if dist.get_rank() == 0:
        print(tried, "patches")


if __name__ == "__main__":
    main()
