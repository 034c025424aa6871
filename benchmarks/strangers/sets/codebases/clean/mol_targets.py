"""Energies and forces of small clusters with a message-passing network; trainer and evaluator as in fairchem/OCP."""
import copy
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
import yaml
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

CONFIG = """
trainer: forces
dataset: {train: {size: 192, seed: 0}, val: {size: 64, seed: 1}}
model: {name: schnet, hidden_channels: 24, num_interactions: 2, num_gaussians: 12, cutoff: 3.0}
optim: {batch_size: 8, lr_initial: 0.004, max_epochs: 4, energy_coefficient: 1, force_coefficient: 10, clip_grad_norm: 5}
task:
  metrics:
    energy: [energy_mae, energy_mse, energy_within_threshold]
    forces: [forces_mae, forces_cos, forces_magnitude]
"""
MODELS = {}


def register_model(name):
    def wrap(cls):
        MODELS[name] = cls
        return cls
    return wrap


class Clusters(Dataset):
    def __init__(self, size, seed, atoms=6):
        g = torch.Generator().manual_seed(seed)
        grid = torch.cartesian_prod(*[torch.arange(2.0)] * 3)[:atoms] * 1.1
        self.pos = grid + 0.12 * torch.randn(size, atoms, 3, generator=g)
        self.z = torch.randint(0, 3, (size, atoms), generator=g)

    def __len__(self):
        return len(self.pos)

    @torch.enable_grad()
    def __getitem__(self, i):
        pos = self.pos[i].clone().requires_grad_(True)
        d = torch.pdist(pos)
        i1, i2 = torch.triu_indices(len(pos), len(pos), 1)
        depth = 0.5 + 0.25 * (self.z[i][i1] + self.z[i][i2])
        energy = (depth * ((1 - torch.exp(-1.2 * (d - 1.1))) ** 2 - 1)).sum()
        (grad,) = torch.autograd.grad(energy, pos)
        return {"pos": pos.detach(), "z": self.z[i], "energy": energy.detach(), "forces": -grad}


@register_model("schnet")
class SchNet(nn.Module):
    def __init__(self, hidden_channels, num_interactions, num_gaussians, cutoff):
        super().__init__()
        self.embedding = nn.Embedding(3, hidden_channels)
        self.register_buffer("offset", torch.linspace(0, cutoff, num_gaussians))
        self.filters = nn.ModuleList(nn.Sequential(nn.Linear(num_gaussians, hidden_channels), nn.Softplus(),
                                                   nn.Linear(hidden_channels, hidden_channels))
                                     for _ in range(num_interactions))
        self.updates = nn.ModuleList(nn.Linear(hidden_channels, hidden_channels) for _ in range(num_interactions))
        self.energy_head, self.force_head = nn.Linear(hidden_channels, 1), nn.Linear(hidden_channels, 1)

    def forward(self, batch):
        diff = batch["pos"].unsqueeze(2) - batch["pos"].unsqueeze(1)
        dist_ = (diff.pow(2).sum(-1) + 1e-9).sqrt()
        rbf = torch.exp(-8 * (dist_.unsqueeze(-1) - self.offset) ** 2)
        pair = 1 - torch.eye(diff.shape[1]).unsqueeze(-1)
        h, edge = self.embedding(batch["z"]), 0
        for filt, update in zip(self.filters, self.updates):
            w = filt(rbf) * pair
            edge = w * (h.unsqueeze(1) + h.unsqueeze(2))
            h = h + torch.tanh(update(edge.sum(2)))
        scale = self.force_head(edge * h.unsqueeze(1) * h.unsqueeze(2) + w)
        forces = (scale * diff / dist_.unsqueeze(-1) * pair).sum(2)
        return {"energy": self.energy_head(h).sum((1, 2)), "forces": forces}


class Evaluator:
    """Sums and counts of the metrics of a task, and their global values."""

    FUNCTIONS = {
        "energy_mae": lambda p, t: (p["energy"] - t["energy"]).abs(),
        "energy_mse": lambda p, t: (p["energy"] - t["energy"]).pow(2),
        "energy_within_threshold": lambda p, t: ((p["energy"] - t["energy"]).abs() < 0.5).float(),
        "forces_mae": lambda p, t: (p["forces"] - t["forces"]).abs(),
        "forces_cos": lambda p, t: torch.cosine_similarity(p["forces"], t["forces"], dim=-1),
        "forces_magnitude": lambda p, t: (p["forces"].norm(dim=-1) - t["forces"].norm(dim=-1)).abs(),
    }

    def __init__(self, task):
        self.metric_fn = {name for names in task["metrics"].values() for name in names}

    def eval(self, prediction, target, prev_metrics):
        for name in self.metric_fn:
            res = self.FUNCTIONS[name](prediction, target)
            kept = prev_metrics.setdefault(name, {"total": 0.0, "numel": 0})
            kept["total"] += res.sum().item()
            kept["numel"] += res.numel()
        return prev_metrics


def all_reduce(data):
    tensor = torch.tensor(float(data))
    dist.all_reduce(tensor)
    return tensor.item()


class ForcesTrainer:
    def __init__(self, config):
        self.config = copy.deepcopy(config)
        self.loaders = {}
        for split, kwargs in config["dataset"].items():
            dataset = Clusters(**kwargs)
            sampler = DistributedSampler(dataset, shuffle=split == "train")
            self.loaders[split] = DataLoader(dataset, config["optim"]["batch_size"], sampler=sampler)
        kwargs = dict(config["model"])
        self.model = DistributedDataParallel(MODELS[kwargs.pop("name")](**kwargs))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["optim"]["lr_initial"], amsgrad=True)
        self.evaluator = Evaluator(config["task"])
        self.best_val_metric = float("inf")

    def _compute_loss(self, out, batch):
        optim = self.config["optim"]
        energy = (out["energy"] - batch["energy"]).abs().mean()
        return optim["energy_coefficient"] * energy + optim["force_coefficient"] * (
            out["forces"] - batch["forces"]).norm(dim=-1).mean()

    def train(self):
        for epoch in range(self.config["optim"]["max_epochs"]):
            self.loaders["train"].sampler.set_epoch(epoch)
            self.model.train()
            for batch in self.loaders["train"]:
                loss = self._compute_loss(self.model(batch), batch)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), self.config["optim"]["clip_grad_norm"])
                self.optimizer.step()
            metrics = self.validate()
            self.best_val_metric = min(self.best_val_metric, metrics["forces_mae"])
            if dist.get_rank() == 0:
                shown = ", ".join(f"{k}: {metrics[k]:.4f}" for k in sorted(metrics))
                logging.info("epoch %d %s", epoch, shown)

    @torch.no_grad()
    def validate(self, split="val"):
        self.model.eval()
        metrics = {}
        for batch in self.loaders[split]:
            metrics = self.evaluator.eval(self.model.module(batch), batch, metrics)
        aggregated_metrics = {}
        for k in sorted(metrics):
            total, numel = all_reduce(metrics[k]["total"]), all_reduce(metrics[k]["numel"])
            aggregated_metrics[k] = total / numel
        return aggregated_metrics


def main():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    dist.init_process_group("gloo")
    torch.manual_seed(7)
    ForcesTrainer(yaml.safe_load(CONFIG)).train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
