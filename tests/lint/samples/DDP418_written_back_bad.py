"""Each of many outputs is put under a name of its own numbers, and gathered by that."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.box = nn.Linear(4, 4)
        self.kind = nn.Linear(4, 2)

    def forward(self, x):
        found = []
        for _ in range(x.nonzero().shape[0]):
            x = self.box(x)
            found.append(
                {
                    "boxes": x,
                    "kinds": self.kind(x),
                    "left": x[:, 0],
                    "top": x[:, 1],
                    "right": x[:, 2],
                    "bottom": x[:, 3],
                }
            )
        last = found[-1]
        for name in ("left", "top", "right", "bottom", "kinds", "boxes"):
            last[f"{name} {int(x.sum())}"] = last[name]
        return {"last": last, "others": found[:-1]}


def gathered(parts):
    found = {}
    for name in parts:  # <-- DDP418
        if isinstance(parts[name], torch.Tensor):
            parts[name] = parts[name].contiguous()
            every = [torch.empty_like(parts[name]) for _ in range(dist.get_world_size())]
            dist.all_gather(every, parts[name])
            found[name] = torch.cat(every)
    return found


def test(model, loader):
    for batch in loader:
        outputs = model(batch["points"].cuda())
        outputs["last"] = gathered(outputs["last"])
        print(outputs["last"]["boxes"].mean())


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(Boxes().cuda())
    data = torch.load("scenes.pt", map_location="cpu")
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
    with torch.no_grad():
        test(model, loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
