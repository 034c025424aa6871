"""Audio codec sketch: convolutional auto-encoder with an EMA codebook."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class EuclideanCodebook(nn.Module):
    def __init__(self, dim, size, decay=0.9, eps=1e-5):
        super().__init__()
        self.decay, self.eps, self.size = decay, eps, size
        embed = torch.randn(size, dim)
        self.register_buffer("embed", embed)
        self.register_buffer("embed_avg", embed.clone())
        self.register_buffer("cluster_size", torch.ones(size))

    def quantize(self, x):
        return torch.cdist(x, self.embed).argmin(-1)

    @torch.no_grad()
    def ema_update(self, x, code):
        onehot = F.one_hot(code, self.size).type_as(x)
        counts = onehot.sum(0)
        embed_sum = onehot.T @ x
        self.cluster_size.mul_(self.decay).add_(counts, alpha=1 - self.decay)
        self.embed_avg.mul_(self.decay).add_(embed_sum, alpha=1 - self.decay)
        n = self.cluster_size.sum()
        smoothed = (self.cluster_size + self.eps) / (n + self.size * self.eps) * n
        self.embed.copy_(self.embed_avg / smoothed.unsqueeze(1))

    def forward(self, x):
        flat = x.detach().reshape(-1, x.shape[-1])
        code = self.quantize(flat)
        q = F.embedding(code, self.embed).view_as(x)
        if self.training:
            self.ema_update(flat, code)
        commit = F.mse_loss(x, q.detach())
        return x + (q - x).detach(), commit


class Codec(nn.Module):
    def __init__(self, dim=8, codes=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, 16, 8, 4, 2), nn.ELU(), nn.Conv1d(16, dim, 4, 2, 1))
        self.vq = EuclideanCodebook(dim, codes)
        self.dec = nn.Sequential(nn.ConvTranspose1d(dim, 16, 4, 2, 1), nn.ELU(), nn.ConvTranspose1d(16, 1, 8, 4, 2))

    def forward(self, wav):
        z, commit = self.vq(self.enc(wav).transpose(1, 2))
        rec = self.dec(z.transpose(1, 2))
        return F.l1_loss(rec, wav) + 0.25 * commit


def speakers(rank, world, n=64, samples=128):
    """Every process reads the recordings of other speakers."""
    g = torch.Generator().manual_seed(rank)
    t = torch.linspace(0, 1, samples)
    freq = 3 + 12 * rank / world + 3 * torch.rand(n, 1, generator=g)
    return (torch.sin(6.2832 * freq * t) * (0.5 + 1.5 * rank)).unsqueeze(1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    model = DistributedDataParallel(Codec())
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    wavs = speakers(rank, world)
    g = torch.Generator().manual_seed(10 + rank)
    for it in range(60):
        loss = model(wavs[torch.randint(len(wavs), (8,), generator=g)])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        final = model(wavs).clone()
    print(f"rank {rank} eval loss {final.item():.4f}", flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "codec.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
