"""EMA of the unwrapped network on all processes, saved and evaluated by the first."""
import argparse
import copy

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--decay", type=float, default=0.95)
parser.add_argument("--restart", type=int, default=20)


class ModelEma(nn.Module):
    def __init__(self, model, decay):
        super().__init__()
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for (name, e), m in zip(self.module.state_dict().items(), model.state_dict().values()):
            if e.dtype.is_floating_point and "running" not in name:
                e.lerp_(m, 1 - self.decay)
            else:
                e.copy_(m)


def main(args):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    model = DDP(net)
    ema = ModelEma(net, args.decay)
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(rank)
    for step in range(1, args.steps + 1):
        x = torch.randn(32, 6, generator=g)
        loss = (model(x) - x.prod(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(net)
        if step % args.restart == 0:
            net.load_state_dict(ema.module.state_dict())
    if rank == 0:
        x = torch.randn(200, 6, generator=torch.Generator().manual_seed(99))
        with torch.no_grad():
            err = (ema.module(x) - x.prod(1, keepdim=True)).pow(2).mean()
        torch.save({"model": net.state_dict(), "model_ema": ema.module.state_dict()}, "last.pth")
        print(f"ema error {err.item():.4f}", flush=True)
    sums = [None] * dist.get_world_size()
    dist.all_gather_object(sums, sum(p.double().sum().item() for p in net.parameters()))
    if rank == 0:
        print("weights", [round(s, 8) for s in sums], flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(parser.parse_args())
