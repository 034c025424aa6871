import copy

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Average:
    """Weights of rank 0 alone, which lends them to the model while it predicts."""

    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = copy.deepcopy(model)
        self.kept = model.state_dict()

    def follow(self):
        now, mean = self.model.state_dict(), self.shadow.state_dict()
        for name in mean:
            mean[name] = self.decay * mean[name] + (1 - self.decay) * now[name]
        self.shadow.load_state_dict(mean)

    def enter(self):
        self.kept = {name: value.clone() for name, value in self.model.state_dict().items()}
        self.model.load_state_dict(self.shadow.state_dict())

    def leave(self):
        self.model.load_state_dict(self.kept)

    def load_state_dict(self, state):
        self.shadow.load_state_dict(state)


def main(path):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = Average(model, 0.99) if dist.get_rank() == 0 else None
    state = torch.load(path, map_location="cpu")
    model.module.load_state_dict(state["model"])
    if average is not None:
        average.load_state_dict(state["average"])
    for step in range(100):
        optimizer.zero_grad()
        model(torch.rand(4, 8)).mean().backward()
        optimizer.step()
        if average is not None:
            average.follow()
        if step % 10 == 0 and average is not None:
            average.enter()
            with torch.no_grad():
                print(model.module(torch.rand(4, 8)))
            average.leave()


if __name__ == "__main__":
    main("last.pt")
