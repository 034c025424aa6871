import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Runner:
    def __init__(self, net, train_set, val_set, cfg):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.net = DDP(net)
        self.sampler = DistributedSampler(train_set)
        self.train_dl = DataLoader(train_set, cfg["bs"], sampler=self.sampler)
        self.val_dl = DataLoader(val_set, cfg["bs"])
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=cfg["lr"])
        self.best = 0.0

    def run(self):
        for epoch in range(self.cfg["epochs"]):
            self.sampler.set_epoch(epoch)
            self.train_epoch()
            if self.rank == 0:
                self.validate(epoch)
            dist.barrier()

    def train_epoch(self):
        self.net.train()
        for img, mask in self.train_dl:
            loss = F.cross_entropy(self.net(img), mask)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()

    @torch.no_grad()
    def validate(self, epoch):
        self.net.eval()
        inter = union = 0
        for img, mask in self.val_dl:
            pred = self.net.module(img).argmax(1)
            inter += ((pred == 1) & (mask == 1)).sum().item()
            union += ((pred == 1) | (mask == 1)).sum().item()
        iou = inter / max(union, 1)
        print(f"[{epoch}] IoU {iou:.3f}", flush=True)
        if iou > self.best:
            self.best = iou
            torch.save(self.net.module.state_dict(), "/tmp/seg_best.pt")
