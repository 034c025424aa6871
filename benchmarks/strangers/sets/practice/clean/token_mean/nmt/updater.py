import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Updater:
    def __init__(self, model, criterion, lr):
        self.model = DDP(model)
        self.criterion = criterion
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr, betas=(0.9, 0.98))
        self.world = dist.get_world_size()
        self._stats = torch.zeros(2, dtype=torch.float64)

    def step(self, src, tgt):
        logits = self.model(src, tgt[:, :-1])
        total, ntokens = self.criterion(logits, tgt[:, 1:])
        all_tokens = ntokens.clone()
        dist.all_reduce(all_tokens)
        loss = total * self.world / all_tokens
        self.opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.opt.step()
        self._stats += torch.tensor([total.item(), ntokens.item()], dtype=torch.float64)

    def pop_average(self):
        stats = self._stats.clone()
        dist.all_reduce(stats)
        self._stats.zero_()
        return (stats[0] / stats[1]).item()
