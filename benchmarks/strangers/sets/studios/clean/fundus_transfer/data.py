import torch
from torch.utils.data import TensorDataset


def vessels(n, side, seed, task):
    """Bars at one of four angles and two widths; task 'angle' or 'tilted'."""
    g = torch.Generator().manual_seed(seed)
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side), indexing="ij")
    angle = torch.randint(0, 4, (n,), generator=g)
    width = torch.randint(0, 2, (n,), generator=g)
    a = (angle * torch.pi / 4).view(n, 1, 1)
    off = (torch.rand(n, 1, 1, generator=g) - 0.5)
    d = (xx * a.cos() + yy * a.sin() - off).abs()
    img = (d < (0.12 + 0.14 * width.view(n, 1, 1))).float() + 0.5 * torch.randn(n, side, side, generator=g)
    return TensorDataset(img.unsqueeze(1), angle if task == "angle" else angle % 2)
