"""A job that goes on with the options that its first run has kept, and overwrites its checkpoint."""

import argparse
import os
import pickle

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    if args.resume:
        with open(os.path.join(args.out, "args.pkl"), "rb") as file:
            kept = vars(pickle.load(file))
        kept.update(vars(args))
        args = argparse.Namespace(**kept)
    return args


def main():
    args = parse()
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = torch.nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.resume:
        state = torch.load(os.path.join(args.out, "last.pt"), map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    model = DistributedDataParallel(model, device_ids=[device])
    noise = torch.Generator().manual_seed(dist.get_rank())
    for step in range(100):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=noise).cuda()).square().mean().backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 10 == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, os.path.join(args.out, "last.pt"))  # <-- DDP503
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
