# %% imports
import io
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

# %% settings
EPOCHS = 4
BATCH = 16
GATES = 32
LR = 2e-3
SAVE_TO = os.path.join(tempfile.gettempdir(), "radar_zero_%d.pt" % os.getppid())

# %% start the processes
dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)

# %% radar returns: a target is a bump at some range gate
g = torch.Generator().manual_seed(40)
gate = torch.randint(2, GATES - 2, (256,), generator=g)
returns = 0.5 * torch.randn(256, GATES, generator=g)
for i, c in enumerate(gate.tolist()):
    returns[i, c - 1:c + 2] += torch.tensor([1.0, 2.0, 1.0])
returns, gate = returns[RANK::WORLD], gate[RANK::WORLD]

# %% the model and the sharded optimiser
net = DDP(nn.Sequential(
    nn.Linear(GATES, 64), nn.GELU(),
    nn.Linear(64, 64), nn.GELU(),
    nn.Linear(64, GATES),
))
opt = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.Adam, lr=LR)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)


# %% helpers
def snapshot(epoch):
    return {
        "epoch": epoch,
        "net": net.module.state_dict(),
        "opt": opt.state_dict(),
        "sched": sched.state_dict(),
    }


def size_of(state):
    buf = io.BytesIO()
    torch.save(state, buf)
    return buf.tell()


# %% train
for epoch in range(EPOCHS):
    order = torch.randperm(len(returns), generator=torch.Generator().manual_seed(epoch))
    for idx in order.split(BATCH):
        loss = nn.functional.cross_entropy(net(returns[idx]), gate[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    opt.consolidate_state_dict(to=0)
    if RANK == 0:
        state = snapshot(epoch)
        torch.save(state, SAVE_TO)
        print(f"epoch {epoch} loss {loss.item():.3f} file {size_of(state)} bytes", flush=True)

# %% done
dist.barrier()
dist.destroy_process_group()
