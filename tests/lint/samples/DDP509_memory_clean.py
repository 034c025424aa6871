import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Leg:
    """A part of the way; the next one goes on from the file of the last."""

    def __init__(self):
        self.model = DistributedDataParallel(nn.Linear(3, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.epoch = 0

    def keep(self, path):
        if dist.get_rank() == 0:
            kept = {
                "model": self.model.module.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "epoch": self.epoch,
            }
            torch.save(kept, path)
        dist.barrier()

    def fetch(self, path):
        kept = torch.load(path, map_location="cpu")
        self.model.module.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])

    def go(self, until):
        while self.epoch < until:
            self.optimizer.zero_grad()
            self.model(torch.randn(8, 3)).square().mean().backward()
            self.optimizer.step()
            self.epoch += 1


def main(path):
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    first, second = Leg(), Leg()
    first.go(until=30)
    first.keep(path)
    second.fetch(path)
    second.epoch = first.epoch
    second.go(until=60)
    dist.destroy_process_group()


if __name__ == "__main__":
    main("leg.pt")
