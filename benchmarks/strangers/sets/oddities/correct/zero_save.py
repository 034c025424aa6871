"""Sharded Adam; its state is brought together on all, read on the first."""
import io

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = DDP(nn.Sequential(*[m for _ in range(3) for m in (nn.Linear(16, 16), nn.Tanh())], nn.Linear(16, 1)))
opt = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.AdamW, lr=3e-3)
g = torch.Generator().manual_seed(rank)


def save(step):
    opt.consolidate_state_dict(to=0)
    if rank != 0:
        return
    buf = io.BytesIO()
    torch.save({"net": net.module.state_dict(), "opt": opt.state_dict(), "step": step}, buf)
    print(f"step {step}: {buf.tell()} bytes", flush=True)


for step in range(1, 31):
    x = torch.randn(12, 16, generator=g)
    loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 15 == 0:
        save(step)
dist.barrier()
dist.destroy_process_group()
