import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from meters import Board

EPOCHS = int(os.getenv("EPOCHS", 3))
BATCH = int(os.getenv("BATCH", 8))


def make_scenes(n=128, side=16, seed=4):
    """One bright square per picture: its box and one of three colours."""
    g = torch.Generator().manual_seed(seed)
    pics = 0.1 * torch.randn(n, 3, side, side, generator=g)
    boxes = torch.zeros(n, 4)
    kinds = torch.randint(0, 3, (n,), generator=g)
    for i in range(n):
        w, h = (int(v) for v in torch.randint(3, 7, (2,), generator=g))
        x, y = (int(v) for v in torch.randint(0, side - 7, (2,), generator=g))
        pics[i, kinds[i], y:y + h, x:x + w] += 1.0
        boxes[i] = torch.tensor([x, y, x + w, y + h]) / side
    return TensorDataset(pics, boxes, kinds)


class BoxNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(), nn.Flatten())
        self.box = nn.Linear(2 * width * 16, 4)
        self.kind = nn.Linear(2 * width * 16, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.box(h).sigmoid(), self.kind(h)


def train_one_epoch(net, loader, opt):
    board = Board()
    for pics, boxes, kinds in loader:
        pred, logits = net(pics)
        reg = F.smooth_l1_loss(pred, boxes, beta=0.05)
        cls = F.cross_entropy(logits, kinds)
        opt.zero_grad()
        (reg + cls).backward()
        opt.step()
        board.push(len(pics), reg=reg.item(), cls=cls.item(),
                   acc=(logits.argmax(1) == kinds).float().mean().item())
    return board


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank = dist.get_rank()
    scenes = make_scenes()
    sampler = DistributedSampler(scenes)
    loader = DataLoader(scenes, BATCH, sampler=sampler)
    net = nn.parallel.DistributedDataParallel(BoxNet())
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        board = train_one_epoch(net, loader, opt)
        if rank == 0:
            print(f"epoch {epoch:2d}  {board}", flush=True)


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
