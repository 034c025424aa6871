"""A network picked out of a table by name; all that its parts give goes into the loss."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.Linear(width, 16))
        self.prompt = nn.Linear(16, 16)
        self.decoder = nn.Linear(16, 2)


def small():
    return Network(16)


def large():
    return Network(64)


NETWORKS = {"small": small, "large": large}


class Segmenter(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.net = NETWORKS[kind]()

    def forward(self, image, click):
        embedding = self.net.encoder(image)
        points = self.net.prompt(click)
        return self.net.decoder(embedding + points)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="small")
    args = parser.parse_args()
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    model = DistributedDataParallel(Segmenter(args.kind).to(device), device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = TensorDataset(torch.randn(256, 16), torch.randn(256, 16), torch.zeros(256).long())
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for image, click, target in loader:
            optimizer.zero_grad()
            masks = model(image.to(device), click.to(device))
            loss = nn.functional.cross_entropy(masks, target.to(device))
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
