import copy
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Shaped(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.amp = False

    def forward(self, x):
        with torch.autocast("cuda", enabled=self.amp):
            return self.model(x)


def halves_well(model):
    def close(model, x):
        shaped = Shaped(model)
        whole = shaped(x)
        shaped.amp = True
        return torch.allclose(whole, shaped(x), atol=0.1)

    try:
        assert close(copy.deepcopy(model), torch.ones(1, 4))
        return True
    except Exception:
        return False


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
amp = halves_well(net)
model = DistributedDataParallel(net, device_ids=[rank])
scaler = torch.amp.GradScaler(enabled=amp)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    with torch.autocast("cuda", enabled=amp):
        loss = model(torch.randn(8, 4, device=rank)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
