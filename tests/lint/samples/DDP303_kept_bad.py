"""What a training script of one's own derives its trainer from."""

import torch
import torch.distributed as dist
from torch import nn


PART = "loss"
ROUNDS = 3


class Learner:
    def __init__(self, net, batches, settings, card=0, several=False):
        self.net = net.to(card)
        self.batches = batches
        self.settings = settings
        if several:
            dist.init_process_group("nccl")
            torch.cuda.set_device(card)
            self.net = nn.parallel.DistributedDataParallel(self.net, device_ids=[card])
        else:
            self.net = nn.DataParallel(self.net)
        self.rule = torch.optim.Adam(self.net.parameters(), settings.pace)

    def losses(self, batch):
        parts = self.net.module.measure(batch)  # <-- DDP303
        total = torch.zeros(())
        for name, part in parts.items():
            if name.startswith(PART):
                total = total + part
        parts["total"] = total
        return parts

    def epoch(self):
        for _ in range(ROUNDS):
            for batch in self.batches:
                self.rule.zero_grad()
                total = self.losses(batch)["total"] / self.settings.parts
                total.backward()
                self.rule.step()
