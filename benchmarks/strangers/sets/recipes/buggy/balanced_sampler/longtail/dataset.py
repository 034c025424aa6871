import torch


class LongTail(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(1)
        self.y = torch.multinomial(torch.tensor([0.8, 0.15, 0.05]), n, replacement=True, generator=g)
        self.x = torch.randn(n, 5, generator=g) + self.y[:, None]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i], i
