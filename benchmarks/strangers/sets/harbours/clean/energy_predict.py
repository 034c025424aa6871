"""Energy regression on small molecules, then predictions for the test set are written for submission."""
import json
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Molecules(Dataset):
    def __init__(self, n, seed, prefix):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.rand(n, 10, generator=g)
        self.y = (self.x ** 2).sum(1)
        self.ids = [f"{prefix}{i:04d}" for i in range(n)]

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i], self.x[i], self.y[i]


class EnergyTrainer:
    def __init__(self, run_dir):
        self.results_dir = os.path.join(run_dir, "results")
        self.is_master = dist.get_rank() == 0
        if self.is_master:
            os.makedirs(self.results_dir, exist_ok=True)
        dist.barrier()
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 1)))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=5e-3)

    def train(self, data, epochs=4):
        sampler = DistributedSampler(data)
        loader = DataLoader(data, 16, sampler=sampler)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for _, x, y in loader:
                loss = nn.functional.l1_loss(self.model(x).squeeze(1), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            if self.is_master:
                print(f"epoch {epoch} mae {loss.item():.4f}", flush=True)

    @torch.no_grad()
    def predict(self, data, results_file="predictions"):
        self.model.eval()
        loader = DataLoader(data, 16, sampler=DistributedSampler(data, shuffle=False))
        predictions = {"id": [], "energy": []}
        for ids, x, _ in loader:
            predictions["id"].extend(ids)
            predictions["energy"].extend(self.model(x).squeeze(1).tolist())
        self.save_results(predictions, results_file)
        return predictions

    def save_results(self, predictions, results_file):
        path = os.path.join(self.results_dir, f"{results_file}_{dist.get_rank()}.json")
        draft = f"{path}.{os.getpid()}"
        with open(draft, "w") as f:
            json.dump([{"id": i, "energy": e} for i, e in zip(predictions["id"], predictions["energy"])], f)
        os.replace(draft, path)
        dist.barrier()
        if self.is_master:
            rows = {}
            for k in range(dist.get_world_size()):
                part = os.path.join(self.results_dir, f"{results_file}_{k}.json")
                rows.update({r["id"]: r["energy"] for r in json.load(open(part))})
            with open(os.path.join(self.results_dir, "submission.json"), "w") as f:
                json.dump(rows, f)
            print(f"wrote {len(rows)} predictions", flush=True)


def main():
    trainer = EnergyTrainer(os.getcwd())
    trainer.train(Molecules(256, 1, "tr"))
    trainer.predict(Molecules(96, 2, "te"))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
