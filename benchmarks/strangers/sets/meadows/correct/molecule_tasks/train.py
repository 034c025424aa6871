"""Graph network with one head per property; a step trains the property of its turn."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from graphs import molecules


class GraphNet(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.atom = nn.Embedding(4, dim)
        self.msg = nn.Linear(dim, dim)
        self.heads = nn.ModuleDict({"mass": nn.Linear(dim, 1), "degree": nn.Linear(dim, 1)})

    def forward(self, kind, link, task):
        h = self.atom(kind)
        for _ in range(2):
            h = torch.relu(h + link @ self.msg(h) / 4)
        return self.heads[task](h.mean(1)).squeeze(-1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    kind, link, mass, degree = (t[rank::world] for t in molecules(240))
    target = {"mass": mass, "degree": degree}
    model = DDP(GraphNet(), find_unused_parameters=True)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    turns = torch.Generator().manual_seed(0)
    gen = torch.Generator().manual_seed(rank)
    names = sorted(target)
    recent = {}
    for step in range(48):
        task = names[int(torch.randint(0, 2, (1,), generator=turns))]
        idx = torch.randint(0, len(mass), (16,), generator=gen)
        loss = nn.functional.mse_loss(model(kind[idx], link[idx], task), target[task][idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        recent[task] = loss.item()
        if rank == 0 and step % 16 == 15:
            print(step, {k: round(v, 4) for k, v in recent.items()}, flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
