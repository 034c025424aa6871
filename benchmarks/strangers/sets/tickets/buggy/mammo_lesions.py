"""Lesion detection on mammogram patches (synthetic), free-response score at the end of each epoch."""
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD = 2
EPOCHS = 2
CUT = 0.8


def patches(n, seed, prevalence):
    rng = np.random.RandomState(seed)
    x = rng.normal(0, 1, (n, 1, 16, 16)).astype("float32")
    y = (rng.rand(n) < prevalence).astype("float32")
    x[y == 1, :, 5:10, 5:10] += 2.5
    return torch.from_numpy(x), torch.from_numpy(y)


class LesionScores:
    """Keeps score and truth of all findings over the threshold."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.scores, self.hits = [], []

    def update(self, prob, target):
        found = prob > CUT
        if found.any():
            self.scores.append(prob[found])
            self.hits.append(target[found])

    def sync(self):
        if not self.scores:
            return
        state = [torch.cat(self.scores), torch.cat(self.hits)]
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, state)
        self.scores = [s for s, _ in everyone]
        self.hits = [h for _, h in everyone]

    def compute(self):
        self.sync()
        if not self.scores:
            return 0, 0.0
        hits = torch.cat(self.hits)
        return len(hits), float(hits.mean())


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(16, 1),
    )


def run(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(5)
    net = DDP(build())
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    x, y = patches(256, 10 + rank, 0.4)
    # every site keeps its own screening cases, the second one is a healthy cohort
    vx, vy = patches(96, 50 + rank, 0.3 if rank == 0 else 0.0)
    metric = LesionScores()
    for epoch in range(EPOCHS):
        net.train()
        for i in range(0, len(x), 16):
            loss = F.binary_cross_entropy_with_logits(net(x[i:i + 16]).squeeze(1), y[i:i + 16])
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        metric.reset()
        with torch.no_grad():
            for i in range(0, len(vx), 32):
                metric.update(torch.sigmoid(net.module(vx[i:i + 32]).squeeze(1)), vy[i:i + 32])
        count, precision = metric.compute()
        if rank == 0:
            print(f"epoch {epoch}: {count} findings, precision {precision:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.spawn(run, args=(free,), nprocs=WORLD)
