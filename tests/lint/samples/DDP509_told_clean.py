"""Resumes with what the job was told, which its file keeps beside the optimizer."""

import argparse

import torch
import torch.distributed as dist
from data import batches
from torch.nn.parallel import DistributedDataParallel


def train(opt, path):
    model = torch.nn.Linear(8, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    begin = 0
    if opt.resume:
        kept = torch.load(path, map_location="cpu")
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        begin = kept["epoch"] + 1
    model = DistributedDataParallel(model)
    for epoch in range(begin, opt.epochs):
        for batch in batches(epoch):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            state = {
                "epoch": epoch,
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "opt": vars(opt),
            }
            torch.save(state, f"{path}.new")


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    opt = argparse.Namespace(resume="last.pt", epochs=3)
    told = torch.load(opt.resume, map_location="cpu")["opt"]
    opt = argparse.Namespace(**told)
    train(opt, opt.resume)
