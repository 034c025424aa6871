import torch
from torch.utils.data import Dataset


class RecipePairs(Dataset):
    """Photo features and ingredient bags of the same dish."""

    def __init__(self, dishes, photo_dim=20, vocab=30, seed=0):
        fixed = torch.Generator().manual_seed(999)
        look, ingredients = torch.randn(6, photo_dim, generator=fixed), torch.randn(6, vocab, generator=fixed)
        g = torch.Generator().manual_seed(seed)
        latent = torch.randn(dishes, 6, generator=g)
        self.photo = latent @ look + 0.2 * torch.randn(dishes, photo_dim, generator=g)
        self.bag = (latent @ ingredients > 1).float()

    def __len__(self):
        return len(self.photo)

    def __getitem__(self, i):
        return self.photo[i], self.bag[i]
