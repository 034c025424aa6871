"""Two-headed segmentor (classes + edges) driven by a config dict, a registry and a tiny runner."""
from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

MODELS = {}


def register(cls):
    MODELS[cls.__name__] = cls
    return cls


def build(cfg):
    cfg = dict(cfg)
    return MODELS[cfg.pop("type")](**cfg)


class Scenes(Dataset):
    def __init__(self, n, size=8):
        g = torch.Generator().manual_seed(3)
        self.img = torch.randn(n, 3, size, size, generator=g)
        self.seg = torch.randint(0, 3, (n, size, size), generator=g)
        self.edge = (torch.rand(n, size, size, generator=g) < 0.2).float()
        self.edge[torch.rand(n, generator=g) < 0.5] = 0.0

    def __len__(self):
        return len(self.img)

    def __getitem__(self, i):
        return self.img[i], self.seg[i], self.edge[i]


@register
class EdgeSegmentor(nn.Module):
    def __init__(self, width=8, num_classes=3, edge_weight=0.4):
        super().__init__()
        self.backbone = nn.Conv2d(3, width, 3, padding=1)
        self.decode_head = nn.Conv2d(width, num_classes, 1)
        self.edge_head = nn.Conv2d(width, 1, 1)
        self.edge_weight = edge_weight
        self.register_buffer("pixel_mean", torch.full((3, 1, 1), 0.1))

    def forward(self, img, seg, edge):
        feat = F.relu(self.backbone(img - self.pixel_mean))
        logits, edge_logits = self.decode_head(feat), self.edge_head(feat)[:, 0]
        losses = OrderedDict()
        losses["decode.loss_seg"] = F.cross_entropy(logits, seg)
        losses["edge.loss_edge"] = self.edge_weight * F.binary_cross_entropy_with_logits(edge_logits, edge)
        losses["decode.acc_seg"] = (logits.argmax(1) == seg).float().mean()
        hit = ((edge_logits > 0).float() == edge).float()
        if edge.any():
            losses["edge.acc_edge"] = (hit * edge).sum() / edge.sum()
        return losses


def parse_losses(losses):
    loss = sum(v for k, v in losses.items() if "loss" in k)
    log_vars = OrderedDict((k, v.detach()) for k, v in losses.items())
    log_vars["loss"] = loss.detach()
    return loss, log_vars


def sync_log_vars(log_vars):
    for name, value in log_vars.items():
        value = value.clone()
        dist.all_reduce(value.div_(dist.get_world_size()))
        log_vars[name] = value.item()
    return log_vars


class Runner:
    def __init__(self, cfg):
        torch.manual_seed(cfg["seed"])
        self.model = DistributedDataParallel(build(cfg["model"]))
        self.optimizer = torch.optim.SGD(self.model.parameters(), **cfg["optimizer"])
        data = Scenes(cfg["num_images"])
        self.sampler = DistributedSampler(data, seed=cfg["seed"])
        self.loader = DataLoader(data, batch_size=cfg["samples_per_rank"], sampler=self.sampler)
        self.max_epochs = cfg["max_epochs"]

    def train_step(self, batch):
        loss, log_vars = parse_losses(self.model(*batch))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return sync_log_vars(log_vars)

    def run(self):
        for epoch in range(self.max_epochs):
            self.sampler.set_epoch(epoch)
            for it, batch in enumerate(self.loader):
                log_vars = self.train_step(batch)
                if dist.get_rank() == 0 and it % 4 == 0:
                    text = ", ".join(f"{k}: {v:.3f}" for k, v in log_vars.items())
                    print(f"Epoch [{epoch}][{it}] {text}", flush=True)


CFG = dict(
    seed=11,
    model=dict(type="EdgeSegmentor", width=8),
    optimizer=dict(lr=0.05, momentum=0.9),
    num_images=48,
    samples_per_rank=2,
    max_epochs=2,
)

if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    Runner(CFG).run()
    dist.destroy_process_group()
