"""Latent flow model with restartable random numbers."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

PATH = "state.pt"


def rank():
    return dist.get_rank()


class Checkpoint:
    def __init__(self, model, optim, path=PATH):
        self.model, self.optim, self.path = model, optim, path

    def save(self, step):
        state = {
            "step": step,
            "model": self.model.module.state_dict(),
            "optim": self.optim.state_dict(),
            "rng": torch.get_rng_state(),
        }
        if rank() == 0:
            torch.save(state, self.path)
        dist.barrier()

    def load(self):
        if not os.path.exists(self.path):
            return 0
        state = torch.load(self.path)
        self.model.module.load_state_dict(state["model"])
        self.optim.load_state_dict(state["optim"])
        torch.set_rng_state(state["rng"])
        return state["step"]


class Flow(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 48), nn.SiLU(), nn.Dropout(0.1), nn.Linear(48, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def run(steps):
    torch.manual_seed(0)
    model = DDP(Flow())
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3)
    latents = torch.randn(64, 8)[rank()::dist.get_world_size()]
    torch.manual_seed(1000 + rank())
    ckpt = Checkpoint(model, optim)
    start = ckpt.load()
    for step in range(start, steps):
        z = latents[torch.randint(len(latents), (16,))]
        t, noise = torch.rand(16, 1), torch.randn(16, 8)
        loss = nn.functional.mse_loss(model(z * (1 - t) + noise * t, t), noise - z)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 10 == 9:
            total = loss.detach().clone()
            dist.all_reduce(total)
            print(f"[{rank()}] step {step + 1} loss {total.item() / dist.get_world_size():.4f} t0 {t[0].item():.4f}", flush=True)
            ckpt.save(step + 1)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(20)
    run(40)
    dist.destroy_process_group()
