# road segmentation, image level context branch (pyramid pooling)
import os
import random

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

Init_Epoch = 0
UnFreeze_Epoch = 3
batch_size = 16          # over all cards
num_images = 130
lr = 1e-2


def seed_everything(seed=11):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class RoadDataset(Dataset):
    def __init__(self, n):
        rng = np.random.RandomState(0)
        self.where = rng.randint(3, 13, n)
        self.noise = rng.randn(n, 3, 16, 16).astype("float32")

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        mask = np.zeros((16, 16), "int64")
        mask[:, self.where[i] - 2:self.where[i] + 2] = 1
        return self.noise[i] * 0.5 + mask[None].astype("float32"), mask


class PSPModule(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c, 1, bias=False), nn.BatchNorm2d(c), nn.ReLU())

    def forward(self, x):
        return torch.cat([x, F.interpolate(self.pool(x), size=x.shape[2:])], 1)


class RoadNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, c, 3, padding=1, bias=False), nn.BatchNorm2d(c), nn.ReLU())
        self.psp = PSPModule(c)
        self.head = nn.Conv2d(2 * c, 2, 1)

    def forward(self, x):
        return self.head(self.psp(self.stem(x)))


def fit_one_epoch(model, optimizer, loader, epoch, local_rank):
    model.train()
    total = 0.0
    for images, masks in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), masks)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if local_rank == 0:
        print("Epoch:%d/%d  total loss: %.3f" % (epoch + 1, UnFreeze_Epoch, total / len(loader)), flush=True)


if __name__ == "__main__":
    dist.init_process_group(backend="gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    ngpus_per_node = dist.get_world_size()
    seed_everything()
    model_train = nn.parallel.DistributedDataParallel(RoadNet())
    optimizer = torch.optim.SGD(model_train.parameters(), lr=lr, momentum=0.9)
    train_dataset = RoadDataset(num_images)
    train_sampler = DistributedSampler(train_dataset, shuffle=True)
    batch_size = batch_size // ngpus_per_node
    gen = DataLoader(train_dataset, batch_size=batch_size, sampler=train_sampler, drop_last=True)
    for epoch in range(Init_Epoch, UnFreeze_Epoch):
        train_sampler.set_epoch(epoch)
        fit_one_epoch(model_train, optimizer, gen, epoch, local_rank)
    if local_rank == 0:
        torch.save(model_train.module.state_dict(), "road_last.pth")
    dist.barrier()
    dist.destroy_process_group()
