import torch


class CorruptSample(RuntimeError):
    pass


def read(step, rank):
    if (step, rank) in ((5, 1), (11, 0)):
        raise CorruptSample(f"record {step}")
    g = torch.Generator().manual_seed(step * 2 + rank)
    return torch.randn(8, 4, generator=g)
