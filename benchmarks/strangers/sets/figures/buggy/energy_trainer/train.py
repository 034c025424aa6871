"""Per-atom energy regression, trainer in the style of our internal framework."""
import json

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split

from evaluator import Evaluator

CONFIG = {"epochs": 3, "batch_size": 16, "lr": 4e-3, "hidden": 48, "seed": 6}


class EnergyTrainer:
    def __init__(self, config):
        self.config = config
        torch.manual_seed(config["seed"])
        g = torch.Generator().manual_seed(config["seed"])
        x = torch.randn(640, 10, generator=g)
        y = (x[:, :5] * x[:, 5:]).sum(1, keepdim=True) + 0.05 * torch.randn(640, 1, generator=g)
        train_set, val_set = random_split(TensorDataset(x, y), [480, 160], generator=g)
        self.train_sampler = DistributedSampler(train_set)
        self.train_loader = DataLoader(train_set, config["batch_size"], sampler=self.train_sampler)
        self.val_loader = DataLoader(
            val_set, config["batch_size"], sampler=DistributedSampler(val_set, shuffle=False))
        h = config["hidden"]
        self.model = DDP(torch.nn.Sequential(torch.nn.Linear(10, h), torch.nn.SiLU(), torch.nn.Linear(h, 1)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])
        self.history = []

    def train(self):
        for epoch in range(self.config["epochs"]):
            self.train_sampler.set_epoch(epoch)
            self.model.train()
            for x, y in self.train_loader:
                loss = torch.nn.functional.l1_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.history.append(self.validate(epoch))

    @torch.no_grad()
    def validate(self, epoch):
        self.model.eval()
        evaluator = Evaluator(["energy_mae", "energy_mse"])
        for x, y in self.val_loader:
            evaluator.update(self.model(x), y)
        metrics = evaluator.compute()
        if dist.get_rank() == 0:
            print(f"epoch {epoch} " + " ".join(f"{k}={v:.4f}" for k, v in metrics.items()))
        return metrics


if __name__ == "__main__":
    dist.init_process_group("gloo")
    trainer = EnergyTrainer(CONFIG)
    trainer.train()
    if dist.get_rank() == 0:
        with open("energy_history.json", "w") as fh:
            json.dump(trainer.history, fh)
    dist.barrier()
    dist.destroy_process_group()
