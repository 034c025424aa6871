"""A weight that decides which forward is run is a setting, though the model is told it."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, settings, net, critic):
        self.weight = settings["train"].get("weight", 1.0)
        self.net, self.critic = DDP(net), DDP(critic)
        self.of_net = torch.optim.Adam(self.net.parameters())
        self.of_critic = torch.optim.Adam(self.critic.parameters())

    def step(self, x):
        self.of_net.zero_grad()
        if self.weight > 0:
            out = self.net(x, w=self.weight)
        else:
            out = self.net(x, w=0)
        out.square().mean().backward()
        self.of_net.step()
        if self.weight > 0:
            self.of_critic.zero_grad()
            self.critic(out.detach()).mean().backward()
            self.of_critic.step()


def main(settings, net, critic, loader):
    dist.init_process_group("nccl")
    trainer = Trainer(settings, net, critic)
    for x in loader:
        trainer.step(x)
