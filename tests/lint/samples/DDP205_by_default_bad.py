# An option with a default is never None: every rank is seeded by the same number.
import argparse
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def set_seed(options):
    if options.seed is None:
        options.seed = random.randint(1, 10000)
    random.seed(options.seed)
    torch.manual_seed(options.seed)


def train(data, options):
    set_seed(options)
    dist.init_process_group("nccl")
    sampler = torch.utils.data.DistributedSampler(data)
    loader = torch.utils.data.DataLoader(data, 8, sampler=sampler)
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    model = DDP(nn.Linear(8, 8).cuda(), device_ids=[gpu])
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        loader.sampler.set_epoch(epoch)
        for x in loader:
            x = x.cuda()
            t = torch.randint(0, 1000, (len(x),), device="cuda")  # <-- DDP205
            noise = torch.randn_like(x)
            loss = (model(x + noise * t[:, None] / 1000) - noise).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    import images

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=42)
    train(images.training(), parser.parse_args())
