"""Vector quantiser whose codebook follows the encoder output by moving averages."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


class EMAQuantizer(nn.Module):
    def __init__(self, codes, dim, decay=0.9, eps=1e-5, threshold=0.05):
        super().__init__()
        self.decay, self.eps, self.threshold = decay, eps, threshold
        start = torch.randn(codes, dim)
        self.register_buffer("codebook", start)
        self.register_buffer("usage", torch.ones(codes))
        self.register_buffer("total", start.clone())

    def lookup(self, z):
        return torch.cdist(z, self.codebook).argmin(1)

    @torch.no_grad()
    def update(self, z, index):
        hot = F.one_hot(index, len(self.codebook)).type_as(z)
        count, summed = hot.sum(0), hot.t() @ z
        self.usage.mul_(self.decay).add_(count, alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(summed, alpha=1 - self.decay)
        n = self.usage.sum()
        smoothed = (self.usage + self.eps) / (n + len(self.usage) * self.eps) * n
        self.codebook.copy_(self.total / smoothed.unsqueeze(1))

    def forward(self, z):
        with torch.no_grad():
            index = self.lookup(z)
            q = self.codebook[index]
        if self.training:
            self.update(z.detach(), index)
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit, index

    @torch.no_grad()
    def perplexity(self, index):
        """Effective number of codes in use, over all workers."""
        count = torch.bincount(index, minlength=len(self.codebook)).float()
        if dist.is_initialized():
            dist.all_reduce(count)
        p = count / count.sum()
        return torch.exp(-(p * torch.log(p + 1e-10)).sum()).item()
