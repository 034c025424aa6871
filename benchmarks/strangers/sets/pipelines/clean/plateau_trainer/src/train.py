import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from src import losses
from src.utils.distributed import reduce_loss_dict


class PlateauTrainer:
    def __init__(self, args):
        self.args, self.rank = args, dist.get_rank()
        self.model = DistributedDataParallel(torch.nn.Linear(5, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=args.lr)
        self.sched = torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt, factor=0.5, patience=args.patience)
        g = torch.Generator().manual_seed(30 + self.rank)
        self.x = torch.randn(64, 5, generator=g)
        self.y = self.x.sum(1, keepdim=True) + (0.2 + self.rank) * torch.randn(64, 1, generator=g)

    def train_step(self, x, y):
        d = losses.compute(self.model(x), y)
        self.opt.zero_grad()
        sum(d.values()).backward()
        self.opt.step()

    def run(self):
        for epoch in range(self.args.epochs):
            for x, y in zip(self.x[:48].split(8), self.y[:48].split(8)):
                self.train_step(x, y)
            with torch.no_grad():
                val = reduce_loss_dict(losses.compute(self.model.module(self.x[48:]), self.y[48:]))
            self.sched.step(val["l2"].item())
        w = self.model.module.weight.detach().flatten().tolist()
        print(f"rank {self.rank} lr {self.opt.param_groups[0]['lr']:.5f} val {val['l2']:.4f} w {[round(v, 4) for v in w]}", flush=True)
        dist.barrier()
