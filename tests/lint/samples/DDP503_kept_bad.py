"""A job that is told where to begin: of each tenth round a file is kept, of the others the last."""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def restore(path, model, learner):
    if path.startswith("https"):
        found = torch.hub.load_state_dict_from_url(path, map_location="cpu")
    else:
        found = torch.load(path, map_location="cpu")
    model.load_state_dict(found["model"])
    learner.load_state_dict(found["learner"])
    return found["done"]


def main(folder, start, rounds):
    dist.init_process_group("gloo")
    net = nn.Linear(8, 4)
    learner = torch.optim.SGD(net.parameters(), lr=0.1)
    done = restore(start, net, learner) if start else 0
    model = DistributedDataParallel(net)
    while done < rounds:
        learner.zero_grad()
        model(torch.randn(16, 8)).mean().backward()
        learner.step()
        done += 1
        if dist.get_rank() == 0:
            state = {"model": net.state_dict(), "learner": learner.state_dict(), "done": done}
            torch.save(state, folder / "last.pt")  # <-- DDP503
            if done % 10 == 0:
                torch.save(state, folder / f"{done}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--start")
    parser.add_argument("--rounds", type=int, default=100)
    given = parser.parse_args()
    main(given.folder, given.start, given.rounds)
