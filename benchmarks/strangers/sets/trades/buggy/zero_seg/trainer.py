import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from nets import Blobs, TinyUNet


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        torch.manual_seed(cfg.data.seed)

        self.model = DDP(TinyUNet(cfg.width, cfg.data.n_classes))
        # optimizer state is the bulk of the memory for the 3D version of this
        # net, so it is sharded
        self.optim = ZeroRedundancyOptimizer(
            self.model.parameters(),
            optimizer_class=torch.optim.AdamW,
            lr=cfg.optim.lr,
            weight_decay=cfg.optim.weight_decay,
            betas=tuple(cfg.optim.betas),
        )
        train = Blobs(cfg.data.n_train, cfg.data.size, cfg.data.seed)
        val = Blobs(cfg.data.n_val, cfg.data.size, cfg.data.seed + 1)
        self.sampler = DistributedSampler(train, shuffle=True, drop_last=True)
        self.train_loader = DataLoader(train, cfg.batch_size, sampler=self.sampler)
        self.val_loader = DataLoader(
            val, cfg.batch_size, sampler=DistributedSampler(val, shuffle=False)
        )

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            loss = self.train_epoch()
            miou = self.validate()
            if self.rank == 0:
                print(f"epoch {epoch} loss {loss:.4f} miou {miou:.3f}", flush=True)
            if (epoch + 1) % self.cfg.save_every == 0:
                self.save(epoch)
        dist.barrier()

    def train_epoch(self):
        self.model.train()
        acc = torch.zeros(2)
        for x, y in self.train_loader:
            self.optim.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optim.step()
            acc += torch.tensor([loss.item() * len(x), len(x)])
        dist.all_reduce(acc)
        return (acc[0] / acc[1]).item()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        k = self.cfg.data.n_classes
        conf = torch.zeros(k, k)
        for x, y in self.val_loader:
            pred = self.model(x).argmax(1)
            conf += torch.bincount((y * k + pred).flatten(), minlength=k * k).view(k, k)
        dist.all_reduce(conf)
        inter = conf.diag()
        return (inter / (conf.sum(0) + conf.sum(1) - inter).clamp(min=1)).mean().item()

    def save(self, epoch):
        if self.rank == 0:
            self.optim.consolidate_state_dict(to=0)
            path = os.path.join(self.cfg.work_dir, f"epoch_{epoch}.pt")
            torch.save(
                {
                    "epoch": epoch,
                    "model": self.model.module.state_dict(),
                    "optim": self.optim.state_dict(),
                },
                path,
            )
            print(f"saved {os.path.basename(path)}", flush=True)
