"""Predict epigenome tracks from one-hot DNA.   python genome_tracks.py --procs 2"""
import argparse
import os
import socket
from contextlib import closing

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def find_free_port():
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.bind(("127.0.0.1", 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return str(s.getsockname()[1])


class ClusterEnv:
    """Where the processes of one job meet."""

    def __init__(self, addr="127.0.0.1", port=None):
        self.addr = addr
        self._port = port

    @property
    def port(self):
        if self._port is None:
            self._port = os.environ.get("MASTER_PORT") or find_free_port()
        return self._port

    def export(self):
        os.environ["MASTER_ADDR"] = self.addr
        os.environ["MASTER_PORT"] = self.port


class TrackNet(nn.Module):
    def __init__(self, tracks=6):
        super().__init__()
        self.stem = nn.Conv1d(4, 24, 11, padding=5)
        self.tower = nn.Sequential(nn.GELU(), nn.MaxPool1d(4), nn.Conv1d(24, 32, 5, padding=2), nn.GELU())
        self.head = nn.Conv1d(32, tracks, 1)

    def forward(self, dna):
        return self.head(self.tower(self.stem(dna)))


def windows(rank, world, n=64, length=256):
    g = torch.Generator().manual_seed(13)
    base = torch.randint(4, (n, length), generator=g)
    dna = nn.functional.one_hot(base, 4).float().transpose(1, 2)
    gc = nn.functional.avg_pool1d(dna[:, 1:3].sum(1, keepdim=True), 4)
    return dna[rank::world], (gc.repeat(1, 6, 1) * torch.arange(1, 7)[None, :, None] / 6)[rank::world]


def fit(rank, args):
    torch.manual_seed(rank)
    dna, cover = windows(rank, args.procs)
    model = DDP(TrackNet())
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(args.steps):
        lo = (step * 8) % len(dna)
        loss = nn.functional.mse_loss(model(dna[lo:lo + 8]), cover[lo:lo + 8])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % 5 == 0:
            print(f"step {step} mse {loss.item():.4f}", flush=True)


def worker(rank, args, env):
    torch.set_num_threads(1)
    env.export()
    dist.init_process_group("gloo", rank=rank, world_size=args.procs)
    fit(rank, args)
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--procs", type=int, default=2)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--lr", type=float, default=2e-3)
    args = p.parse_args()
    env = ClusterEnv()
    mp.spawn(worker, args=(args, env), nprocs=args.procs, join=True)
    print("tracks fitted")


if __name__ == "__main__":
    main()
