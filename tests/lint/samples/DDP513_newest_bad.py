import glob
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FOLDER = os.environ.get("RUN_FOLDER", "run")


def newest(kind):
    names = sorted(glob.glob(os.path.join(FOLDER, kind + "_*.pt")))
    return names[-1] if names else None


def restored(name, module):
    state = torch.load(name, map_location="cpu")
    module.load_state_dict(state["weights"])
    return state["step"]


def main():
    dist.init_process_group("gloo")
    generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)
    step = 0
    latest = newest("generator")  # <- DDP513
    if latest is not None:
        step = restored(latest, generator)
        restored(latest.replace("generator", "critic"), critic)
    generator, critic = DDP(generator), DDP(critic)
    optimizer = torch.optim.SGD([*generator.parameters(), *critic.parameters()], lr=0.1)
    while step < 50:
        optimizer.zero_grad()
        critic(generator(torch.randn(8, 4))).mean().backward()
        optimizer.step()
        step += 1
        if step % 10 == 0 and dist.get_rank() == 0:
            for kind, module in (("generator", generator), ("critic", critic)):
                state = {"weights": module.module.state_dict(), "step": step}
                torch.save(state, "{}/{}_{:05d}.pt".format(FOLDER, kind, step))


if __name__ == "__main__":
    torch.manual_seed(int(os.environ["RANK"]))
    main()
