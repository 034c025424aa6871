import torch
import torch.nn as nn


class TwoTower(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.users = nn.Embedding(n_users, dim)
        self.items = nn.Embedding(n_items, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, u, i):
        q = self.proj(self.users(u))
        scores = q @ self.items(i).t()
        target = torch.arange(len(u))
        return nn.functional.cross_entropy(scores, target)

    @torch.no_grad()
    def rank_items(self, u):
        return self.proj(self.users(u)) @ self.items.weight.t()
