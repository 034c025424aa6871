"""Training state is restored by the main process only."""

import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def is_main():
    return dist.get_rank() == 0


class State:
    def __init__(self, model, opt):
        self.model, self.opt, self.step = model, opt, 0

    def dump(self):
        return {
            "model": self.model.module.state_dict(),
            "opt": self.opt.state_dict(),
            "step": self.step,
        }

    def restore(self, path):
        saved = torch.load(path, map_location="cpu")
        self.model.module.load_state_dict(saved["model"])
        self.opt.load_state_dict(saved["opt"])
        self.step = saved["step"]


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 4))
    state = State(model, torch.optim.Adam(model.parameters()))
    if os.path.exists("state.pt"):  # <- DDP513
        state.restore("state.pt")
        step = torch.tensor([state.step])
        dist.broadcast(step, 0)
        state.step = int(step)
    g = torch.Generator().manual_seed(dist.get_rank())
    while state.step < 100:
        x = torch.randn(8, 4, generator=g)
        state.opt.zero_grad()
        (model(x) - x).square().mean().backward()
        state.opt.step()
        state.step += 1
    if is_main():
        torch.save(state.dump(), "state.pt.tmp")
        os.replace("state.pt.tmp", "state.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
