import os
import socket
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def write_shards(folder, count=7):
    for k in range(count):
        rng = np.random.default_rng(k)
        x = rng.normal(size=(60 + 15 * k, 8)).astype("float32")
        y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype("int64")
        np.savez(os.path.join(folder, f"part-{k:03d}.npz"), x=x, y=y)


def read_mine(folder, rank, world):
    xs, ys = [], []
    for name in sorted(os.listdir(folder))[rank::world]:
        with np.load(os.path.join(folder, name)) as z:
            xs.append(torch.from_numpy(z["x"]))
            ys.append(torch.from_numpy(z["y"]))
    return torch.cat(xs), torch.cat(ys)


def common_steps(n_rows, batch):
    steps = torch.tensor(n_rows // batch)
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    return int(steps)


def work(rank, world, port, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    x, y = read_mine(folder, rank, world)
    steps = common_steps(len(x), 20)
    print(f"[{rank}] {len(x)} rows, {steps} steps", flush=True)
    torch.manual_seed(0)
    net = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(8):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch * 10 + rank))
        for k in range(steps):
            idx = order[k * 20:(k + 1) * 20]
            opt.zero_grad()
            nn.functional.cross_entropy(net(x[idx]), y[idx]).backward()
            opt.step()
    with torch.no_grad():
        good = torch.tensor([(net.module(x).argmax(1) == y).sum().item(), len(y)], dtype=torch.float64)
    dist.all_reduce(good)
    if rank == 0:
        print(f"train accuracy {(good[0] / good[1]).item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        write_shards(folder)
        mp.spawn(work, args=(3, port, folder), nprocs=3)
