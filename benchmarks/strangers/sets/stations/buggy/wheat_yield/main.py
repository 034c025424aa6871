"""Wheat yield from seasonal reflectance, trained with accelerate.

    torchrun --nproc_per_node 2 main.py
"""
import os
import sys
import tempfile

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, broadcast_object_list
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fields import BANDS, Survey, write_survey


class YieldNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(BANDS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


class Campaign:
    def __init__(self, accelerator, folder, batch=24, lr=4e-3):
        self.acc = accelerator
        torch.manual_seed(1)
        self.survey = Survey(folder, accelerator.process_index, accelerator.num_processes)
        loader = DataLoader(self.survey, batch_size=batch)
        model = YieldNet()
        opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.model, self.opt, self.loader = accelerator.prepare(model, opt, loader)

    def epoch(self, number):
        self.survey.set_epoch(number)
        total, steps = torch.zeros(1), 0
        for x, y, _ in self.loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.acc.backward(loss)
            self.opt.step()
            self.opt.zero_grad()
            total += loss.detach()
            steps += 1
        return self.acc.gather(total / max(steps, 1)).mean().item()


def main():
    torch.set_num_threads(1)
    acc = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=False))
    where = [tempfile.mkdtemp() if acc.is_main_process else None]
    broadcast_object_list(where)
    if acc.is_main_process:
        write_survey(where[0])
    acc.wait_for_everyone()
    campaign = Campaign(acc, where[0])
    for number in range(4):
        mse = campaign.epoch(number)
        acc.print(f"epoch {number} mse {mse:.4f}", flush=True)
    acc.wait_for_everyone()
    acc.end_training()


if __name__ == "__main__":
    main()
