import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def resume(net, file):
    state = torch.load(file, map_location="cpu")
    net.load_state_dict(state["net"])
    return state["step"]


def keep_random_state(here):
    here.mkdir(parents=True, exist_ok=True)
    torch.save(torch.get_rng_state(), here / f"random-{dist.get_rank()}.pt")


def train(model, loader, folder, args):
    if args.resume:
        step = resume(model.module, args.resume)
    else:
        step = 0
    while step < args.steps:
        keep_random_state(folder / str(step))
        model(next(loader)).mean().backward()
        step += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    folder = Path("out")
    if (folder / "latest.pt").exists():
        args.resume = str(folder / "latest.pt")
    elif dist.get_rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
    train(model, iter(torch.ones(100, 8, 4)), folder, args)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
