import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def work(place, ranks, folder):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29511")
    dist.init_process_group("gloo", rank=place, world_size=ranks)
    torch.manual_seed(place)
    net = DistributedDataParallel(nn.Linear(3, 1))
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    state = os.path.join(folder, "state.pt")
    begin = 0
    if os.path.exists(state):  # <- DDP513
        kept = torch.load(state, map_location="cpu")
        net.module.load_state_dict(kept["net"])
        learner.load_state_dict(kept["learner"])
        begin = kept["round"]
    for turn in range(begin, 20):
        learner.zero_grad()
        net(torch.randn(4, 3)).mean().backward()
        learner.step()
        if place == 0:
            all_of_it = {
                "net": net.module.state_dict(),
                "learner": learner.state_dict(),
                "round": turn + 1,
            }
            torch.save(all_of_it, state + ".part")
            os.replace(state + ".part", state)
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = int(os.environ.get("RANKS", "1"))
    if ranks > 1:
        started = []
        for place in range(ranks):
            one = mp.Process(target=work, args=(place, ranks, "."))
            one.start()
            started.append(one)
        for one in started:
            one.join()
    else:
        work(0, ranks, ".")
