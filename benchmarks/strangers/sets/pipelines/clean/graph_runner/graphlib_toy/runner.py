import logging

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from .data import EmptyGraphError, normalize

logger = logging.getLogger("graphlib")


class EpochRunner:
    def __init__(self, model, dataset, lr, batch_size):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.sampler = DistributedSampler(dataset, shuffle=False)
        self.loader = DataLoader(dataset, batch_size=batch_size, sampler=self.sampler)
        self.iter, self.skipped = 0, 0

    def run(self, max_epochs):
        for epoch in range(max_epochs):
            self.sampler.set_epoch(epoch)
            for batch in self.loader:
                self.train_iter(batch)
            loss = self.epoch_loss()
            if dist.get_rank() == 0:
                print(f"epoch {epoch} iter {self.iter} skipped {self.skipped} loss {loss:.4f}", flush=True)

    def train_iter(self, batch):
        nodes, adj, y = batch
        bad = torch.zeros(1)
        try:
            adj = normalize(adj)
        except EmptyGraphError as e:
            logger.warning("skipping batch: %s", e)
            bad += 1
        dist.all_reduce(bad)
        if bad.item():
            self.skipped += 1
            return
        loss = F.mse_loss(self.model(nodes, adj), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.last_loss = loss.detach()
        self.iter += 1

    def epoch_loss(self):
        losses = [torch.zeros(()) for _ in range(dist.get_world_size())]
        dist.all_gather(losses, self.last_loss)
        return torch.stack(losses).mean().item()
