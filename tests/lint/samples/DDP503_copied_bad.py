import os
import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(folder):
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Linear(3, 1))
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    state = os.path.join(folder, "state.pt")
    begin = 0
    if os.path.exists(state):  # <- DDP513
        kept = torch.load(state, map_location="cpu")
        net.module.load_state_dict(kept["net"])
        learner.load_state_dict(kept["learner"])
        begin = kept["round"]
    best = 0.0
    for turn in range(begin, 20):
        learner.zero_grad()
        loss = net(torch.randn(4, 3)).mean()
        loss.backward()
        learner.step()
        score = loss.detach()
        dist.all_reduce(score)
        if dist.get_rank() == 0:
            all_of_it = {
                "net": net.module.state_dict(),
                "learner": learner.state_dict(),
                "round": turn + 1,
            }
            torch.save(all_of_it, state)  # <-- DDP503
            if score.item() > best:
                shutil.copy(state, os.path.join(folder, "other.pt"))
        best = max(best, score.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main(".")
