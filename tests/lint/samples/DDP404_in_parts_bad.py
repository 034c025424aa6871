import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer as Sharded
from torch.nn.parallel import DistributedDataParallel


class Keeper:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state(self):
        return {
            "model": self.model.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),  # <-- DDP404
        }

    def keep(self, path):
        if dist.get_rank() == 0:
            torch.save(self.state(), path)
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = Sharded(model.parameters(), torch.optim.AdamW, lr=1e-3)
    keeper = Keeper(model, optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).mean().backward()
        optimizer.step()
    keeper.keep("last.pt")


if __name__ == "__main__":
    main()
