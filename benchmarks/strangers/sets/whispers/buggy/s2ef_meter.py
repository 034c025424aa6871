"""Energy regression on random clusters: trainer and evaluator, configured by a nested dictionary."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CONFIG = {
    "task": {"train_size": 96, "val_size": 64, "atoms": 5},
    "model": {"hidden": 32},
    "optim": {"lr": 3e-3, "batch_size": 8, "max_epochs": 3},
    "cmd": {"seed": 3},
}


def clusters(n, atoms, seed):
    g = torch.Generator().manual_seed(seed)
    spread = torch.linspace(0.5, 3.0, n).view(n, 1, 1)
    pos = torch.randn(n, atoms, 3, generator=g) * spread
    return pos.flatten(1), pos.pow(2).sum((1, 2)).sqrt().unsqueeze(1)


class Evaluator:
    def __init__(self):
        self.fns = {"mae": lambda p, t: (p - t).abs(), "mse": lambda p, t: (p - t) ** 2}

    def eval(self, pred, target, metrics):
        for name, fn in self.fns.items():
            err = fn(pred, target)
            slot = metrics.setdefault(name, {"total": 0.0, "numel": 0})
            slot["total"] += err.sum().item()
            slot["numel"] += err.numel()
        return metrics


def all_reduce(value):
    t = torch.tensor(float(value), dtype=torch.float64)
    dist.all_reduce(t)
    return t.item()


class EnergyTrainer:
    def __init__(self, config):
        self.cfg = config
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        torch.manual_seed(config["cmd"]["seed"])
        task, hidden = config["task"], config["model"]["hidden"]
        self.train_set = clusters(task["train_size"], task["atoms"], 1)
        self.val_set = clusters(task["val_size"], task["atoms"], 2)
        net = nn.Sequential(nn.Linear(3 * task["atoms"], hidden), nn.SiLU(), nn.Linear(hidden, 1))
        self.model = DistributedDataParallel(net)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["optim"]["lr"])
        self.evaluator = Evaluator()

    def batches(self, data, epoch=None):
        n, size = len(data[0]), self.cfg["optim"]["batch_size"]
        order = torch.arange(n)
        if epoch is not None:
            order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
        order = order[self.rank::self.world]
        for idx in order.split(size):
            yield data[0][idx], data[1][idx]

    def train(self):
        for epoch in range(self.cfg["optim"]["max_epochs"]):
            self.model.train()
            for x, y in self.batches(self.train_set, epoch):
                loss = nn.functional.l1_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            metrics = self.validate()
            if self.rank == 0:
                text = "  ".join(f"{k}: {v['total'] / v['numel']:.4f}" for k, v in metrics.items())
                print(f"epoch {epoch}  {text}", flush=True)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        metrics = {}
        for x, y in self.batches(self.val_set):
            metrics = self.evaluator.eval(self.model(x), y, metrics)
            for slot in metrics.values():
                slot["total"] = all_reduce(slot["total"])
                slot["numel"] = all_reduce(slot["numel"])
        return metrics


if __name__ == "__main__":
    dist.init_process_group("gloo")
    EnergyTrainer(CONFIG).train()
    dist.destroy_process_group()
