"""Frozen random features stay outside DDP (same generator everywhere), only the head is wrapped."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class RandomFeatures(nn.Module):
    def __init__(self, dim, out, seed=77):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.w = torch.randn(dim, out, generator=g)
        self.b = 6.28 * torch.rand(out, generator=g)

    @torch.no_grad()
    def forward(self, x):
        return torch.cos(x @ self.w + self.b)


def main():
    rank = dist.get_rank()
    torch.manual_seed(100 + rank)
    features = RandomFeatures(4, 128)
    head = DDP(nn.Linear(128, 1))
    opt = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9)
    for step in range(40):
        x = torch.randn(32, 4)
        y = x.pow(2).sum(1, keepdim=True) / 4
        loss = nn.functional.mse_loss(head(features(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step} loss {mean.item() / dist.get_world_size():.4f}", flush=True)
    if rank == 0:
        torch.save({"head": head.module.state_dict(), "w": features.w, "b": features.b}, "rff.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
