import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class Job:
    def __init__(self, path):
        self.path, self.main = path, dist.get_rank() == 0
        self.model = DistributedDataParallel(nn.Linear(6, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def keep(self):
        if self.main:
            kept = {"model": self.model.module.state_dict(), "adam": self.optimizer.state_dict()}
            torch.save(kept, self.path + ".new")
            os.replace(self.path + ".new", self.path)

    def go_on(self):
        if not os.path.exists(self.path):  # <- DDP513
            return
        kept = torch.load(self.path, map_location="cpu")
        self.model.module.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["adam"])

    def train(self, samples):
        sampler, losses = DistributedSampler(samples), []
        for epoch in range(5):
            sampler.set_epoch(epoch)
            for x in DataLoader(samples, 32, sampler=sampler):
                self.optimizer.zero_grad()
                loss = self.model(x).square().mean()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            self.keep()
        return losses


def main(samples):
    dist.init_process_group("gloo")
    job = Job("out/job.pt")
    dist.barrier()
    job.go_on()
    mine = job.train(samples)
    everybodys = [None] * dist.get_world_size()
    dist.all_gather_object(everybodys, mine)
    if job.main:
        print(everybodys)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.manual_seed(0)
    main([torch.randn(6) for _ in range(512)])
