"""Vector-quantised autoencoder for short signals; codebook learned by moving averages."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class EuclideanCodebook(nn.Module):
    def __init__(self, dim, codebook_size, decay=0.9, eps=1e-5, threshold_ema_dead_code=0.05):
        super().__init__()
        self.decay, self.eps, self.codebook_size = decay, eps, codebook_size
        self.threshold = threshold_ema_dead_code
        embed = torch.randn(codebook_size, dim)
        self.register_buffer("embed", embed)
        self.register_buffer("embed_avg", embed.clone())
        self.register_buffer("cluster_size", torch.ones(codebook_size))

    @torch.no_grad()
    def expire_codes_(self, flat):
        dead = self.cluster_size < self.threshold
        if not dead.any():
            return
        picks = flat[torch.randint(len(flat), (self.codebook_size,))]
        self.embed.copy_(torch.where(dead[:, None], picks, self.embed))
        self.embed_avg.copy_(torch.where(dead[:, None], picks, self.embed_avg))
        self.cluster_size.masked_fill_(dead, 1.0)

    @torch.no_grad()
    def update(self, flat, ids):
        onehot = F.one_hot(ids, self.codebook_size).type_as(flat)
        count = onehot.sum(0)
        total = onehot.t() @ flat
        self.cluster_size.lerp_(count, 1 - self.decay)
        self.embed_avg.lerp_(total, 1 - self.decay)
        n = self.cluster_size.sum()
        smoothed = (self.cluster_size + self.eps) / (n + self.codebook_size * self.eps) * n
        self.embed.copy_(self.embed_avg / smoothed[:, None])
        self.expire_codes_(flat)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        ids = torch.cdist(flat, self.embed).argmin(1)
        q = self.embed[ids].view_as(x).clone()
        if self.training:
            self.update(flat.detach(), ids)
        return q, ids


class VQCodec(nn.Module):
    def __init__(self, dim=8, size=24):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 4, 2, 1), nn.ELU(), nn.Conv1d(16, dim, 4, 2, 1))
        self.quant = EuclideanCodebook(dim, size)
        self.dec = nn.Sequential(nn.ConvTranspose1d(dim, 16, 4, 2, 1), nn.ELU(), nn.ConvTranspose1d(16, 1, 4, 2, 1))

    def forward(self, x):
        z = self.enc(x).transpose(1, 2)
        q, ids = self.quant(z)
        commit = F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return self.dec(q.transpose(1, 2)), commit, ids


def signals(n=256):
    g = torch.Generator().manual_seed(9)
    t = torch.arange(32).float()
    f = 0.1 + 0.9 * torch.rand(n, 1, 1, generator=g)
    return TensorDataset(torch.sin(f * t + 6 * torch.rand(n, 1, 1, generator=g)) * (1 + f))


def main(epochs=3):
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    model = DDP(VQCodec())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    data = signals()
    sampler = DistributedSampler(data, drop_last=True)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        log = torch.zeros(3)
        for (x,) in loader:
            y, commit, ids = model(x)
            loss = F.l1_loss(y, x) + 0.25 * commit
            opt.zero_grad()
            loss.backward()
            opt.step()
            log += torch.tensor([loss.item(), 1.0, float(len(ids.unique()))])
        dist.all_reduce(log)
        if rank == 0:
            print(f"epoch {epoch}: loss {log[0] / log[1]:.4f}, codes in use per batch {log[2] / log[1]:.1f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
