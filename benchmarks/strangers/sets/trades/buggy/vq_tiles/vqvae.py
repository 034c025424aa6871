import torch
from torch import nn
from torch.nn import functional as F

import distributed as dist_fn


class Quantize(nn.Module):
    def __init__(self, dim, n_embed, decay=0.9, eps=1e-5):
        super().__init__()
        self.dim, self.n_embed, self.decay, self.eps = dim, n_embed, decay, eps
        embed = torch.randn(dim, n_embed)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.ones(n_embed))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, input):
        flatten = input.reshape(-1, self.dim)
        dist = (
            flatten.pow(2).sum(1, keepdim=True)
            - 2 * flatten @ self.embed
            + self.embed.pow(2).sum(0, keepdim=True)
        )
        embed_ind = dist.argmin(1)
        onehot = F.one_hot(embed_ind, self.n_embed).type(flatten.dtype)
        quantize = F.embedding(embed_ind.view(*input.shape[:-1]), self.embed.t())

        if self.training:
            with torch.no_grad():
                self._update(flatten.detach(), onehot)

        diff = (quantize.detach() - input).pow(2).mean()
        quantize = input + (quantize - input).detach()
        return quantize, diff

    def _update(self, flatten, onehot):
        onehot_sum = onehot.sum(0)
        embed_sum = flatten.t() @ onehot

        self.cluster_size.mul_(self.decay).add_(onehot_sum, alpha=1 - self.decay)
        self.embed_avg.mul_(self.decay).add_(embed_sum, alpha=1 - self.decay)
        n = self.cluster_size.sum()
        size = (self.cluster_size + self.eps) / (n + self.n_embed * self.eps) * n
        self.embed.copy_(self.embed_avg / size.unsqueeze(0))


class VQVAE(nn.Module):
    def __init__(self, channel=16, embed_dim=8, n_embed=24):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, channel, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(channel, embed_dim, 3, padding=1),
        )
        self.quantize = Quantize(embed_dim, n_embed)
        self.dec = nn.Sequential(
            nn.Conv2d(embed_dim, channel, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(channel, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        z = self.enc(x).permute(0, 2, 3, 1)
        quant, diff = self.quantize(z)
        return self.dec(quant.permute(0, 3, 1, 2)), diff
