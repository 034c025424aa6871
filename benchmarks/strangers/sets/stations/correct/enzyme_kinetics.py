"""Rate constants from progress curves; records are archived on the side.

    torchrun --nproc_per_node 2 enzyme_kinetics.py
"""
import os
import threading

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Archivist:
    def __init__(self):
        self.group = dist.new_group()
        self.rank = dist.get_rank()
        self.thread = None
        self.kept = []

    def _work(self, step, residual):
        parts = [torch.empty_like(residual) for _ in range(dist.get_world_size())] if self.rank == 0 else None
        dist.gather(residual, parts, dst=0, group=self.group)
        if parts is not None:
            self.kept.append((step, torch.cat(parts).abs().quantile(0.9).item()))

    def take(self, step, residual):
        self.close()
        self.thread = threading.Thread(target=self._work, args=(step, residual.clone()))
        self.thread.start()

    def close(self):
        if self.thread is not None:
            self.thread.join()
            self.thread = None


class Curve(nn.Module):
    def __init__(self, points=30):
        super().__init__()
        self.lstm = nn.LSTM(1, 20, batch_first=True)
        self.head = nn.Linear(20, 2)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, s):
        if self.training:
            self.seen += len(s)
        return self.head(self.lstm(s.unsqueeze(2))[0][:, -1])


def assays(gen, n=24, points=30):
    k = torch.rand(n, 2, generator=gen) + 0.2
    t = torch.linspace(0, 4, points)
    s = torch.exp(-k[:, :1] * t) + 0.2 * k[:, 1:] * t
    return s + 0.01 * torch.randn(n, points, generator=gen), k


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    model = DDP(Curve())
    opt = torch.optim.Adam(model.parameters(), lr=8e-3)
    archivist = Archivist()
    gen = torch.Generator().manual_seed(90 + rank)
    for step in range(1, 61):
        s, k = assays(gen)
        out = model(s)
        loss = nn.functional.mse_loss(out, k)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 6 == 0:
            archivist.take(step, (out - k).detach().flatten())
        if step % 20 == 0:
            shown = loss.detach().clone()
            dist.all_reduce(shown, op=dist.ReduceOp.MAX)
            if rank == 0:
                print(f"step {step} worst loss {shown.item():.4f}", flush=True)
    archivist.close()
    if rank == 0:
        for step, q in archivist.kept[-3:]:
            print(f"archived {step}: q90 {q:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
