import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .gather import concat_all_gather


class Engine:
    def __init__(self, opt):
        self.opt, self.rank, self.world = opt, dist.get_rank(), dist.get_world_size()
        torch.manual_seed(4)
        self.centres = torch.randn(opt.identities, 10)
        self.pids = torch.arange(opt.gallery) % opt.identities
        self.images = self.centres[self.pids] + 0.3 * torch.randn(opt.gallery, 10)
        self.net = DistributedDataParallel(nn.Sequential(nn.Linear(10, opt.dim), nn.ReLU(), nn.Linear(opt.dim, opt.identities)))
        self.optim = torch.optim.Adam(self.net.parameters(), lr=opt.lr)

    def shard(self, even=False):
        idx = torch.arange(self.rank, self.opt.gallery, self.world)
        if even:
            idx = idx[: self.opt.gallery // self.world]
        return self.images[idx], self.pids[idx]

    def run(self):
        for epoch in range(self.opt.epochs):
            x, y = self.shard(even=True)
            for i in range(0, len(x), 6):
                loss = F.cross_entropy(self.net(x[i:i + 6]), y[i:i + 6])
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
            rank1 = self.test()
            if self.rank == 0:
                print(f"epoch {epoch} rank-1 {rank1:.3f}", flush=True)

    @torch.no_grad()
    def test(self):
        x, y = self.shard()
        feats = concat_all_gather(F.normalize(self.net(x), dim=1))
        pids = concat_all_gather(y)
        sim = feats @ feats.T
        sim.fill_diagonal_(-2)
        return (pids[sim.argmax(1)] == pids).float().mean().item()
