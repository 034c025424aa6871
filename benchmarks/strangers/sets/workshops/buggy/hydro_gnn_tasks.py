# Multi-head graph regression for small molecules (energy, dipole, gap). Dense adjacency, GIN layers.
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

config = {
    "Architecture": {"hidden_dim": 32, "num_layers": 2, "heads": {"energy": 1, "dipole": 3, "gap": 1}, "task_weights": [1.0, 0.5, 0.5]},
    "Training": {"num_epoch": 6, "batch_size": 20, "lr": 5e-3, "patience": 2, "target_loss": 0.03},
    "Dataset": {"molecules": 400, "atoms": 9, "features": 6, "perc_train": 0.8},
}


def setup_ddp():
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))


class GIN(nn.Module):
    def __init__(self, arch, features):
        super().__init__()
        h = arch["hidden_dim"]
        dims = [features] + [h] * arch["num_layers"]
        self.convs = nn.ModuleList(nn.Sequential(nn.Linear(a, h), nn.ReLU(), nn.Linear(h, h)) for a, _ in zip(dims, dims[1:]))
        self.heads = nn.ModuleDict({k: nn.Linear(h, d) for k, d in arch["heads"].items()})

    def forward(self, x, adj):
        for conv in self.convs:
            x = F.relu(conv(x + adj @ x))
        g = x.mean(1)
        return [head(g) for head in self.heads.values()]


def make_molecules(d):
    g = torch.Generator().manual_seed(17)
    n, a = d["molecules"], d["atoms"]
    x = torch.randn(n, a, d["features"], generator=g)
    adj = (torch.rand(n, a, a, generator=g) < 0.3).float()
    adj = ((adj + adj.transpose(1, 2)) > 0).float() / a
    s = (adj @ x).mean(1)
    y = torch.cat([s.sum(1, keepdim=True).tanh(), s[:, :3], x.mean(1)[:, :1] ** 2], 1)
    return TensorDataset(x, adj, y)


def task_losses(pred, y, dims):
    return torch.stack([F.mse_loss(p, t) for p, t in zip(pred, y.split(dims, dim=1))])


def train(loader, model, opt, weights, dims):
    model.train()
    total_error, tasks_error = 0.0, torch.zeros(len(dims))
    for x, adj, y in loader:
        opt.zero_grad()
        tasks = task_losses(model(x, adj), y, dims)
        loss = (tasks * weights).sum()
        loss.backward()
        opt.step()
        total_error += loss.item() * len(y)
        tasks_error += tasks.detach() * len(y)
    return total_error / len(loader.dataset), tasks_error / len(loader.dataset)


@torch.no_grad()
def validate(loader, model, weights, dims):
    model.eval()
    sums = torch.zeros(2)
    for x, adj, y in loader:
        sums += torch.tensor([(task_losses(model(x, adj), y, dims) * weights).sum().item() * len(y), len(y)])
    dist.all_reduce(sums)
    return (sums[0] / sums[1]).item()


def main():
    world, rank = setup_ddp()
    torch.manual_seed(97)
    arch, tr = config["Architecture"], config["Training"]
    data = make_molecules(config["Dataset"])
    cut = int(len(data) * config["Dataset"]["perc_train"])
    parts = [TensorDataset(*(t[s] for t in data.tensors)) for s in (slice(0, cut), slice(cut, None))]
    loaders = [DataLoader(p, tr["batch_size"], sampler=DistributedSampler(p, world, rank, shuffle=i == 0)) for i, p in enumerate(parts)]
    model = DDP(GIN(arch, config["Dataset"]["features"]))
    opt = torch.optim.AdamW(model.parameters(), lr=tr["lr"])
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=tr["patience"])
    weights, dims = torch.tensor(arch["task_weights"]), list(arch["heads"].values())
    for epoch in range(tr["num_epoch"]):
        loaders[0].sampler.set_epoch(epoch)
        error, tasks = train(loaders[0], model, opt, weights, dims)
        both = torch.cat([torch.tensor([error]), tasks])
        dist.all_reduce(both)
        both /= world
        val = validate(loaders[1], model, weights, dims)
        sched.step(val)
        if rank == 0:
            print(f"Epoch {epoch}: train {both[0]:.4f} val {val:.4f} tasks {[round(v, 4) for v in both[1:].tolist()]}", flush=True)
        if both[0] < tr["target_loss"]:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
