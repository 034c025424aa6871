import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Task:
    def __init__(self, model, places):
        self.model = model
        self.places = places

    def fit(self, data):
        torch.multiprocessing.spawn(self._work, args=(data,), nprocs=self.places)

    def _work(self, place, data):
        dist.init_process_group("gloo", rank=place, world_size=self.places)
        self.model = nn.parallel.DistributedDataParallel(self.model)
        self.steps = torch.optim.SGD(self.model.parameters(), 0.1)
        shares = DistributedSampler(data, seed=5)
        batches = DataLoader(data, 16, sampler=shares)
        for number in range(9):
            shares.set_epoch(number)
            self._pass(batches)

    def _pass(self, batches):
        for given, wanted in batches:
            self.steps.zero_grad()
            nn.functional.mse_loss(self.model(given), wanted).backward()
            self.steps.step()
