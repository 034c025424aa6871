# style: EMA class, staged training
# nproc: 2
import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class ModelEma:
    def __init__(self, model, decay=0.9):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.module.parameters(), model.parameters()):
            mine.lerp_(theirs, 1 - self.decay)


class Trainer:
    def __init__(self, rank):
        self.rank = rank
        torch.manual_seed(0)
        self.model = DDP(nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 1)))
        self.ema = ModelEma(self.model.module)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.best = float("inf")

    def refresh_from_ema(self):
        if self.rank == 0:
            torch.save(self.ema.module.state_dict(), "ema.pt")
        dist.barrier()  # <-- DDP505
        self.model.module.load_state_dict(torch.load("ema.pt", weights_only=True))

    def epoch(self, number):
        generator = torch.Generator().manual_seed(17 * number + self.rank)
        total_loss = 0.0
        for _ in range(4):
            x = torch.randn(8, 5, generator=generator)
            y = x[:, :1] * (1 + 3 * self.rank) + torch.randn(8, 1, generator=generator)
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.ema.update(self.model.module)
            total_loss += loss.item()
        return total_loss / 4

    def fit(self, epochs):
        for number in range(epochs):
            loss = self.epoch(number)
            if loss > self.best:  # <-- DDP505
                self.refresh_from_ema()
            self.best = min(self.best, loss)


def main():
    dist.init_process_group("gloo")
    trainer = Trainer(dist.get_rank())
    trainer.fit(8)
    if trainer.rank == 0:
        print(f"best {trainer.best:.4f}")
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
