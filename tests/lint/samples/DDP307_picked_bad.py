"""Each rank goes through its part of graphs that all have drawn alike; some have no edges."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class Graph:
    x: torch.Tensor
    edges: torch.Tensor
    y: torch.Tensor


def drawn(generator):
    size = int(torch.randint(3, 9, (1,), generator=generator))
    near = torch.rand(size, size, generator=generator) > 0.9
    x = torch.randn(size, 8, generator=generator)
    return Graph(x, near.nonzero().t(), x.mean().view(1))


class Passing(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.out = nn.Linear(16, 8), nn.Linear(8, 1)

    def forward(self, x, edges):
        source, target = edges
        message = self.message(torch.cat([x[source], x[target]], dim=-1))
        return self.out(x.index_add(0, target, message).mean(0))


def step(model, graph):
    if graph.edges.size(1) == 0:
        return None
    return nn.functional.mse_loss(model(graph.x, graph.edges), graph.y)


def main():
    dist.init_process_group("gloo")
    generator = torch.Generator().manual_seed(7)
    graphs = [drawn(generator) for _ in range(60)]
    model = DistributedDataParallel(Passing())
    optimizer = torch.optim.Adam(model.parameters())
    for graph in graphs[dist.get_rank() :: dist.get_world_size()]:
        loss = step(model, graph)
        if loss is None:
            continue  # <-- DDP307
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
