"""GraphSAGE on a partitioned citation graph, one partition per process (python citation_parts.py)."""
import os
import random

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

FIELDS = 4          # research fields = node classes


def build_graph(nodes=400, dim=12, seed=5):
    """Nodes of one field cite each other more often. Returns features, labels, neighbour lists."""
    rnd = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    label = torch.tensor([rnd.choices(range(FIELDS), weights=(5, 3, 2, 2))[0] for _ in range(nodes)])
    feats = torch.randn(nodes, dim, generator=g)
    feats[:, :FIELDS] += 1.5 * F.one_hot(label, FIELDS)
    neigh = []
    for i in range(nodes):
        same = [j for j in rnd.sample(range(nodes), 40) if label[j] == label[i]]
        neigh.append((same + rnd.sample(range(nodes), 6))[:6])
    return feats, label, torch.tensor(neigh)


class Partition:
    """Nodes owned by one process: whole fields, so that most neighbours are local."""

    def __init__(self, label, rank, world):
        mine = torch.zeros_like(label, dtype=torch.bool)
        for field in range(rank, FIELDS, world):
            mine |= label == field
        nodes = torch.nonzero(mine).flatten()
        cut = int(0.8 * len(nodes))
        self.train_nodes, self.test_nodes = nodes[:cut], nodes[cut:]


class NodeBatches:
    def __init__(self, nodes, size, seed):
        self.nodes, self.size = nodes, size
        self.gen = torch.Generator().manual_seed(seed)

    def __len__(self):
        return (len(self.nodes) + self.size - 1) // self.size

    def __iter__(self):
        order = self.nodes[torch.randperm(len(self.nodes), generator=self.gen)]
        yield from order.split(self.size)


class Sage(nn.Module):
    def __init__(self, dim, hidden=24):
        super().__init__()
        self.own = nn.Linear(dim, hidden)
        self.others = nn.Linear(dim, hidden)
        self.out = nn.Linear(hidden, FIELDS)

    def forward(self, feats, neigh, nodes):
        h = self.own(feats[nodes]) + self.others(feats[neigh[nodes]].mean(1))
        return self.out(F.relu(h))


def train_epoch(model, graph, batches, opt):
    feats, label, neigh = graph
    seen = 0
    for nodes in batches:
        loss = F.cross_entropy(model(feats, neigh, nodes), label[nodes])
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += len(nodes)
    return seen, loss.item()


@torch.no_grad()
def accuracy(model, graph, nodes):
    feats, label, neigh = graph
    hit = (model.module(feats, neigh, nodes).argmax(1) == label[nodes]).sum()
    stats = torch.tensor([hit.item(), len(nodes)], dtype=torch.float64)
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def run(rank, world, epochs=3):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    graph = build_graph()
    part = Partition(graph[1], rank, world)
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(Sage(graph[0].shape[1]))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    batches = NodeBatches(part.train_nodes, size=16, seed=rank)
    for epoch in range(epochs):
        seen, loss = train_epoch(model, graph, batches, opt)
        dist.barrier()
        acc = accuracy(model, graph, part.test_nodes)
        if rank == 0:
            print(f"epoch {epoch}: {seen} nodes, loss {loss:.3f}, accuracy {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", str(random.randint(20000, 40000)))
    mp.spawn(run, args=(2,), nprocs=2)
