import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class BaseTask:
    def __init__(self, steps, resume=False):
        self.rank, self.steps, self.step = dist.get_rank(), steps, 0
        torch.manual_seed(0)
        self.net = self.build_model()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        if resume:
            self.resume()
        self.model = DistributedDataParallel(self.net)

    def run(self):
        while self.step < self.steps:
            x, y = self.batch(self.step)
            loss = (self.model(x) - y).pow(2).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
        self.log(f"step {self.step} loss {loss.item():.3f}")
        self.save()
