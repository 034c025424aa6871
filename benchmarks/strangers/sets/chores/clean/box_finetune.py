import argparse

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Detector(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.box_head = nn.Linear(width, 4)
        self.cls_head = nn.Linear(width, 3)

    def freeze_backbone(self):
        for p in self.backbone.parameters():
            p.requires_grad = False

    def unfreeze_backbone(self):
        for p in self.backbone.parameters():
            p.requires_grad = True

    def forward(self, x):
        feat = self.backbone(x)
        return self.box_head(feat), self.cls_head(feat)


def build_data(n=256):
    g = torch.Generator().manual_seed(4)
    x = torch.randn(n, 20, generator=g)
    boxes = torch.sigmoid(x @ torch.randn(20, 4, generator=g))
    labels = (x @ torch.randn(20, 3, generator=g)).argmax(1)
    return TensorDataset(x, boxes, labels)


class FinetuneLoop:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        dataset = build_data()
        self.sampler = DistributedSampler(dataset)
        self.loader = DataLoader(dataset, batch_size=args.batch_size, sampler=self.sampler)
        net = Detector()
        net.freeze_backbone()
        self.model = DDP(net)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.lr, momentum=0.9)
        self.iteration = 0

    def step(self, x, boxes, labels):
        pred_boxes, logits = self.model(x)
        loss = nn.functional.smooth_l1_loss(pred_boxes, boxes) + nn.functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self):
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            total = 0.0
            for batch in self.loader:
                if self.iteration == self.args.unfreeze_at:
                    self.model.module.unfreeze_backbone()
                    self.model = DDP(self.model.module)
                    if self.rank == 0:
                        print(f"iteration {self.iteration}: backbone is trainable now", flush=True)
                total += self.step(*batch)
                self.iteration += 1
            if self.rank == 0:
                print(f"epoch {epoch} loss {total / len(self.loader):.4f}", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--unfreeze-at", type=int, default=8)
    args = p.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    FinetuneLoop(args).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
