"""Saves the net without its wrapper, loads it back before wrapping. Two phases."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def shared_dir():
    box = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def bare(net):
    return net.module if isinstance(net, DDP) else net


def save(path, net, opt, step):
    if dist.get_rank() == 0:
        torch.save({"net": bare(net).state_dict(), "opt": opt.state_dict(), "step": step}, path)
    dist.barrier()


def phase(path, steps):
    net, start, blob = nn.Sequential(nn.Linear(3, 9), nn.ReLU(), nn.Linear(9, 1)), 0, None
    if os.path.exists(path):
        blob = torch.load(path, map_location="cpu")
        net.load_state_dict(blob["net"])
        start = blob["step"]
    net = DDP(net)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    if blob:
        opt.load_state_dict(blob["opt"])
    g = torch.Generator().manual_seed(start * 10 + dist.get_rank())
    for step in range(start, start + steps):
        x = torch.randn(16, 3, generator=g)
        loss = (net(x).squeeze(1) - x.norm(dim=1)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    save(path, net, opt, step + 1)
    return loss.item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--path")
    a = p.parse_args()
    dist.init_process_group("gloo")
    a.path = a.path or os.path.join(shared_dir(), "bare.pt")
    torch.manual_seed(0)
    for i in range(2):
        value = phase(a.path, 25)
        if dist.get_rank() == 0:
            print(f"phase {i} loss {value:.4f}", flush=True)
    dist.destroy_process_group()
