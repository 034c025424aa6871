"""Flow layer initialised from data on the first process; the result is sent to the others before wrapping."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ActNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.loc, self.log_scale = nn.Parameter(torch.zeros(dim)), nn.Parameter(torch.zeros(dim))

    @torch.no_grad()
    def initialise(self, x):
        self.loc.copy_(-x.mean(0))
        self.log_scale.copy_(-x.std(0).log())

    def forward(self, x):
        return (x + self.loc) * self.log_scale.exp(), self.log_scale.sum()


class Flow(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.norm = ActNorm(dim)
        self.mix = nn.Linear(dim, dim)
        nn.init.orthogonal_(self.mix.weight)

    def forward(self, x):
        y, logdet = self.norm(x)
        z = self.mix(y)
        logdet = logdet + torch.linalg.slogdet(self.mix.weight)[1]
        return 0.5 * z.pow(2).sum(1).mean() - logdet


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    g = torch.Generator().manual_seed(40 + rank)
    net = Flow()
    if rank == 0:
        net.norm.initialise(torch.randn(256, 6, generator=g) * 3 + 5)
    model = DDP(net)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(30):
        x = torch.randn(64, 6, generator=g) * 3 + 5
        loss = model(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step == 9 and rank == 0:
            print(f"step 10 nll {loss.item():.4f}", flush=True)
    check = torch.cat([p.detach().flatten() for p in net.parameters()])
    low, high = check.clone(), check.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    print(f"rank {rank} spread {(high - low).abs().max().item():.1e}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
