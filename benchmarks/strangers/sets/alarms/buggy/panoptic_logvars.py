import os
from collections import OrderedDict

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


LOG_GROUP = None


class BaseModel(nn.Module):
    def parse_losses(self, losses):
        log_vars = OrderedDict((k, v.mean()) for k, v in losses.items())
        loss = sum(v for k, v in log_vars.items() if "loss" in k)
        log_vars["loss"] = loss
        for name, value in log_vars.items():
            if dist.is_available() and dist.is_initialized():
                value = value.data.clone()
                dist.all_reduce(value.div_(dist.get_world_size()), group=LOG_GROUP)
            log_vars[name] = value.item()
        return loss, log_vars

    def train_step(self, data):
        losses = self(**data)
        return self.parse_losses(losses)


class TwoStage(BaseModel):
    def __init__(self, ch=16, classes=4):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, ch), nn.ReLU(), nn.Linear(ch, ch), nn.ReLU())
        self.rpn = nn.Linear(ch, 1)
        self.roi = nn.Linear(ch, classes)

    def forward(self, img, objectness, label):
        feat = self.backbone(img)
        score = self.rpn(feat).squeeze(1)
        losses = dict(loss_rpn=F.binary_cross_entropy_with_logits(score, objectness))
        logits = self.roi(feat)
        losses["loss_cls"] = F.cross_entropy(logits, label)
        pos = objectness > 0
        if pos.any():
            losses["roi_acc"] = (logits[pos].argmax(1) == label[pos]).float()
        return losses


def average_gradients(model):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    i = 0
    for p in model.parameters():
        p.grad.copy_(flat[i:i + p.numel()].view_as(p))
        i += p.numel()


def batches(rank, n):
    g = torch.Generator().manual_seed(7)
    for i in range(n):
        img = torch.randn(12, 8, generator=g) + rank
        objectness = (img[:, 0] > 0).float()
        if i == n - 1 and rank == 1:
            objectness.zero_()
        yield dict(img=img, objectness=objectness, label=img[:, :4].argmax(1))


if __name__ == "__main__":
    dist.init_process_group("gloo", init_method="env://")
    LOG_GROUP = dist.new_group()
    rank = int(os.environ["RANK"])
    torch.manual_seed(3)
    model = TwoStage()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for it, data in enumerate(batches(rank, 12)):
        loss, log_vars = model.train_step(data)
        opt.zero_grad()
        loss.backward()
        average_gradients(model)
        opt.step()
        if rank == 0:
            print(f"iter {it}: " + ", ".join(f"{k} {v:.3f}" for k, v in log_vars.items()), flush=True)
    dist.destroy_process_group()
