"""One-stage detector with a runner, hooks and a registry."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

REGISTRY = {}


def register(cls):
    REGISTRY[cls.__name__] = cls
    return cls


def build(cfg, **extra):
    cfg = dict(cfg)
    return REGISTRY[cfg.pop("type")](**cfg, **extra)


@register
class GridDetector(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU())
        self.cls = nn.Conv2d(width, classes + 1, 1)
        self.reg = nn.Conv2d(width, 4, 1)

    def forward(self, img):
        f = self.stem(img)
        return self.cls(f).flatten(2).transpose(1, 2), self.reg(f).flatten(2).transpose(1, 2)


@register
class FocalCriterion:
    def __init__(self, classes):
        self.background = classes

    def __call__(self, scores, deltas, labels, targets):
        losses = {"loss_cls": F.cross_entropy(scores.flatten(0, 1), labels.flatten())}
        pos = labels != self.background
        weight = pos[..., None].float()
        losses["loss_bbox"] = (F.smooth_l1_loss(deltas, targets, reduction="none") * weight).sum() / labels.numel()
        if pos.any():
            losses["pos_hits"] = ((scores.argmax(-1) == labels) & pos).float().sum()
        return losses


@register
class LossLogHook:
    def __init__(self, interval):
        self.interval = interval

    def after_iter(self, runner):
        if runner.it % self.interval == 0 and runner.rank == 0:
            print(runner.it, {k: round(v, 4) for k, v in runner.log_vars.items()}, flush=True)


class Runner:
    def __init__(self, model, criterion, opt, hooks):
        self.model, self.criterion, self.opt, self.hooks = model, criterion, opt, hooks
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.it = 0

    def parse_losses(self, losses):
        total = sum(v for k, v in losses.items() if k.startswith("loss"))
        self.log_vars = {}
        for name, value in losses.items():
            value = value.detach().clone()
            dist.reduce(value, dst=0)
            self.log_vars[name] = value.item() / self.world
        return total

    def run(self, batches):
        for img, labels, targets in batches:
            loss = self.parse_losses(self.criterion(*self.model(img), labels, targets))
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.it += 1
            for h in self.hooks:
                h.after_iter(self)


def scenes(rank, n, classes):
    g = torch.Generator().manual_seed(rank + 21)
    for i in range(n):
        img = torch.randn(2, 3, 16, 16, generator=g)
        objects = torch.rand(2, 16, generator=g) < (0.0 if (i + rank) % 7 == 6 else 0.3)
        labels = torch.where(objects, torch.randint(0, classes, (2, 16), generator=g), torch.tensor(classes))
        yield img, labels, torch.randn(2, 16, 4, generator=g)


def main():
    cfg = dict(model=dict(type="GridDetector", width=12, classes=4), loss=dict(type="FocalCriterion", classes=4),
               hooks=[dict(type="LossLogHook", interval=5)])
    torch.manual_seed(1)
    net = DistributedDataParallel(build(cfg["model"]))
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    runner = Runner(net, build(cfg["loss"]), opt, [build(h) for h in cfg["hooks"]])
    runner.run(scenes(dist.get_rank(), 14, 4))
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
