"""Detection solver: EMA after the wrap, refreshed from a file that is whole."""

import copy
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Ema:
    def __init__(self, model, decay):
        self.module = copy.deepcopy(model)
        self.decay = decay

    def mix(self, old, new):
        return self.decay * old + (1 - self.decay) * new

    def update(self, model):
        for old, new in zip(self.module.parameters(), model.parameters()):
            old.data.copy_(self.mix(old.data, new.data))


class Solver:
    def build(self, net, data):
        dist.init_process_group("gloo")
        self.sampler = DistributedSampler(data)
        self.model = DDP(net)
        self.ema = Ema(self.model.module, decay=0.999)
        self.loader = DataLoader(data, batch_size=4, sampler=self.sampler)
        self.pair = dist.new_group([0, 1])

    def refresh(self, best):
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), f"{best}.tmp")
            os.replace(f"{best}.tmp", best)
        dist.barrier()
        state = torch.load(best, map_location="cpu")
        self.model.module.load_state_dict(state)
        self.ema.decay = 0.9999

    def fit(self, epochs, best):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        for epoch in range(epochs):
            self.sampler.set_epoch(epoch)
            for batch in self.loader:
                self.model(batch).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
                self.ema.update(self.model.module)
            if epoch == epochs // 2:
                self.refresh(best)
        return self.model.module.export()
