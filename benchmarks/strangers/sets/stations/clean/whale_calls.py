"""Detector for baleen whale calls in hydrophone recordings.

    torchrun --nproc_per_node 2 whale_calls.py
"""
import os
from collections import OrderedDict
from contextlib import contextmanager

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

HPARAMS = {
    "samples": 256,
    "filters": 20,
    "hidden": 32,
    "species": 3,
    "batch": 16,
    "accumulate": 2,
    "epochs": 2,
    "batches_per_epoch": 12,
    "lr": 5e-3,
}


class Filterbank(nn.Module):
    """Fixed band energies; has nothing to learn."""

    def __init__(self, samples, filters):
        super().__init__()
        t = torch.arange(samples) / samples
        freq = torch.linspace(2, 60, filters)[:, None]
        self.register_buffer("cos", torch.cos(2 * torch.pi * freq * t))
        self.register_buffer("sin", torch.sin(2 * torch.pi * freq * t))

    def forward(self, wave):
        re, im = wave @ self.cos.t(), wave @ self.sin.t()
        return torch.log1p(re.pow(2) + im.pow(2))


class Recordings:
    def __init__(self, rank, hp):
        self.g = torch.Generator().manual_seed(40 + rank)
        self.hp = hp

    def batch(self):
        hp = self.hp
        y = torch.randint(hp["species"], (hp["batch"],), generator=self.g)
        t = torch.arange(hp["samples"]) / hp["samples"]
        base = torch.tensor([6.0, 20.0, 45.0])[y] + torch.randn(hp["batch"], generator=self.g)
        wave = torch.sin(2 * torch.pi * base[:, None] * t)
        return wave + torch.randn(wave.shape, generator=self.g), y


class Brain:
    def __init__(self, hp, rank):
        self.hp, self.rank = hp, rank
        torch.manual_seed(0)
        parts = OrderedDict(
            frontend=Filterbank(hp["samples"], hp["filters"]),
            encoder=nn.Sequential(nn.LayerNorm(hp["filters"]), nn.Linear(hp["filters"], hp["hidden"]), nn.ReLU()),
            classifier=nn.Linear(hp["hidden"], hp["species"]),
        )
        self.modules = OrderedDict()
        for name, part in parts.items():
            trainable = any(p.requires_grad for p in part.parameters())
            self.modules[name] = DDP(part) if trainable else part
        params = [p for m in self.modules.values() for p in m.parameters()]
        self.optimizer = torch.optim.Adam(params, lr=hp["lr"])
        self.step = 0

    @contextmanager
    def no_sync(self, use=True):
        if not use:
            yield
            return
        previous = []
        for module in self.modules.values():
            if not hasattr(module, "require_backward_grad_sync"):
                continue
            previous.append((module, module.require_backward_grad_sync))
            module.require_backward_grad_sync = False
        yield
        for module, value in previous:
            module.require_backward_grad_sync = value

    def forward(self, wave):
        m = self.modules
        return m["classifier"](m["encoder"](m["frontend"](wave)))

    def fit_batch(self, batch):
        wave, y = batch
        self.step += 1
        should_step = self.step % self.hp["accumulate"] == 0
        with self.no_sync(not should_step):
            loss = nn.functional.cross_entropy(self.forward(wave), y)
            (loss / self.hp["accumulate"]).backward()
        if should_step:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()

    def fit(self, source):
        for epoch in range(self.hp["epochs"]):
            total = torch.zeros(())
            for _ in range(self.hp["batches_per_epoch"]):
                total += self.fit_batch(source.batch())
            dist.all_reduce(total)
            if self.rank == 0:
                mean = total / self.hp["batches_per_epoch"] / dist.get_world_size()
                print(f"epoch {epoch}: loss {mean:.4f}", flush=True)


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    brain = Brain(HPARAMS, rank)
    brain.fit(Recordings(rank, HPARAMS))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
