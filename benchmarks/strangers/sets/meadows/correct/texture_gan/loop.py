import torch
import torch.distributed as dist
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.parallel import DistributedDataParallel


class Adversaries:
    def __init__(self, painter, critic, latent, lr=2e-3):
        self.painter = DistributedDataParallel(painter, broadcast_buffers=False)
        self.critic = DistributedDataParallel(critic, broadcast_buffers=False)
        self.latent = latent
        self.popt = torch.optim.Adam(self.painter.parameters(), lr=lr, betas=(0.5, 0.99))
        self.copt = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.5, 0.99))

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.painter.module(torch.randn(len(real), self.latent))
        score = self.critic(torch.cat([real, fake]))
        label = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
        loss = bce(score, label)
        self.copt.zero_grad()
        loss.backward()
        self.copt.step()
        return loss.item()

    def painter_step(self, n):
        for p in self.critic.parameters():
            p.requires_grad_(False)
        fake = self.painter(torch.randn(n, self.latent))
        loss = bce(self.critic.module(fake), torch.ones(n, 1))
        self.popt.zero_grad()
        loss.backward()
        self.popt.step()
        for p in self.critic.parameters():
            p.requires_grad_(True)
        return loss.item()

    def agreement(self):
        """Largest distance of any weight to that of process 0."""
        worst = torch.zeros(())
        for p in list(self.painter.parameters()) + list(self.critic.parameters()):
            first = p.detach().clone()
            dist.broadcast(first, src=0)
            worst = torch.maximum(worst, (first - p.detach()).abs().max())
        dist.all_reduce(worst, op=dist.ReduceOp.MAX)
        return worst.item()
