from dataclasses import dataclass
from pathlib import Path
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from packer import NodeBudgetSampler


@dataclass
class Conf:
    graphs: int = 150
    budget: int = 90
    epochs: int = 4
    hidden: int = 24
    lr: float = 5e-3


def synth(n):
    g = torch.Generator().manual_seed(77)
    out = []
    for _ in range(n):
        k = int(torch.randint(4, 40, (1,), generator=g))
        x = torch.randn(k, 5, generator=g)
        adj = (torch.rand(k, k, generator=g) < 3 / k).float()
        adj = ((adj + adj.t()) > 0).float()
        y = (adj @ x).tanh().mean(0)[:1]
        out.append((x, adj, y))
    return out


def stack(rows):
    xs, adjs, ys = zip(*rows)
    owner = torch.cat([torch.full((len(x),), i) for i, x in enumerate(xs)])
    return torch.cat(xs), torch.block_diag(*adjs), owner, torch.stack(ys)


class GCN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.a = nn.Linear(5, hidden)
        self.b = nn.Linear(hidden, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, adj, owner, n):
        norm = adj / adj.sum(1, keepdim=True).clamp(min=1)
        h = torch.relu(self.a(x) + norm @ self.a(x))
        h = torch.relu(self.b(h) + norm @ self.b(h))
        pooled = h.new_zeros(n, h.shape[1]).index_add(0, owner, h)
        sizes = torch.bincount(owner, minlength=n).clamp(min=1).unsqueeze(1)
        return self.head(pooled / sizes)


def main(conf=Conf()):
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(5)
    graphs = synth(conf.graphs)
    packs = NodeBudgetSampler([len(g[0]) for g in graphs], conf.budget)
    loader = DataLoader(graphs, batch_sampler=packs, collate_fn=stack)
    net = DDP(GCN(conf.hidden))
    opt = torch.optim.Adam(net.parameters(), conf.lr)
    where = Path(tempfile.gettempdir()) / "graph_pack.pt"
    for epoch in range(conf.epochs):
        packs.set_epoch(epoch)
        steps = 0
        for x, adj, owner, y in loader:
            loss = (net(x, adj, owner, len(y)) - y).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        print(f"rank {dist.get_rank()} epoch {epoch} steps {steps} mse {loss.item():.4f}", flush=True)
        dist.barrier()
        if dist.get_rank() == 0:
            torch.save(net.module.state_dict(), where)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
