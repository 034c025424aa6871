# style: IterableDataset sharded by rank and worker, steps agreed beforehand
# nproc: 2
import itertools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, length, seed):
        self.length, self.seed, self.epoch = length, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        worker = get_worker_info()
        workers, number = (worker.num_workers, worker.id) if worker else (1, 0)
        first = dist.get_rank() * workers + number if dist.is_initialized() else number
        step = workers * (dist.get_world_size() if dist.is_initialized() else 1)
        order = torch.randperm(
            self.length, generator=torch.Generator().manual_seed(self.seed + self.epoch)
        )
        for i in order[first::step].tolist():
            x = torch.tensor([i % 11, i % 13, i % 17], dtype=torch.float32) / 17
            yield x, x.mean().unsqueeze(0)


def main():
    dist.init_process_group("gloo")
    stream = Stream(130, seed=3)
    loader = DataLoader(stream, batch_size=4, num_workers=2)
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    steps = 12
    for epoch in range(2):
        stream.set_epoch(epoch)
        for x, y in itertools.islice(loader, steps):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
