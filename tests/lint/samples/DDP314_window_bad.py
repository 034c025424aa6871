import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class Recipe:
    def __init__(self, args, dataset):
        self.net = DDP(torch.nn.Linear(16, 4))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=args.lr)
        self.loader = DataLoader(dataset, 8, sampler=DistributedSampler(dataset))

    def micro(self, images, labels):
        return torch.nn.functional.cross_entropy(self.net(images), labels)

    def window(self, batches):
        *held, last = batches
        for images, labels in held:
            with self.net.no_sync():  # <-- DDP314
                loss = self.micro(images, labels)
            loss.backward()
        print(len(last))
        self.opt.step()
        self.opt.zero_grad()

    def train(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            batches = []
            for batch in self.loader:
                batches.append(batch)
                if len(batches) == 4:
                    self.window(batches)
                    batches = []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    dist.init_process_group("gloo")
    digits = torch.randn(256, 16), torch.randint(4, (256,))
    Recipe(parser.parse_args(), torch.utils.data.TensorDataset(*digits)).train(3)
    dist.destroy_process_group()
