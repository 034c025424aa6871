import torch
from torch.utils.data import TensorDataset


def make_plates(n, side, seed):
    g = torch.Generator().manual_seed(seed)
    wh = torch.rand(n, 2, generator=g) * 0.3 + 0.15
    cxy = torch.rand(n, 2, generator=g) * (1 - wh) + wh / 2
    box = torch.cat([cxy, wh], 1)
    grid = (torch.arange(side) + 0.5) / side
    inx = (grid[None] - cxy[:, :1]).abs() < wh[:, :1] / 2
    iny = (grid[None] - cxy[:, 1:]).abs() < wh[:, 1:] / 2
    img = (iny[:, :, None] & inx[:, None, :]).float().unsqueeze(1)
    img = img + 0.2 * torch.randn(img.shape, generator=g)
    return TensorDataset(img, box)
