"""Boston-style regression on a synthetic table, two CPU processes.

    python spawn_regress.py
"""
import os
import socket
from contextlib import closing

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def find_free_port():
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.bind(("", 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return str(s.getsockname()[1])


class Opts:
    n_rows = 600
    n_cols = 13
    hidden = 32
    batch_size = 25
    epochs = 3
    lr = 5e-3
    seed = 11


def setup_process(rank, opts):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = opts.port
    print(f"[{rank}] joining {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", flush=True)
    dist.init_process_group("gloo", rank=rank, world_size=opts.world_size)


def cleanup():
    dist.barrier()
    dist.destroy_process_group()


def make_table(opts):
    g = torch.Generator().manual_seed(opts.seed)
    x = torch.randn(opts.n_rows, opts.n_cols, generator=g)
    w = torch.randn(opts.n_cols, 1, generator=g)
    y = torch.tanh(x @ w) + 0.05 * torch.randn(opts.n_rows, 1, generator=g)
    cut = int(0.8 * opts.n_rows)
    return TensorDataset(x[:cut], y[:cut]), TensorDataset(x[cut:], y[cut:])


def build_net(opts):
    return nn.Sequential(
        nn.Linear(opts.n_cols, opts.hidden),
        nn.ReLU(),
        nn.Linear(opts.hidden, opts.hidden),
        nn.ReLU(),
        nn.Linear(opts.hidden, 1),
    )


@torch.no_grad()
def test(model, loader):
    total = torch.zeros(2, dtype=torch.float64)
    for x, y in loader:
        total[0] += (model.module(x) - y).pow(2).sum().item()
        total[1] += len(x)
    dist.all_reduce(total)
    return (total[0] / total[1]).item()


def run_parallel_training_loop(rank, opts):
    setup_process(rank, opts)
    torch.manual_seed(opts.seed)

    train_set, test_set = make_table(opts)
    sampler = DistributedSampler(train_set, shuffle=True, drop_last=True)
    train_loader = DataLoader(train_set, batch_size=opts.batch_size, sampler=sampler)
    test_part = torch.utils.data.Subset(test_set, range(rank, len(test_set), opts.world_size))
    test_loader = DataLoader(test_part, batch_size=opts.batch_size)

    model = DistributedDataParallel(build_net(opts))
    optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr)
    criterion = nn.MSELoss()

    for epoch in range(opts.epochs):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        mse = test(model, test_loader)
        if rank == 0:
            print(f"epoch {epoch}: test mse {mse:.4f}", flush=True)

    cleanup()


def main():
    opts = Opts()
    opts.world_size = 2
    opts.port = find_free_port()
    print(f"spawning {opts.world_size} processes")
    mp.spawn(run_parallel_training_loop, args=(opts,), nprocs=opts.world_size)
    print("done")


if __name__ == "__main__":
    main()
