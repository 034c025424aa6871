import torch
import torch.distributed as dist


def everyones(x):
    parts = [torch.zeros_like(x)] * dist.get_world_size()  # <-- DDP420
    dist.all_gather(parts, x)
    return torch.cat(parts)


class Meter:
    def __init__(self, size):
        self.buffer = torch.empty(size)
        self.all = [self.buffer] * 4  # <-- DDP420

    def share(self, value):
        dist.all_gather(tensor_list=self.all, tensor=value)
        return self.all


def one_name(x):
    empty = torch.empty_like(x)
    outputs = [empty for _ in range(dist.get_world_size())]  # <-- DDP420
    dist.all_gather(outputs, x)
    return outputs
