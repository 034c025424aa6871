"""Flare forecasting from magnetogram patches; some archive files are damaged.

    torchrun --nproc_per_node 2 solar_flares.py
"""
import os
import zlib

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Damaged(RuntimeError):
    pass


class Archive:
    def __init__(self, rank, n=24, batch=16):
        self.rank, self.n, self.batch = rank, n, batch
        self.blobs = []
        for i in range(n):
            g = torch.Generator().manual_seed(1000 * rank + i)
            raw = torch.randn(batch, 64, generator=g).numpy().tobytes()
            blob = zlib.compress(raw, 1)
            if (i * 7 + rank * 3) % 11 == 4:
                blob = blob[: len(blob) // 2]
            self.blobs.append(blob)

    def read(self, i):
        try:
            raw = zlib.decompress(self.blobs[i])
        except zlib.error as err:
            raise Damaged(f"patch file {self.rank}/{i}: {err}") from None
        x = torch.frombuffer(bytearray(raw), dtype=torch.float32).view(self.batch, 64)
        y = (x[:, :8].abs().sum(1) > 6.4).float()
        return x, y


class Agreement:
    """Collects what happened on each process and answers the same everywhere."""

    def __init__(self):
        self.world = dist.get_world_size()
        self.log = []

    def all_fine(self, problem):
        reports = [None] * self.world
        dist.all_gather_object(reports, None if problem is None else str(problem))
        self.log += [r for r in reports if r]
        return not any(reports)


def network():
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU(), nn.Linear(16, 1))


def run_epoch(model, opt, archive, agreement, order):
    used = 0
    total = torch.zeros(())
    for i in order:
        problem, batch = None, None
        try:
            batch = archive.read(i)
        except Damaged as err:
            problem = err
        if not agreement.all_fine(problem):
            continue
        x, y = batch
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        used += 1
    return total / max(used, 1), used


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(4)
    archive = Archive(rank)
    model = DDP(network())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    agreement = Agreement()
    for epoch in range(3):
        order = torch.randperm(archive.n, generator=torch.Generator().manual_seed(epoch + 50 * rank)).tolist()
        loss, used = run_epoch(model, opt, archive, agreement, order)
        dist.all_reduce(loss)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item() / 2:.4f} from {used} of {archive.n} file pairs", flush=True)
    if rank == 0:
        print(f"{len(set(agreement.log))} files to be repaired", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
