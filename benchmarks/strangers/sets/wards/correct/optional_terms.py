"""Multi-task parsing of receipts, a batch has only some of the fields.   torchrun --nproc_per_node 2 optional_terms.py"""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FIELDS = ["total", "date", "vat", "tip"]


class Parser(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.heads = nn.ModuleDict({f: nn.Linear(32, 1) for f in FIELDS})

    def forward(self, x, fields):
        h = self.body(x)
        return {f: self.heads[f](h).squeeze(1) for f in fields}


def share(logs):
    keys = [None] * dist.get_world_size()
    dist.all_gather_object(keys, sorted(logs))
    out = {}
    for key in sorted(set().union(*keys)):
        pair = torch.tensor([logs.get(key, 0.0), float(key in logs)])
        dist.all_reduce(pair)
        out[key] = (pair[0] / pair[1]).item()
    return out


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DDP(Parser(), find_unused_parameters=True)
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    g = torch.Generator().manual_seed(rank)
    w = torch.linspace(-1, 1, 16)
    for step in range(1, 61):
        x = torch.randn(16, 16, generator=g)
        some = ["total"] + [f for f in FIELDS[1:] if torch.rand((), generator=g) < 0.4]
        out = net(x, some)
        losses = {f: F.mse_loss(o, x @ w.roll(FIELDS.index(f))) for f, o in out.items()}
        opt.zero_grad()
        sum(losses.values()).backward()
        opt.step()
        logs = share({f: v.item() for f, v in losses.items()})
        if step % 20 == 0 and rank == 0:
            print(step, {k: round(v, 4) for k, v in logs.items()}, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
