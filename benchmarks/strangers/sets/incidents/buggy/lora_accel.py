import argparse
import logging
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)


class LoraLinear(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, r, bias=False)
        self.up = nn.Linear(r, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Denoiser(nn.Module):
    def __init__(self, dim=16, hidden=32):
        super().__init__()
        self.fc1 = LoraLinear(nn.Linear(dim + 1, hidden))
        self.fc2 = LoraLinear(nn.Linear(hidden, dim))

    def forward(self, x, t):
        return self.fc2(F.silu(self.fc1(torch.cat([x, t], dim=1))))


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--project_dir", default="lora_out")
    p.add_argument("--max_train_steps", type=int, default=20)
    p.add_argument("--checkpointing_steps", type=int, default=10)
    p.add_argument("--train_batch_size", type=int, default=8)
    p.add_argument("--gradient_accumulation_steps", type=int, default=2)
    p.add_argument("--learning_rate", type=float, default=1e-3)
    return p.parse_args()


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps)
    logging.basicConfig(level=logging.INFO if accelerator.is_main_process else logging.ERROR)
    set_seed(0)
    if accelerator.is_main_process:
        os.makedirs(args.project_dir, exist_ok=True)

    dit = Denoiser()
    params = [p for p in dit.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=args.learning_rate)
    data = TensorDataset(torch.randn(512, 16))
    loader = DataLoader(data, batch_size=args.train_batch_size, shuffle=True, drop_last=True)
    dit, optimizer, loader = accelerator.prepare(dit, optimizer, loader)

    global_step = 0
    epochs = math.ceil(args.max_train_steps / (len(loader) / args.gradient_accumulation_steps))
    for epoch in range(epochs):
        for (x,) in loader:
            with accelerator.accumulate(dit):
                noise = torch.randn_like(x)
                t = torch.rand(x.size(0), 1)
                pred = dit((1 - t) * x + t * noise, t)
                loss = F.mse_loss(pred, noise - x)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(params, 1.0)
                optimizer.step()
                optimizer.zero_grad()

            if accelerator.sync_gradients:
                global_step += 1
                if global_step % 5 == 0:
                    logger.info("step %d loss %.4f", global_step, loss.item())

            if accelerator.sync_gradients and accelerator.is_main_process and global_step % args.checkpointing_steps == 0:
                save_path = os.path.join(args.project_dir, f"checkpoint-{global_step}")
                os.makedirs(save_path, exist_ok=True)
                accelerator.wait_for_everyone()
                unwrapped = accelerator.unwrap_model(dit)
                state = {k: v for k, v in unwrapped.state_dict().items() if ".base." not in k}
                torch.save(state, os.path.join(save_path, "dit_lora.pt"))
                logger.info("saved %s", save_path)

            if global_step >= args.max_train_steps:
                break
    accelerator.end_training()


if __name__ == "__main__":
    main()
