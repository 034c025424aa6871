"""Two legs of one run; rank 0 looks for the checkpoint, reads it and shares the content."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def dataset():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(128, 5, generator=g)
    return TensorDataset(x, (x * torch.arange(5.)).sum(1, keepdim=True))


def fetch_state(path):
    box = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        box[0] = torch.load(path, map_location="cpu")
    dist.broadcast_object_list(box, src=0)
    return box[0]


def save_state(path, state):
    if dist.get_rank() == 0:
        tmp = f"{path}.{os.getpid()}.tmp"
        with open(tmp, "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(tmp, path)
    dist.barrier()


def leg(path, until):
    torch.manual_seed(1)
    model = DDP(nn.Linear(5, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    sched = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
    data = dataset()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    start = 0
    state = fetch_state(path)
    if state is not None:
        model.module.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        sched.load_state_dict(state["sched"])
        start = state["epoch"] + 1
    for epoch in range(start, until):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        sched.step()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {total.item() / len(loader) / dist.get_world_size():.4f} lr {sched.get_last_lr()[0]}", flush=True)
        save_state(path, {"model": model.module.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "epoch": epoch})


def main():
    name = [os.path.join(tempfile.mkdtemp(), "state.pt") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name, src=0)
    leg(name[0], until=2)
    leg(name[0], until=4)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
