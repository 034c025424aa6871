"""Anomaly detector on a stream of sensor records read by background workers.

    torchrun --nproc_per_node=2 stream_logs.py
"""
import click
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CHANNELS = 10


def read_record(i):
    """Record i of the archive: a window of readings and whether it is an anomaly."""
    g = torch.Generator().manual_seed(i)
    x = torch.randn(CHANNELS, generator=g).cumsum(0)
    anomaly = i % 4 == 0
    if anomaly:
        x[i % CHANNELS] += 4.0
    return x, float(anomaly)


class SensorStream(IterableDataset):
    """Splits the archive over processes, then over the workers of each process."""

    def __init__(self, records):
        self.records = records
        if dist.is_available() and dist.is_initialized():
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
        else:
            self.rank, self.world = 0, 1

    def _place(self):
        rank, world = self.rank, self.world
        info = get_worker_info()
        if info is None:
            return rank, world
        return rank * info.num_workers + info.id, world * info.num_workers

    def __iter__(self):
        start, stride = self._place()
        for i in range(start, self.records, stride):
            yield read_record(i)


class Detector(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * CHANNELS - 1, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(torch.cat([x, x.diff(dim=1)], dim=1)).squeeze(1)


def epoch(model, loader, opt):
    seen, total = 0, 0.0
    for x, y in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y.float())
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += len(y)
        total += loss.item() * len(y)
    return seen, total / seen


@click.command()
@click.option("--records", default=640)
@click.option("--batch", default=16)
@click.option("--epochs", default=3)
@click.option("--workers", default=1)
def main(records, batch, epochs, workers):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Detector())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    # the reader library keeps threads of its own and must not be forked
    loader = DataLoader(SensorStream(records), batch_size=batch, num_workers=workers,
                        multiprocessing_context="spawn", persistent_workers=True)
    for e in range(epochs):
        seen, loss = epoch(model, loader, opt)
        if dist.get_rank() == 0:
            print(f"epoch {e}: loss {loss:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
