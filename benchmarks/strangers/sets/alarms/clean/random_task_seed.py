"""Denoiser for survey maps; noise realisations come from a seed that all processes agree on."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class RandomTask:
    def __init__(self):
        s = torch.randint(0, 2 ** 31, (1,))
        dist.broadcast(s, src=0)
        self._shared_seed = int(s)
        self._count = 0

    @property
    def shared_seed(self):
        return self._shared_seed

    def generator(self):
        self._count += 1
        return torch.Generator().manual_seed(self.shared_seed + 1000 * self._count + dist.get_rank())


class GainNoise(RandomTask):
    """Adds noise to the unmasked baselines of a map."""

    def __init__(self, sigma=0.3):
        super().__init__()
        self.sigma = sigma

    def process(self, vis, mask):
        out = vis.clone()
        for b in range(vis.shape[0]):
            if mask[b].all():
                continue
            out[b] += self.sigma * torch.randn(vis.shape[1], generator=self.generator()) * (~mask[b])
        return out


class Survey:
    def __init__(self, rank, world, baselines=12, freqs=20):
        g = torch.Generator().manual_seed(2)
        vis = torch.randn(baselines * world, freqs, generator=g).cumsum(1) * 0.3
        mask = torch.rand(baselines * world, freqs, generator=g) < 0.1
        mask[baselines:] = True          # one half of the array was switched off
        part = slice(rank * baselines, (rank + 1) * baselines)
        self.vis, self.mask = vis[part], mask[part]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    survey, noise = Survey(rank, world), GainNoise()
    examples = [noise.process(survey.vis, survey.mask) for _ in range(3)]
    dist.barrier()
    torch.manual_seed(0)
    net = DDP(nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 20)))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(3):
        for noisy in examples:
            weight = (~survey.mask).float()
            loss = ((net(noisy) - survey.vis) ** 2 * weight).sum() / weight.sum().clamp(min=1)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
