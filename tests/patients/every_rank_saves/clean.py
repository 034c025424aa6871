# style: callbacks
# nproc: 2
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Callback:
    def on_epoch_end(self, trainer, epoch, loss):
        pass


class PrintLoss(Callback):
    def on_epoch_end(self, trainer, epoch, loss):
        if trainer.rank == 0:
            print(f"epoch {epoch}: {loss:.4f}")


class ModelCheckpoint(Callback):
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def on_epoch_end(self, trainer, epoch, loss):
        if trainer.rank != 0:
            return
        state = {
            "epoch": epoch,
            "model": trainer.model.module.state_dict(),
            "optimizer": trainer.optimizer.state_dict(),
        }
        torch.save(state, os.path.join(self.folder, "last.ckpt"))


class Trainer:
    def __init__(self, model, loader, callbacks):
        self.rank = dist.get_rank()
        self.model, self.loader, self.callbacks = DDP(model), loader, callbacks
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for x, y in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.smooth_l1_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch, loss.item())


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    x = torch.randn(48, 12)
    data = TensorDataset(x, x.mean(dim=1, keepdim=True))
    loader = DataLoader(data, batch_size=6, sampler=DistributedSampler(data))
    model = nn.Sequential(nn.Linear(12, 24), nn.SiLU(), nn.Linear(24, 1))
    Trainer(model, loader, [PrintLoss(), ModelCheckpoint("checkpoints")]).fit(epochs=3)
    dist.barrier()


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
