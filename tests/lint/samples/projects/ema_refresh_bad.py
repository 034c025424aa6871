"""Detection solver: EMA copied too early, refreshed from a file that rank 0 is writing."""

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
        self.mix = lambda old, new: decay * old + (1 - decay) * new  # <-- DDP507

    def update(self, model):
        for old, new in zip(self.module.parameters(), model.parameters()):
            old.data.copy_(self.mix(old.data, new.data))


class Solver:
    def build(self, net, data):
        local_rank = int(os.environ["LOCAL_RANK"])
        self.sampler = DistributedSampler(data)  # <-- DDP201
        dist.init_process_group("gloo")
        self.ema = Ema(net, decay=0.999)  # <-- DDP506
        self.model = DDP(net)
        self.loader = DataLoader(data, batch_size=4, sampler=self.sampler)
        if local_rank in (0, 1):
            self.pair = dist.new_group([0, 1])  # <-- DDP408

    def refresh(self, best):
        if dist.get_rank() == 0:
            torch.save(self.model.module.state_dict(), best)
        state = torch.load(best, map_location="cpu")  # <-- DDP501
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
        return self.model.export()  # <-- DDP318
