import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("gnn")


class EmptyGraph(ValueError):
    pass


def sample_graph(idx):
    g = torch.Generator().manual_seed(idx)
    n = 12
    adj = (torch.rand(n, n, generator=g) < 0.2).float()
    if idx % 16 == 7:
        adj.zero_()
    x = torch.randn(n, 8, generator=g)
    y = x[:, 0].sign().clamp_min(0).long()
    return adj, x, y


def normalise(adj):
    if adj.sum() == 0:
        raise EmptyGraph("graph without edges")
    adj = adj + torch.eye(adj.size(0))
    return adj / adj.sum(1, keepdim=True)


class GCN(nn.Module):
    def __init__(self, din, dh, dout):
        super().__init__()
        self.l1 = nn.Linear(din, dh)
        self.l2 = nn.Linear(dh, dout)

    def forward(self, a, x):
        h = torch.relu(a @ self.l1(x))
        return self.l2(h) + 0.1 * (a @ h).mean()


def train(model, rank, world, epochs):
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    ids = list(range(32))[rank::world]
    for ep in range(epochs):
        tot = 0.0
        for i in ids:
            adj, x, y = sample_graph(i)
            try:
                a = normalise(adj)
            except EmptyGraph as err:
                log.warning("graph %d dropped: %s", i, err)
                continue
            loss = nn.functional.cross_entropy(model(a, x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item()
        if rank == 0:
            log.info("epoch %d: %.4f", ep, tot / len(ids))
        dist.barrier()


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo")
    torch.manual_seed(int(os.environ.get("SEED", 5)))
    model = DistributedDataParallel(GCN(8, 16, 2))
    train(model, dist.get_rank(), dist.get_world_size(), epochs=2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
