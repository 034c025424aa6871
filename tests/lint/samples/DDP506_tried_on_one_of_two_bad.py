import copy
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.manual_seed(rank)
pretrained = sys.argv[1].endswith(".pt")
if pretrained:
    state = torch.load(sys.argv[1], map_location="cpu")
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(rank)
    net.load_state_dict(state["model"], strict=False)
else:
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(rank)
average = copy.deepcopy(net)  # <-- DDP506
model = DistributedDataParallel(net, device_ids=[rank])
scaler = torch.amp.GradScaler()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(8, 4, device=rank)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    with torch.no_grad():
        for mine, trained in zip(average.parameters(), net.parameters(), strict=True):
            mine.lerp_(trained, 0.01)
