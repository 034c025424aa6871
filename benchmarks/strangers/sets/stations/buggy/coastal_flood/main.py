"""Storm surge emulator on a coast that is cut into strips.

    torchrun --nproc_per_node 4 main.py
"""
import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from strips import Coast
from surge import Storms, SurgeNet


def train(args):
    coast = Coast()
    storms = Storms(coast.rank)
    torch.manual_seed(coast.rank)
    model = DDP(SurgeNet(width=args.width))
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.StepLR(opt, 20, gamma=0.5)
    for step in range(1, args.steps + 1):
        field, surge = storms.draw()
        loss = nn.functional.mse_loss(model(coast.pad(field)), surge)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        if step % 10 == 0:
            worst = loss.detach().clone()
            dist.all_reduce(worst, op=dist.ReduceOp.MAX)
            if coast.rank == 0:
                print(f"step {step} worst strip {worst.item():.4f}", flush=True)
    return model


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=40)
    ap.add_argument("--width", type=int, default=16)
    ap.add_argument("--lr", type=float, default=1e-2)
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model = train(args)
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "/tmp/coastal_flood.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
