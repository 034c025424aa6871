"""torchrun --nproc_per_node 2 train.py"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from data import Shelf
from detector import Detector, parse_losses

cfg = dict(
    model=dict(
        width=16,
        heads=[dict(type="CenterHead", weight=2.0), dict(type="TextHead", kinds=4)],
    ),
    data=dict(n=160, seed=3),
    loader=dict(batch_size=4, drop_last=True),
    optim=dict(lr=3e-3),
    epochs=3,
    log_every=10,
    seed=21,
)


class Runner:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg["seed"])
        data = Shelf(**cfg["data"])
        self.sampler = DistributedSampler(data, seed=cfg["seed"])
        self.loader = DataLoader(data, sampler=self.sampler, **cfg["loader"])
        self.model = DistributedDataParallel(Detector(cfg["model"]))
        self.optim = torch.optim.AdamW(self.model.parameters(), **cfg["optim"])
        self.log_group = dist.new_group(backend="gloo")
        self.it = 0

    def log(self, epoch, log_vars):
        if dist.get_rank() == 0:
            text = ", ".join(f"{k}: {v:.4f}" for k, v in log_vars.items())
            print(f"Epoch [{epoch}] iter {self.it}  {text}", flush=True)

    def train_step(self, image, target):
        loss, log_vars = parse_losses(self.model(image, target), group=self.log_group)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return log_vars

    def run(self):
        for epoch in range(self.cfg["epochs"]):
            self.sampler.set_epoch(epoch)
            for image, target in self.loader:
                log_vars = self.train_step(image, target)
                self.it += 1
                if self.it % self.cfg["log_every"] == 0:
                    self.log(epoch, log_vars)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Runner(cfg).run()
    dist.barrier()
    dist.destroy_process_group()
