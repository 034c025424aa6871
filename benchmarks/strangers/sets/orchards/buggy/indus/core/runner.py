import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from . import comm
from .callbacks import build_callbacks
from .registry import MODELS


class Runner:
    def __init__(self, cfg, train_loader, val_loader):
        torch.manual_seed(cfg["seed"])
        self.cfg = cfg
        self.net = DistributedDataParallel(MODELS.build(cfg["model"]))
        self.opt = torch.optim.SGD(self.net.parameters(), **cfg["optimizer"])
        self.train_loader, self.val_loader = train_loader, val_loader
        self.callbacks = build_callbacks(cfg["callbacks"])
        self.averaged = None
        self.logs = {}
        self.epoch = 0

    def call(self, point):
        for c in self.callbacks:
            getattr(c, point)(self)

    @torch.no_grad()
    def evaluate(self):
        net = self.net if self.averaged is None else self.averaged
        net.eval()
        hit = n = loss = 0.0
        for x, y in self.val_loader:
            out = net(x)
            loss += F.cross_entropy(out, y, reduction="sum").item()
            hit += (out.argmax(1) == y).sum().item()
            n += len(y)
        loss, hit, n = comm.summed(loss, hit, n)
        return {"val_loss": loss / n, "val_acc": hit / n}

    def run(self):
        self.call("before_run")
        for self.epoch in range(self.cfg["epochs"]):
            self.net.train()
            self.train_loader.sampler.set_epoch(self.epoch)
            for x, y in self.train_loader:
                loss = F.cross_entropy(self.net(x), y)
                self.opt.zero_grad(set_to_none=True)
                loss.backward()
                self.opt.step()
                self.call("after_step")
            self.logs.update(train_loss=loss.item(), **self.evaluate())
            self.call("after_epoch")
