# %% [markdown]
# Lung nodules: a small 3-d net proposes, recall is reported per size class. Notebook export, run with
# `torchrun --nproc_per_node 2 nodule_recall.py`

# %%
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

# %%
SIZES = {"small": 1, "medium": 2, "large": 3}
SCANS, SIDE = 24, 16


def scan(i):
    g = torch.Generator().manual_seed(400 + i)
    vol = 0.25 * torch.randn(1, SIDE, SIDE, SIDE, generator=g)
    found = []
    for _ in range(1 + i % 3):
        z, y, x = torch.randint(3, SIDE - 3, (3,), generator=g).tolist()
        name = ["small", "small", "medium", "medium", "large"][int(torch.randint(0, 5, (1,), generator=g))]
        r = SIZES[name]
        vol[0, z - r:z + r, y - r:y + r, x - r:x + r] += 1.0
        found.append((name, z, y, x))
    heat = torch.zeros(1, SIDE, SIDE, SIDE)
    for _, z, y, x in found:
        heat[0, z - 1:z + 1, y - 1:y + 1, x - 1:x + 1] = 1
    return vol, heat, found


train = [scan(i) for i in range(SCANS)][rank::world]
test = [scan(i) for i in range(SCANS, SCANS + 6)][rank::world]

# %%
torch.manual_seed(0)
net = DDP(nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv3d(8, 1, 1)))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)


# %%
def recall_of(name):
    hit, seen = 0, 0
    for vol, _, found in test:
        with torch.no_grad():
            p = net.module(vol[None])[0, 0].sigmoid()
        for kind, z, y, x in found:
            if kind == name:
                hit += p[z - 1:z + 1, y - 1:y + 1, x - 1:x + 1].max().item()
                seen += 1
    both = torch.tensor([hit, seen], dtype=torch.float64)
    dist.all_reduce(both)
    return (both[0] / both[1].clamp(min=1)).item()


# %%
for epoch in range(4):
    for vol, heat, _ in train:
        out = net(vol[None])
        loss = F.binary_cross_entropy_with_logits(out, heat[None], pos_weight=torch.tensor(10.0))
        opt.zero_grad()
        loss.backward()
        opt.step()
    board = {name: recall_of(name) for name in SIZES}
    if rank == 0:
        print("epoch", epoch, {k: round(v, 3) for k, v in board.items()}, flush=True)

# %%
dist.barrier()
dist.destroy_process_group()
