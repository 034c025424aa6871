# style: Trainer with callbacks, early stopping decided once
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Callback:
    def on_epoch_end(self, trainer, epoch, loss):
        pass


class Printer(Callback):
    def on_epoch_end(self, trainer, epoch, loss):
        if trainer.rank == 0:
            print(f"epoch {epoch} loss {loss:.4f}")


class EarlyStopping(Callback):
    def __init__(self, patience):
        self.patience, self.best, self.waited = patience, float("inf"), 0

    def on_epoch_end(self, trainer, epoch, loss):
        flag = torch.zeros(1)
        if trainer.rank == 0:
            self.waited = 0 if loss < self.best else self.waited + 1
            self.best = min(self.best, loss)
            flag += self.waited >= self.patience
        dist.broadcast(flag, src=0)
        if flag.item():
            trainer.should_stop = True


class Trainer:
    def __init__(self, model, callbacks):
        self.rank = dist.get_rank()
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        self.callbacks = callbacks
        self.should_stop = False

    def epoch(self, number):
        generator = torch.Generator().manual_seed(7 * number + self.rank)
        for _ in range(3):
            x = torch.randn(8, 4, generator=generator)
            y = torch.randn(8, 1, generator=generator)
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for number in range(epochs):
            loss = self.epoch(number)
            for callback in self.callbacks:
                callback.on_epoch_end(self, number, loss)
            if self.should_stop:
                break


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = Trainer(nn.Linear(4, 1), [Printer(), EarlyStopping(patience=2)])
    trainer.fit(30)
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
