"""Goes on from a checkpoint that rank 0 alone reads; the whole blob is handed to the others before it is loaded."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def from_main(make):
    box = [make() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def leg(path, until):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    blob = from_main(lambda: torch.load(path) if os.path.exists(path) else None)
    step = 0
    if blob is not None:
        net.load_state_dict(blob["net"])
        opt.load_state_dict(blob["opt"])
        step = blob["step"]
    ddp = DDP(net)
    while step < until:
        g = torch.Generator().manual_seed(1000 * dist.get_rank() + step)
        x = torch.randn(32, 12, generator=g)
        loss = (ddp(x) - x[:, :3].prod(1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        step += 1
    if dist.get_rank() == 0:
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": step}, path)
    total = sum(p.detach().double().abs().sum().item() for p in net.parameters())
    print(f"rank {dist.get_rank()} step {step} loss {loss.item():.4f} checksum {total:.6f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    path = os.path.join(from_main(tempfile.mkdtemp), "state.pt")
    leg(path, 25)
    leg(path, 50)
    dist.destroy_process_group()
