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


def resume(net, optimizer, scheduler, path):
    checkpoint = torch.load(path, map_location="cpu")
    net.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    return checkpoint["epoch"] + 1


def begin_from(net, path):
    checkpoint = torch.load(path, map_location="cpu")
    net.load_state_dict(checkpoint["model"])


def resume_by_parts(parts, path):
    checkpoint = torch.load(path, map_location="cpu")
    for name, part in parts.items():
        part.load_state_dict(checkpoint[name])
    return checkpoint["optimizer"]


def resume_elsewhere(trainer, path):
    checkpoint = torch.load(path, map_location="cpu")
    trainer.optimizer.load_state_dict(checkpoint["optimizer"])
    trainer.restore_the_rest(checkpoint)


def other_file(optimizer, path):
    checkpoint = torch.load(path, map_location="cpu")
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["step_of_the_other_file"]
