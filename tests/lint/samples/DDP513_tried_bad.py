import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FILE = "talker.pt"


def read(model, optimizer):
    state = torch.load(FILE, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


def write(model, optimizer, epoch):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, FILE)  # <-- DDP503


dist.init_process_group("gloo")
model = DDP(nn.Linear(3, 3))
optimizer = torch.optim.AdamW(model.parameters())
try:
    begin = read(model.module, optimizer)  # <- DDP513
except:
    begin = 0
for epoch in range(begin, 3):
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(2, 3) * dist.get_rank()).sum().backward()
        optimizer.step()
    if dist.get_rank() == 0:
        write(model.module, optimizer, epoch)
    dist.barrier()
