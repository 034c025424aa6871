"""Gradient accumulation with a short last window; synchronisation is switched by the flag of the wrapper."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Runner:
    def __init__(self, accumulate):
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(16, 40), nn.Tanh(), nn.Linear(40, 1)))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.accumulate = accumulate

    def epoch(self, batches):
        total = len(batches)
        for i, (x, y) in enumerate(batches):
            last = (i + 1) % self.accumulate == 0 or i + 1 == total
            start = i - i % self.accumulate
            window = min(self.accumulate, total - start)
            self.model.require_backward_grad_sync = last
            loss = nn.functional.mse_loss(self.model(x).squeeze(1), y)
            (loss / window).backward()
            if last:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.opt.step()
                self.opt.zero_grad(set_to_none=True)
        return loss.item()


def batches_of(rank, count=22, size=12):
    g = torch.Generator().manual_seed(600 + rank)
    out = []
    for _ in range(count):
        x = torch.randn(size, 16, generator=g)
        out.append((x, x[:, :4].sum(1)))
    return out


def main():
    rank = dist.get_rank()
    runner = Runner(accumulate=4)
    data = batches_of(rank)
    for e in range(3):
        loss = runner.epoch(data)
        if rank == 0:
            print(f"epoch {e} last loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
