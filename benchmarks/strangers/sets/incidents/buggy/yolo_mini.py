import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

hyp = {'lr0': 0.02, 'momentum': 0.9, 'anchor_t': 4.0, 'obj': 1.0, 'box': 0.5}


class Detect(nn.Module):
    def __init__(self, anchors, ch):
        super().__init__()
        self.na = len(anchors)
        self.register_buffer('anchor_grid', torch.tensor(anchors).float().view(1, -1, 1, 1, 2))
        self.m = nn.Conv2d(ch, self.na * 5, 1)

    def forward(self, x):
        b, _, h, w = x.shape
        return self.m(x).view(b, self.na, 5, h, w).permute(0, 1, 3, 4, 2)


class Model(nn.Module):
    def __init__(self, anchors=((2, 2), (4, 3), (6, 6)), ch=16):
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(3, ch, 3, 2, 1), nn.BatchNorm2d(ch), nn.SiLU(),
            nn.Conv2d(ch, ch, 3, 2, 1), nn.SiLU(),
            Detect(anchors, ch))

    def forward(self, x):
        return self.model(x)


def create_dataset(n=96):
    g = torch.Generator().manual_seed(4)
    img = torch.rand(n, 3, 16, 16, generator=g)
    wh = torch.rand(n, 2, generator=g) * 6 + 1
    return TensorDataset(img, wh)


def check_best_possible_recall(dataset, anchors, thr):
    wh = dataset.tensors[1]
    r = wh[:, None] / anchors.view(-1, 2)[None]
    best = torch.min(r, 1 / r).min(2)[0].max(1)[0]
    bpr = (best > 1 / thr).float().mean().item()
    print(f'Best Possible Recall (BPR) = {bpr:.3f}', flush=True)


def compute_loss(pred, wh):
    obj = pred[..., 4].mean((1, 2, 3))
    box = pred[..., 2:4].mean((1, 2, 3))
    lobj = nn.functional.binary_cross_entropy_with_logits(obj, torch.ones_like(obj))
    lbox = (box.exp() - wh).abs().mean()
    return hyp['obj'] * lobj + hyp['box'] * lbox


def train(opt, rank):
    torch.manual_seed(1)
    model = Model()
    dataset = create_dataset()
    distributed = dist.is_initialized() and dist.get_world_size() > 1
    if distributed:
        model = DDP(model)
    sampler = DistributedSampler(dataset) if distributed else None
    loader = DataLoader(dataset, batch_size=opt.batch_size, sampler=sampler, shuffle=sampler is None)
    optimizer = torch.optim.SGD(model.parameters(), lr=hyp['lr0'], momentum=hyp['momentum'])

    if rank == 0 and not opt.noautoanchor:
        check_best_possible_recall(dataset, anchors=model.model[-1].anchor_grid, thr=hyp['anchor_t'])

    for epoch in range(opt.epochs):
        model.train()
        if distributed:
            sampler.set_epoch(epoch)
        mloss = 0.0
        for i, (imgs, wh) in enumerate(loader):
            loss = compute_loss(model(imgs), wh)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mloss = (mloss * i + loss.item()) / (i + 1)
        if rank == 0:
            print(f'{epoch + 1}/{opt.epochs} loss {mloss:.4f}', flush=True)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--epochs', type=int, default=3)
    parser.add_argument('--batch-size', type=int, default=8)
    parser.add_argument('--noautoanchor', action='store_true')
    opt = parser.parse_args()
    rank = int(os.environ.get('RANK', 0))
    if 'RANK' in os.environ:
        dist.init_process_group('gloo')
    train(opt, rank)
    if dist.is_initialized():
        dist.destroy_process_group()
