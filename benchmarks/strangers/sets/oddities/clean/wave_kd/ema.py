import copy

import torch


class SlowWeights:
    """Averaged copy of a net. Every `sync_every` updates the net itself is set back to the average."""

    def __init__(self, net, decay=0.9, sync_every=10):
        self.net = net
        self.avg = copy.deepcopy(net).requires_grad_(False)
        self.decay = decay
        self.sync_every = sync_every
        self.count = 0

    @torch.no_grad()
    def update(self):
        self.count += 1
        for a, p in zip(self.avg.parameters(), self.net.parameters()):
            a.lerp_(p, 1 - self.decay)
        if self.count % self.sync_every == 0:
            for a, p in zip(self.avg.parameters(), self.net.parameters()):
                p.copy_(a)
