import argparse
import json
import os
import time
import uuid

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def is_main():
    return dist.get_rank() == 0


def negotiate_run(args):
    """The main process picks the run folder and settings, the rest follow."""
    if is_main():
        run = {"dir": os.path.join(args.out, uuid.uuid4().hex[:8]), "seed": int(time.time()) % 1000, "lr": args.lr}
        os.makedirs(run["dir"])
        with open(os.path.join(run["dir"], "run.json"), "w") as f:
            json.dump(run, f)
        dist.broadcast_object_list([run], src=0)
        return run
    box = [None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def report(step, loss, run):
    if is_main():
        parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.gather(loss.detach().view(1), parts, dst=0)
        mean = torch.cat(parts).mean().item()
        print(f"step {step} loss {mean:.4f}", flush=True)
        with open(os.path.join(run["dir"], "log.txt"), "a") as f:
            f.write(f"{step} {mean}\n")
    else:
        dist.gather(loss.detach().view(1), dst=0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default="runs")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--lr", type=float, default=0.01)
    args = p.parse_args()
    dist.init_process_group("gloo")
    run = negotiate_run(args)
    torch.manual_seed(run["seed"])
    model = DDP(nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=run["lr"])
    torch.manual_seed(run["seed"] + dist.get_rank())
    for step in range(args.steps):
        x = torch.randn(16, 5)
        loss = (model(x) - x.norm(dim=1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 5 == 0:
            report(step, loss, run)
    if is_main():
        torch.save(model.module.state_dict(), os.path.join(run["dir"], "last.pt"))
        print("written to", run["dir"], flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
