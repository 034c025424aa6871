import torch
from torch.utils.data import TensorDataset


def wafer_maps(count, seed, side=16):
    """Wafer maps with a ring, a scratch or an edge defect.

    Maps come sorted by lot; lots alternate between a clean and a noisy tool.
    """
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    radius = ((yy - side / 2) ** 2 + (xx - side / 2) ** 2).sqrt()
    maps, labels = [], []
    for i in range(count):
        kind = int(torch.randint(0, 3, (1,), generator=g))
        if kind == 0:
            mask = (radius > 3) & (radius < 5)
        elif kind == 1:
            mask = (yy - xx - int(torch.randint(-4, 4, (1,), generator=g))).abs() < 2
        else:
            mask = radius > 7
        lot = i // 8
        noise = 0.6 if lot % 2 == 0 else 2.6
        maps.append(mask.float() + noise * torch.randn(side, side, generator=g))
        labels.append(kind)
    return TensorDataset(torch.stack(maps).unsqueeze(1), torch.tensor(labels))
