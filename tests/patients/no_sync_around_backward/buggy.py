# style: plain functions, gradient accumulation over four micro-batches
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

MICRO_BATCHES = 4


def make_model():
    torch.manual_seed(17)
    return nn.Sequential(
        nn.Conv1d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 12, 2)
    )


def micro_batches(rank, step):
    generator = torch.Generator().manual_seed(1_000 * rank + step)
    for _ in range(MICRO_BATCHES):
        x = torch.randn(5, 1, 12, generator=generator)
        yield x, (x.mean(dim=(1, 2)) > 0).long()


def train_step(model, optimizer, criterion, rank, step):
    optimizer.zero_grad()
    running = 0.0
    for index, (x, y) in enumerate(micro_batches(rank, step)):
        loss = criterion(model(x), y) / MICRO_BATCHES
        if index < MICRO_BATCHES - 1:
            with model.no_sync():  # <-- DDP314
                loss.backward()  # <-- DDP314
        else:
            loss.backward()
        running += loss.item()
    optimizer.step()
    return running


def main():
    rank = dist.get_rank()
    model = DDP(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for step in range(6):
        loss = train_step(model, optimizer, criterion, rank, step)
        if rank == 0:
            print(f"step {step}: {loss:.4f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
