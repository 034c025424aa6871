import torch
from torch.utils.data import Dataset


class Molecules(Dataset):
    """Random small graphs with dense adjacency; the target counts triangles."""

    def __init__(self, n, size=9, seed=0):
        g = torch.Generator().manual_seed(seed)
        a = (torch.rand(n, size, size, generator=g) < 0.28).float().triu(1)
        self.adj = a + a.transpose(1, 2)
        self.feat = torch.randn(n, size, 4, generator=g) * 0.2 + self.adj.sum(-1, keepdim=True)
        tri = torch.diagonal(self.adj @ self.adj @ self.adj, dim1=1, dim2=2).sum(1) / 6
        self.y = (tri - tri.mean()) / tri.std()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return self.feat[k], self.adj[k], self.y[k]
