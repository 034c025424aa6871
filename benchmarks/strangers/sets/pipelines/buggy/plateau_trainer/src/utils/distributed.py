import torch
import torch.distributed as dist


def reduce_loss_dict(loss_dict):
    """Average the losses over all processes."""
    world_size = dist.get_world_size()
    if world_size < 2:
        return loss_dict
    with torch.no_grad():
        keys = sorted(loss_dict)
        stacked = torch.stack([loss_dict[k].detach() for k in keys])
        dist.reduce(stacked, dst=0)
        if dist.get_rank() == 0:
            stacked /= world_size
        return dict(zip(keys, stacked))
