# style: Trainer class, shards by slicing
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model, optimizer, loader
        self.global_step = 0

    def training_step(self, batch):
        x, y = batch
        return nn.functional.binary_cross_entropy_with_logits(self.model(x), y)

    def fit(self, epochs):
        for epoch in range(epochs):
            for batch in self.loader:
                loss = self.training_step(batch)
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.global_step += 1
            print(f"[{dist.get_rank()}] epoch {epoch} step {self.global_step}")


def shard(dataset, rank, world_size):
    indices = list(range(len(dataset) // world_size * world_size))
    return Subset(dataset, indices[rank::world_size])


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(49, 10, generator=generator)
    dataset = TensorDataset(x, (x[:, :1] > 0).float())
    local = shard(dataset, rank, world_size)
    loader = DataLoader(local, batch_size=4, shuffle=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 10), nn.GELU(), nn.Linear(10, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, loader)
    trainer.fit(epochs=2)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
