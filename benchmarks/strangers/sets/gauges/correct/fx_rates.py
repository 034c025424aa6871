"""Exchange rate sequences read from an endless stream, a budget of steps instead of epochs.

    torchrun --nproc_per_node=2 fx_rates.py
"""
import itertools

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Ticks(IterableDataset):
    """Pairs are dealt to the readers; a reader goes through its pairs for ever."""

    def __init__(self, pairs=12, window=30):
        self.pairs, self.window = pairs, window

    def history(self, pair, n=400):
        g = torch.Generator().manual_seed(pair)
        return torch.randn(n, generator=g).cumsum(0) * 0.1

    def __iter__(self):
        info = get_worker_info()
        workers, worker = (info.num_workers, info.id) if info else (1, 0)
        reader = dist.get_rank() * workers + worker
        readers = dist.get_world_size() * workers
        mine = range(reader, self.pairs, readers)
        rng = torch.Generator().manual_seed(10_000 + reader)
        for pair in itertools.cycle(mine):
            h = self.history(pair)
            start = int(torch.randint(len(h) - self.window - 1, (1,), generator=rng))
            w = h[start:start + self.window + 1]
            yield w[:-1] - w[-2], w[-1] - w[-2]


class Forecaster(nn.Module):
    def __init__(self, window=30):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(window, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, w):
        return self.net(w).squeeze(-1)


def steps_to_run(wanted):
    """Processes may get another number from their configuration; all take the smallest."""
    n = torch.tensor(wanted)
    dist.all_reduce(n, op=dist.ReduceOp.MIN)
    return int(n)


def main():
    rank = dist.get_rank()
    loader = DataLoader(Ticks(), batch_size=16)
    steps = steps_to_run(80 + 20 * rank)
    model = DDP(Forecaster())
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    running = torch.zeros(())
    for step, (window, move) in enumerate(itertools.islice(loader, steps)):
        loss = nn.functional.huber_loss(model(window), move)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.detach()
        if (step + 1) % 20 == 0:
            dist.all_reduce(running)
            if rank == 0:
                print(f"step {step + 1} huber {running.item() / 20 / dist.get_world_size():.5f}")
            running = torch.zeros(())
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
