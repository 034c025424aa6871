import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def go_on(file, model, optimizer, progress):
    if not os.path.isfile(file):  # <- DDP513
        return
    kept = torch.load(file, map_location="cpu")
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    progress["epoch"] = kept["epoch"] + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="runs")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    data = torch.randn(64, 5)
    sampler = DistributedSampler(data)
    model = DDP(nn.Linear(5, 1))
    optimizer = torch.optim.Adam(model.parameters())
    progress = {"epoch": 0}
    go_on(os.path.join(args.out, "last.pt"), model.module, optimizer, progress)
    for epoch in range(progress["epoch"], 4):
        sampler.set_epoch(epoch)
        for x in DataLoader(data, 8, sampler=sampler):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            kept = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**kept, "epoch": epoch}, f"{args.out}/last.tmp")
            os.replace("{}/{}".format(args.out, "last.tmp"), "%s/last.pt" % args.out)
        dist.barrier()


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
