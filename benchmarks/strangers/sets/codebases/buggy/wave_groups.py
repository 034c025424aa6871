"""A learned wave propagator with named process groups for model and data parallel work (makani layout)."""
import argparse

import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from wave_groups_lib import comm
from wave_groups_lib.data import get_dataloader
from wave_groups_lib.model import WaveOperator

PARAMS = dict(lr=3e-3, max_epochs=4, batch_size=16, grid=40, n_samples=320, multistep=2, max_grad_norm=1.0)


class Trainer:
    def __init__(self, params):
        self.params = params
        torch.manual_seed(333 + comm.get_rank("data"))
        self.train_loader, self.sampler = get_dataloader(params, train=True)
        self.valid_loader, _ = get_dataloader(params, train=False)
        self.model = self._wrap(WaveOperator(params["grid"]))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=params["lr"])
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, params["max_epochs"])

    def _wrap(self, model):
        return DistributedDataParallel(model, process_group=comm.get_group("model"))

    def rollout_loss(self, model, states):
        x, loss = states[:, :2], 0.0
        for k in range(self.params["multistep"]):
            pred = model(x)
            loss = loss + F.mse_loss(pred, states[:, k + 2:k + 3])
            x = torch.cat([x[:, 1:], pred], 1)
        return loss / self.params["multistep"]

    def train_one_epoch(self):
        self.model.train()
        acc = torch.zeros(2)
        for (states,) in self.train_loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(self.model(states[:, :2]), states[:, 2:3])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.params["max_grad_norm"])
            self.optimizer.step()
            acc += torch.tensor([loss.item(), 1.0])
        return comm.mean(acc, "data")

    @torch.no_grad()
    def validate_one_epoch(self):
        self.model.eval()
        acc = torch.zeros(2)
        for (states,) in self.valid_loader:
            acc += torch.tensor([self.rollout_loss(self.model.module, states), 1.0])
        return comm.mean(acc, "data")

    def train(self):
        for epoch in range(self.params["max_epochs"]):
            self.sampler.set_epoch(epoch)
            train_loss, valid_loss = self.train_one_epoch(), self.validate_one_epoch()
            self.scheduler.step()
            if comm.get_world_rank() == 0:
                print(f"epoch {epoch + 1}: training loss {train_loss:.5f} validation {valid_loss:.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_parallel_size", type=int, default=1)
    args = parser.parse_args()
    comm.init(model_parallel_size=args.model_parallel_size)
    trainer = Trainer(PARAMS)
    trainer.train()
    del trainer
    comm.cleanup()


if __name__ == "__main__":
    main()
