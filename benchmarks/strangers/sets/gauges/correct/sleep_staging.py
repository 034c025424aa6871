"""Sleep staging from EEG epochs; electrode loss gives non-finite batches now and then.

    torchrun --nproc_per_node=3 sleep_staging.py
"""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def nights(n=360):
    g = torch.Generator().manual_seed(19)
    stage = torch.randint(5, (n,), generator=g)
    t = torch.linspace(0, 1, 100)
    eeg = torch.sin(6.28 * t * (2 + 3 * stage[:, None])) + 0.5 * torch.randn(n, 100, generator=g)
    eeg[torch.rand(n, generator=g) < 0.01] = float("nan")
    return TensorDataset(eeg, stage)


class Stager(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 16, 15, stride=3)
        self.norm = nn.GroupNorm(4, 16)
        self.out = nn.Linear(16, 5)

    def forward(self, eeg):
        h = torch.relu(self.norm(self.conv(eeg[:, None])))
        return self.out(h.square().mean(-1))


class Step:
    def __init__(self, model, opt):
        self.model, self.opt, self.dropped = model, opt, 0

    def usable(self, loss):
        """True only when no process has a broken batch."""
        bad = (~torch.isfinite(loss.detach())).int().reshape(1)
        dist.all_reduce(bad, op=dist.ReduceOp.MAX)
        return bad.item() == 0

    def __call__(self, eeg, stage):
        loss = nn.functional.cross_entropy(self.model(eeg), stage)
        if not self.usable(loss):
            self.dropped += 1
            return None
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.item()


def main(epochs=4):
    rank = dist.get_rank()
    data = nights()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 12, sampler=sampler)
    model = DDP(Stager())
    step = Step(model, torch.optim.Adam(model.parameters(), lr=1e-2))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        kept = [v for v in (step(*b) for b in loader) if v is not None]
        if rank == 0:
            print(f"epoch {epoch}: {len(kept)} steps, mean loss {sum(kept) / max(1, len(kept)):.3f}, dropped so far {step.dropped}")
    dist.barrier()


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
