"""Passenger forecasts. Resumes from a file of rank 0, which is read by rank 0 and broadcast; state is per rank where it must be."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

PATH = os.path.join(tempfile.gettempdir(), f"ferry-{os.environ.get('MASTER_PORT', '0')}.pt")


def fresh():
    model = DistributedDataParallel(nn.GRU(3, 12, batch_first=True))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return model, opt, torch.optim.lr_scheduler.StepLR(opt, 5, 0.5)


def save(model, opt, sched, step):
    rngs = [None] * dist.get_world_size()
    dist.all_gather_object(rngs, torch.get_rng_state())
    if dist.get_rank() == 0:
        torch.save(dict(model=model.module.state_dict(), opt=opt.state_dict(), sched=sched.state_dict(), step=step, rngs=rngs), PATH)


def load(model, opt, sched):
    box = [None]
    if dist.get_rank() == 0 and os.path.exists(PATH):
        box = [torch.load(PATH, weights_only=False)]
    dist.broadcast_object_list(box, src=0)
    if box[0] is None:
        return 0
    state = box[0]
    model.module.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    sched.load_state_dict(state["sched"])
    torch.set_rng_state(state["rngs"][dist.get_rank()])
    return state["step"]


def run(upto):
    model, opt, sched = fresh()
    for step in range(load(model, opt, sched), upto):
        x = torch.randn(8, 10, 3)
        loss = (model(x)[0].mean(-1) - x.sum(-1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if (step + 1) % 4 == 0:
            save(model, opt, sched, step + 1)
    return loss.item()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(9 + dist.get_rank())
    print(dist.get_rank(), "first part", round(run(8), 4), flush=True)
    print(dist.get_rank(), "second part", round(run(14), 4), flush=True)
    dist.barrier()
    if dist.get_rank() == 0:
        os.remove(PATH)
    dist.destroy_process_group()
