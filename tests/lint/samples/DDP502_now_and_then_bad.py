import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(args, model, loader):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(model.cuda(), device_ids=[args.local_rank])
    optimizer = torch.optim.AdamW(net.parameters())
    steps = 0
    while steps < args.num_steps:
        for x in loader:
            optimizer.zero_grad()
            net(x).mean().backward()
            optimizer.step()
            steps += 1
            if steps % args.save_freq == 0:
                path = os.path.join(args.folder, "latest.pth")
                torch.save({"model": net.module.state_dict(), "step": steps}, path)  # <-- DDP502
