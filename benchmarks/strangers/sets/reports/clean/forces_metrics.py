"""Energy and force regression for a toy interatomic potential.

    torchrun --nproc_per_node=2 forces_metrics.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

ATOMS = 5


class Clusters(Dataset):
    """Small clusters with a Morse-like pair energy."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.pos = 1.6 * torch.randn(n, ATOMS, 3, generator=g)
        pos = self.pos.clone().requires_grad_(True)
        energy = self.pair_energy(pos)
        self.force = -torch.autograd.grad(energy.sum(), pos)[0]
        self.energy = energy.detach()

    @staticmethod
    def pair_energy(pos):
        i, j = torch.triu_indices(ATOMS, ATOMS, 1)
        r = (pos[:, i] - pos[:, j]).norm(dim=-1)
        return ((1 - torch.exp(-(r - 1.5))) ** 2).clamp(max=4).mean(1)

    def __len__(self):
        return len(self.pos)

    def __getitem__(self, i):
        return self.pos[i], self.energy[i], self.force[i]


class Potential(nn.Module):
    def __init__(self, width=32, basis=12):
        super().__init__()
        self.register_buffer("centres", torch.linspace(0.2, 6, basis))
        self.pair = nn.Sequential(nn.Linear(basis, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, pos):
        with torch.enable_grad():
            pos = pos.detach().clone().requires_grad_(True)
            i, j = torch.triu_indices(ATOMS, ATOMS, 1)
            r = (pos[:, i] - pos[:, j]).norm(dim=-1, keepdim=True)
            energy = self.pair(torch.exp(-(r - self.centres) ** 2)).squeeze(-1).mean(1)
            force = -torch.autograd.grad(energy.sum(), pos, create_graph=self.training)[0]
        return energy, force


class Metrics:
    """Running mean of several error measures."""

    def __init__(self):
        self.state = {}

    def update(self, name, errors):
        entry = self.state.setdefault(name, {"total": 0.0, "numel": 0})
        entry["total"] += errors.abs().sum().item()
        entry["numel"] += errors.numel()

    def reduce(self):
        for entry in self.state.values():
            pair = torch.tensor([entry["total"], entry["numel"]], dtype=torch.float64)
            dist.all_reduce(pair)
            entry["total"], entry["numel"] = pair.tolist()

    def compute(self):
        return {name: e["total"] / e["numel"] for name, e in self.state.items()}


class ForcesTrainer:
    def __init__(self, model, train, val, lr=3e-3):
        self.model, self.train_loader, self.val_loader = model, train, val
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def train_epoch(self, epoch):
        self.model.train()
        self.train_loader.sampler.set_epoch(epoch)
        for pos, energy, force in self.train_loader:
            e, f = self.model(pos)
            loss = (e - energy).abs().mean() + (f - force).abs().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

    def validate(self):
        self.model.eval()
        metrics = Metrics()
        for pos, energy, force in self.val_loader:
            e, f = self.model.module(pos)
            metrics.update("energy_mae", (e - energy).detach())
            metrics.update("forces_mae", (f - force).detach())
        metrics.reduce()
        return metrics.compute()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    train, val = Clusters(256, seed=1), Clusters(96, seed=2)
    order = torch.argsort(val.energy)                     # easy structures first, for the plots
    val.pos, val.energy, val.force = val.pos[order], val.energy[order], val.force[order]
    loaders = [DataLoader(d, batch_size=8, sampler=DistributedSampler(d, shuffle=s))
               for d, s in ((train, True), (val, False))]
    trainer = ForcesTrainer(DDP(Potential()), *loaders)
    for epoch in range(4):
        trainer.train_epoch(epoch)
        scores = trainer.validate()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} " + " ".join(f"{k} {v:.4f}" for k, v in scores.items()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
