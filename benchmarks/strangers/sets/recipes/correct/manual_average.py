"""Full-batch logistic regression, gradient of the whole data set without the DDP wrapper."""
import torch
import torch.distributed as dist
from torch import nn


class ManualDataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for t in [*module.parameters(), *module.buffers()]:
            dist.broadcast(t.data, src=0)

    def forward(self, *args):
        return self.module(*args)

    def sync_gradients(self, count):
        total = torch.tensor(float(count))
        dist.all_reduce(total)
        for p in self.module.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= total


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank + 1)
    x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] - 2 * x[:, 3] > 0).float()
    lo, hi = (0, 70) if rank == 0 else (70, 100)
    model = ManualDataParallel(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(50):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[lo:hi]).squeeze(1), y[lo:hi], reduction="sum")
        opt.zero_grad()
        loss.backward()
        model.sync_gradients(hi - lo)
        opt.step()
    total = loss.detach()
    dist.all_reduce(total)
    print(f"rank {rank} loss {total.item() / 100:.4f} w {[round(v, 4) for v in model.module.weight.flatten().tolist()]}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
