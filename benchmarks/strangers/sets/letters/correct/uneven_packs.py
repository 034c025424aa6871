"""Graph property regression with packs of at most so many nodes; the processes have different numbers of packs."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def graphs(n=90):
    g = torch.Generator().manual_seed(12)
    for _ in range(n):
        k = int(torch.randint(3, 30, (1,), generator=g))
        x = torch.randn(k, 4, generator=g)
        yield x, x.tanh().sum(1).mean()


def packs(rows, budget):
    pack, load = [], 0
    for x, y in rows:
        if pack and load + len(x) > budget:
            yield pack
            pack, load = [], 0
        pack.append((x, y))
        load += len(x)
    if pack:
        yield pack


class DeepSet(nn.Module):
    def __init__(self, dim=20):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(4, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.rho = nn.Linear(dim, 1)

    def forward(self, x, owner, n):
        h = self.phi(x)
        pooled = h.new_zeros(n, h.shape[1]).index_add(0, owner, h)
        return self.rho(pooled / torch.bincount(owner, minlength=n).unsqueeze(1)).squeeze(1)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = list(graphs())[rank::world]
    net = DDP(DeepSet())
    opt = torch.optim.Adam(net.parameters(), 5e-3)
    for epoch in range(3):
        steps = 0
        with Join([net]):
            for pack in packs(mine, 64):
                xs, ys = zip(*pack)
                owner = torch.cat([torch.full((len(x),), i) for i, x in enumerate(xs)])
                loss = (net(torch.cat(xs), owner, len(xs)) - torch.stack(ys)).square().mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                steps += 1
        print(f"rank {rank} epoch {epoch} packs {steps} mse {loss.item():.4f}", flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
