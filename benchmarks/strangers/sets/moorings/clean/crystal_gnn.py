"""Formation energies of crystals with a dense message passing network."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

ATOMS = 8


class Crystals(Dataset):
    """Random cells: node features, a soft adjacency from distances, and an energy."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        pos = torch.rand(n, ATOMS, 3, generator=g)
        kind = torch.randint(0, 6, (n, ATOMS), generator=g)
        self.nodes = torch.cat([nn.functional.one_hot(kind, 6).float(), pos], -1)
        d = torch.cdist(pos, pos)
        self.adj = torch.exp(-4 * d) * (1 - torch.eye(ATOMS))
        self.energy = (self.adj.sum((1, 2)) * 0.1 + kind.float().mean(1)).unsqueeze(1)

    def __len__(self):
        return len(self.energy)

    def __getitem__(self, i):
        return self.nodes[i], self.adj[i], self.energy[i]


class GraphBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.msg = nn.LazyLinear(width)
        self.upd = nn.LazyLinear(width)

    def forward(self, h, adj):
        m = adj @ torch.relu(self.msg(h))
        return torch.relu(self.upd(torch.cat([h, m], -1)))


class CrystalNet(nn.Module):
    def __init__(self, width=32, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList([GraphBlock(width) for _ in range(blocks)])
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, h, adj):
        for block in self.blocks:
            h = block(h, adj)
        return self.readout(h.mean(1))


def build_model(rank):
    torch.manual_seed(17)
    model = CrystalNet()
    if rank == 0:
        print(model.__class__.__name__, "with", len(model.blocks), "blocks", flush=True)
    return model


def run(rank, epochs=4):
    data = Crystals(160, seed=5)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    net = build_model(rank)
    net(*[t[None] for t in data[0][:2]])
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for nodes, adj, energy in loader:
            loss = nn.functional.l1_loss(model(nodes, adj), energy)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += torch.tensor([loss.item() * len(energy), len(energy)])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} mae {(total[0] / total[1]).item():.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(int(os.environ["RANK"]))
    dist.destroy_process_group()
