"""Train a probe, then report accuracy over the whole test set (sharded by site)."""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

SITES = {0: (140, 0.0), 1: (20, 2.5)}      # samples and noise of each hospital


def load_site(rank):
    n, noise = SITES[rank]
    g = torch.Generator().manual_seed(rank)
    x = torch.randn(n, 8, generator=g)
    y = (x[:, 0] - x[:, 1] + noise * torch.randn(n, generator=g) > 0).long()
    return x, y


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    hits = (model(x).argmax(1) == y).float()
    acc = hits.mean()
    dist.all_reduce(acc)
    return (acc / dist.get_world_size()).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    probe = DDP(nn.Linear(8, 2))
    opt = torch.optim.Adam(probe.parameters(), lr=0.05)
    x, y = load_site(rank)
    for it in range(60):
        pick = torch.randint(0, len(x), (16,))
        loss = nn.functional.cross_entropy(probe(x[pick]), y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
    acc = evaluate(probe.module, x, y)
    if rank == 0:
        print(f"test accuracy {acc:.4f} over {sum(n for n, _ in SITES.values())} samples", flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
