"""Energy and force regression for atomic structures of very different sizes."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import atoms_lib.losses as losses
from atoms_lib.data import Clusters, collate
from atoms_lib.registry import create

config = {
    "optim": {"lr": 3e-3, "batch_size": 4, "max_epochs": 3, "energy_coefficient": 0.2, "force_coefficient": 1.0,
              "loss_energy": "energy_mae", "loss_force": "l2mae"},
    "model": {"hidden": 24},
    "seed": 0,
}


class PairNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(1, hidden), nn.SiLU(), nn.Linear(hidden, hidden))
        self.coef = nn.Linear(hidden, 1)
        self.energy = nn.Linear(hidden, 1)

    def forward(self, data):
        pos, batch = data["pos"], data["batch"]
        same = (batch[:, None] == batch[None]) & ~torch.eye(len(pos), dtype=torch.bool)
        i, j = same.nonzero(as_tuple=True)
        rel = pos[i] - pos[j]
        h = self.edge(rel.norm(dim=-1, keepdim=True))
        force = torch.zeros_like(pos).index_add(0, i, self.coef(h) * rel)
        node = torch.zeros(len(pos), h.shape[1]).index_add(0, i, h)
        pooled = torch.zeros(int(batch.max()) + 1, h.shape[1]).index_add(0, batch, node)
        return {"energy": self.energy(pooled).squeeze(-1), "force": force}


class ForcesTrainer:
    def __init__(self, config):
        self.config, self.opt = config, config["optim"]
        torch.manual_seed(config["seed"])
        self.model = DistributedDataParallel(PairNet(**config["model"]))
        self.loss_fn = {}
        for target in ("energy", "force"):
            self.loss_fn[target] = losses.DDPLoss(create("loss", self.opt[f"loss_{target}"]))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.opt["lr"])
        data = Clusters()
        self.sampler = DistributedSampler(data, shuffle=True, drop_last=True)
        self.loader = DataLoader(data, batch_size=self.opt["batch_size"], sampler=self.sampler, collate_fn=collate)

    def _compute_loss(self, out, batch):
        return sum(self.opt[f"{t}_coefficient"] * self.loss_fn[t](out[t], batch[t]) for t in ("energy", "force"))

    def _metrics(self, out, batch):
        err = (out["force"] - batch["force"]).detach().norm(dim=-1)
        return torch.tensor([err.sum().item(), float(len(err))])

    def train(self):
        for epoch in range(self.opt["max_epochs"]):
            self.sampler.set_epoch(epoch)
            totals = torch.zeros(2)
            for batch in self.loader:
                out = self.model(batch)
                loss = self._compute_loss(out, batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                totals += self._metrics(out, batch)
            dist.all_reduce(totals)
            if dist.get_rank() == 0:
                print(f"epoch {epoch}: force error per atom {totals[0] / totals[1]:.4f}", flush=True)


def main():
    dist.init_process_group("gloo")
    ForcesTrainer(config).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
