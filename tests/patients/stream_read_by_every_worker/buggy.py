# style: IterableDataset with DataLoader workers
# nproc: 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Events(IterableDataset):
    def __init__(self, count, rank, world_size):
        self.count, self.rank, self.world_size = count, rank, world_size

    def shard(self):
        return self.rank, self.world_size

    def __iter__(self):
        first, step = self.shard()
        for i in range(first, self.count, step):
            x = torch.tensor([i % 7, i % 5, i % 3], dtype=torch.float32)
            yield x, x.sum().unsqueeze(0)


def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {running:.3f}")


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    events = Events(96, rank, world_size)
    loader = DataLoader(events, batch_size=8, num_workers=2)  # <-- DDP215
    torch.manual_seed(0)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(model, loader, optimizer, epochs=1)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
