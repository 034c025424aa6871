"""What the model is fed, and nobody has asked before, is each rank's own."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, net, critic):
        self.net, self.critic = DDP(net), DDP(critic)
        self.of_net = torch.optim.Adam(self.net.parameters())
        self.of_critic = torch.optim.Adam(self.critic.parameters())

    def step(self, x):
        self.of_net.zero_grad()
        out = self.net(x, w=x.weight)
        out.square().mean().backward()
        self.of_net.step()
        if x.weight > 0:  # <-- DDP307
            self.of_critic.zero_grad()
            self.critic(out.detach()).mean().backward()
            self.of_critic.step()


def main(net, critic, loader):
    dist.init_process_group("nccl")
    trainer = Trainer(net, critic)
    for x in loader:
        trainer.step(x)
