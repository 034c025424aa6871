# style: Trainer class, manual weight initialisation
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Normaliser:
    """Mean and deviation of the features, measured once and then shared."""

    def __init__(self, features):
        self.mean = features.mean(0)
        self.std = features.std(0)

    def share(self, rank):
        for tensor in (self.mean, self.std):
            dist.broadcast(tensor, src=rank)  # <-- DDP403

    def __call__(self, x):
        return (x - self.mean) / self.std


class Trainer:
    def __init__(self):
        self.rank = dist.get_rank()
        generator = torch.Generator().manual_seed(self.rank)
        self.x = torch.randn(48, 4, generator=generator) * 2 + self.rank
        self.y = self.x.sum(1, keepdim=True)
        self.normalise = Normaliser(self.x)
        self.normalise.share(self.rank)
        torch.manual_seed(0)
        self.model = DistributedDataParallel(nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(self.normalise(x)), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, epochs):
        for _ in range(epochs):
            for x, y in zip(self.x.split(12), self.y.split(12)):
                loss = self.step(x, y)
        return loss.item()


def main():
    dist.init_process_group("gloo")
    trainer = Trainer()
    loss = trainer.run(epochs=2)
    if trainer.rank == 0:
        print(f"final loss {loss:.3f}")
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
