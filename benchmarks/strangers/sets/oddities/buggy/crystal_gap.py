"""Band gaps of random crystals from graph features; several heads, each with its own error in the report."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

HEADS = {"gap": 1.0, "energy": 0.5}
VERBOSE = int(os.environ.get("VERBOSE", "1"))


class Crystals(Dataset):
    def __init__(self, n, seed, atoms=12):
        g = torch.Generator().manual_seed(seed)
        self.pos = torch.rand(n, atoms, 3, generator=g)
        self.z = torch.randint(0, 5, (n, atoms), generator=g)
        d = torch.cdist(self.pos, self.pos)
        self.gap = d.mean((1, 2)) * 4 + 0.2 * self.z.float().mean(1)
        self.energy = -self.z.float().sum(1) / 10 + d.amin(2).mean(1)

    def __len__(self):
        return len(self.z)

    def __getitem__(self, i):
        return self.z[i], self.pos[i], {"gap": self.gap[i], "energy": self.energy[i]}


class CrystalNet(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.emb = nn.Embedding(5, dim)
        self.msg = nn.Linear(dim + 1, dim)
        self.heads = nn.ModuleDict({k: nn.Linear(dim, 1) for k in HEADS})

    def forward(self, z, pos):
        h = self.emb(z)
        d = torch.cdist(pos, pos)
        near = torch.softmax(-4 * d, -1)
        h = torch.relu(self.msg(torch.cat([near @ h, d.mean(-1, keepdim=True)], -1))).mean(1)
        return {k: head(h).squeeze(-1) for k, head in self.heads.items()}


def reduce_across(values):
    dist.all_reduce(values)
    return values / dist.get_world_size()


def run_epoch(net, loader, opt=None):
    net.train(opt is not None)
    total, per_head = torch.zeros(1), torch.zeros(len(HEADS))
    for z, pos, target in loader:
        with torch.set_grad_enabled(opt is not None):
            out = net(z, pos)
            errs = [nn.functional.mse_loss(out[k], target[k]) for k in HEADS]
            loss = sum(w * e for w, e in zip(HEADS.values(), errs))
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.detach() * len(z)
        per_head += torch.stack([e.detach() for e in errs]) * len(z)
    n = len(loader.dataset)
    return reduce_across(total / n).item(), reduce_across(per_head / n).tolist()


def loader_for(ds, train):
    sampler = DistributedSampler(ds, shuffle=train)
    return DataLoader(ds, batch_size=16, sampler=sampler), sampler


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    train, sampler = loader_for(Crystals(192, 1), True)
    val, _ = loader_for(Crystals(64, 2), False)
    net = DistributedDataParallel(CrystalNet())
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1, threshold=0.02)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        tr, _ = run_epoch(net, train, opt)
        va, heads = run_epoch(net, val)
        plateau.step(va)
        if dist.get_rank() == 0 and VERBOSE:
            named = ", ".join(f"{k} {v:.4f}" for k, v in zip(HEADS, heads))
            print(f"epoch {epoch} train {tr:.4f} val {va:.4f} ({named}) lr {opt.param_groups[0]['lr']:g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
