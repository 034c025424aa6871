"""Autoencoder for satellite scenes of different size, with automatic micro-batching."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ARENA = 40_000      # floats that the work buffer of a node holds


class WorkBuffer:
    def __init__(self, limit):
        self.limit = limit

    def reserve(self, tensor):
        need = tensor.numel() * 8
        if need > self.limit:
            raise MemoryError(f"work buffer: {need} > {self.limit}")
        return tensor


def scene_batch(step, rank, n=8):
    g = torch.Generator().manual_seed(31 * step + rank)
    size = [12, 12, 16, 12, 24, 12][int(torch.randint(0, 6, (1,), generator=g))]
    return torch.rand(n, 4, size, size, generator=g)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(4, 16, 4, stride=4)
        self.up = nn.ConvTranspose2d(16, 4, 4, stride=4)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


class AutoMicroBatchTrainer:
    def __init__(self, model, lr=1e-2):
        self.model = DDP(model)
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.buffer = WorkBuffer(ARENA)
        self.grad_accum = 1

    def _forward_backward(self, batch):
        loss_sum = 0.0
        for mb in batch.chunk(self.grad_accum):
            x = self.buffer.reserve(mb)
            loss = nn.functional.mse_loss(self.model(x), x) * len(mb) / len(batch)
            loss.backward()
            loss_sum += loss.item()
        return loss_sum

    def train_batch(self, batch):
        while True:
            self.optim.zero_grad()
            try:
                loss = self._forward_backward(batch)
            except MemoryError:
                if self.grad_accum >= len(batch):
                    raise
                self.grad_accum *= 2
                print(f"[rank {dist.get_rank()}] out of memory, grad_accum = {self.grad_accum}", flush=True)
                continue
            self.optim.step()
            return loss


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = AutoMicroBatchTrainer(Autoencoder())
    for step in range(80):
        loss = trainer.train_batch(scene_batch(step, dist.get_rank()))
        if step % 20 == 0 and dist.get_rank() == 0:
            print(f"step {step}: {loss:.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
