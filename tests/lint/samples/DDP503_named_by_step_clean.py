import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Learner:
    def __init__(self, folder, model, optimizer):
        self.folder, self.model, self.optimizer = folder, model, optimizer
        self.is_main = dist.get_rank() == 0
        self.step = 0

    def state_dict(self):
        return {"model": self.model.module.state_dict(), "step": self.step}

    def save(self, name="weights"):
        torch.save(self.state_dict(), f"{self.folder}/{name}-{self.step}.pt")
        link = f"{self.folder}/{name}.pt"
        if os.name == "nt":
            torch.save(self.state_dict(), link)
        else:
            if os.path.islink(link):
                os.unlink(link)
            os.symlink(f"{name}-{self.step}.pt", link)

    def restore(self, name="weights"):
        state = torch.load(f"{self.folder}/{name}.pt", map_location="cpu")
        self.model.module.load_state_dict(state["model"])
        self.step = state["step"]

    def train(self, data):
        for batch in data:
            self.optimizer.zero_grad()
            self.model(batch).mean().backward()
            self.optimizer.step()
            self.step += 1
            if self.is_main and self.step % 100 == 0:
                self.save()


def main(folder, data):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(8, 1))
    learner = Learner(folder, model, torch.optim.SGD(model.parameters(), lr=0.1))
    learner.restore()
    learner.train(data)


if __name__ == "__main__":
    main("runs", torch.rand(100, 4, 8))
