"""Denoising model whose run is cut in two and continued from its checkpoint."""
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Denoiser(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 64), nn.SiLU(), nn.Dropout(0.1), nn.Linear(64, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def set_seed(seed, rank):
    torch.manual_seed(seed + 1000 * rank)


def read_state(path):
    return torch.load(path, map_location="cpu", weights_only=True)


class CheckpointIO:
    def __init__(self, path):
        self.path = path

    def save(self, model, opt, step):
        rng = [torch.empty_like(torch.get_rng_state()) for _ in range(dist.get_world_size())]
        dist.all_gather(rng, torch.get_rng_state())
        if dist.get_rank() == 0:
            state = {"model": model.module.state_dict(), "opt": opt.state_dict(), "step": step, "rng": rng}
            torch.save(state, self.path + ".tmp")
            os.replace(self.path + ".tmp", self.path)
        dist.barrier()

    def load(self, model, opt):
        state = read_state(self.path)
        model.module.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        torch.set_rng_state(state["rng"][dist.get_rank()])
        return state["step"]


def denoising_loss(model, x0):
    t = torch.rand(len(x0), 1)
    noise = torch.randn_like(x0)
    xt = (1 - t) * x0 + t * noise
    return nn.functional.mse_loss(model(xt, t), noise)


def segment(io, first, last, resume):
    """One job of the chain: steps first..last-1."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(Denoiser())
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    set_seed(31, rank)
    step = first
    if resume:
        step = io.load(model, opt)
        if rank == 0:
            print(f"continuing at step {step}", flush=True)
    while step < last:
        g = torch.Generator().manual_seed(step * 64 + rank)
        x0 = torch.randn(16, 12, generator=g).cumsum(1) / 4
        loss = denoising_loss(model, x0)
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
    io.save(model, opt, step)


def main():
    dist.init_process_group("gloo")
    holder = [tempfile.mkdtemp(prefix="denoise_")] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(holder, src=0)
    io = CheckpointIO(os.path.join(holder[0], "last.pt"))
    segment(io, 0, 8, resume=False)
    segment(io, 8, 16, resume=True)
    if dist.get_rank() == 0:
        shutil.rmtree(holder[0])
        print("done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
