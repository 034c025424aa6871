import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def resume(net, file):
    state = torch.load(file, map_location="cpu")
    net.load_state_dict(state["net"])
    return state["step"]


def train(net, loader, folder, args):
    latest = folder / "latest" / "model.pt"
    if args.resume:
        step = resume(net, Path(args.resume) / "model.pt")
    else:
        step = 0
    model = DistributedDataParallel(net)
    while step < args.steps:
        here = folder / "steps" / str(step)
        if dist.get_rank() == 0:
            here.mkdir(parents=True, exist_ok=True)
            torch.save({"net": net.state_dict(), "step": step}, here / "model.pt")
            (folder / "latest").mkdir(exist_ok=True)
            torch.save({"net": net.state_dict(), "step": step}, f"{latest}.new")
            os.replace(f"{latest}.new", latest)
        here.mkdir(parents=True, exist_ok=True)
        torch.save(torch.get_rng_state(), here / f"random-{dist.get_rank()}.pt")
        model(next(loader)).mean().backward()
        step += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    folder = Path("out")
    if (folder / "latest" / "model.pt").exists():  # <- DDP513
        args.resume = str(folder / "latest")
    train(torch.nn.Linear(4, 1), iter(torch.ones(100, 8, 4)), folder, args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
