import os

import torch
import torch.distributed as dist


def save(net, optimizer, scheduler, epoch, path):
    state = {
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch,
        "args": {"lr": 0.1},
    }
    if dist.get_rank() == 0:
        torch.save(state, f"{path}.tmp")
        os.replace(f"{path}.tmp", path)
    dist.barrier()


def resume(net, optimizer, path):
    checkpoint = torch.load(path, map_location="cpu")  # <-- DDP509
    net.load_state_dict(checkpoint["model"])
    if "optimizer" in checkpoint:
        optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint.get("epoch", 0)
