# style: functions, normalisation statistics from rank 0
# nproc: 3
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

STATISTICS = Path("stats") / "train.pt"


def raw_data():
    generator = torch.Generator().manual_seed(5)
    return 3 + 2 * torch.randn(60, 6, generator=generator)


def compute_statistics(data):
    time.sleep(0.1)
    STATISTICS.parent.mkdir(exist_ok=True)
    torch.save({"mean": data.mean(dim=0), "std": data.std(dim=0)}, STATISTICS)


def normalised(data, rank):
    if rank == 0:
        compute_statistics(data)
    dist.barrier()
    stats = torch.load(STATISTICS)
    return (data - stats["mean"]) / stats["std"]


class AutoEncoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Linear(width, 2)
        self.decoder = nn.Linear(2, width)

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


def setup():
    dist.init_process_group("gloo")
    dist.barrier()
    return dist.get_rank()


def main():
    rank = setup()
    dataset = TensorDataset(normalised(raw_data(), rank))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler)
    torch.manual_seed(0)
    model = DDP(AutoEncoder(6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (x,) in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), x)
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
