import torch
import torch.distributed as dist


def save_checkpoint(model, path):
    torch.save(model.state_dict(), path)


def refresh(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    return torch.load(path)  # <-- DDP501


def refresh_through(model, path):
    if dist.get_rank() == 0:
        save_checkpoint(model, path)
    return torch.load(path)  # <-- DDP501


def save_on_master(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)


def refresh_after(model, path):
    save_on_master(model, path)
    return torch.load(path)  # <-- DDP501
