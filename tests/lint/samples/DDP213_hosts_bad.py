import argparse
import os

import torch
import torch.distributed as dist
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Streets(Dataset):
    def __init__(self, root, transform):
        self.transform = transform
        self.images = []
        for city in os.listdir(root):  # <-- DDP213
            names = sorted(os.listdir(os.path.join(root, city)))
            self.images.extend(os.path.join(root, city, name) for name in names)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(Image.open(self.images[index]))


def main(transform):
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=44554)
    args = parser.parse_args()
    rank = int(os.environ["RANK"])
    dist.init_process_group(
        backend="gloo",
        init_method="tcp://{}:{}".format(os.environ["MASTER"], args.port),
        world_size=int(os.environ["WORLD_SIZE"]),
        rank=rank,
    )
    data = Streets("data/train", transform)
    sampler = DistributedSampler(data)
    model = DistributedDataParallel(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for images in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            model(images).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main(torch.as_tensor)
