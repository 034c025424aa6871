import torch
from torch.utils.data import Dataset


class Pairs(Dataset):
    """A hidden code seen through two noisy linear maps."""

    def __init__(self, n, seed, code=8, image=32, text=20):
        shared = torch.Generator().manual_seed(0)
        to_image = torch.randn(code, image, generator=shared)
        to_text = torch.randn(code, text, generator=shared)
        g = torch.Generator().manual_seed(seed)
        z = torch.randn(n, code, generator=g)
        self.image = z @ to_image + 0.3 * torch.randn(n, image, generator=g)
        self.text = z @ to_text + 0.3 * torch.randn(n, text, generator=g)

    def __len__(self):
        return len(self.image)

    def __getitem__(self, i):
        return self.image[i], self.text[i]
