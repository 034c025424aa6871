# Adapter tuning for masked-patch inpainting, driven by accelerate.
import json
import os
import shutil
import tempfile
from types import SimpleNamespace

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

args = SimpleNamespace(
    project_dir=os.path.join(tempfile.gettempdir(), f"inpaint_{os.getppid()}"),
    gradient_accumulation_steps=2,
    checkpointing_steps=6,
    max_train_steps=16,
    train_batch_size=8,
    learning_rate=2e-3,
)


class Backbone(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.frozen = nn.Linear(dim, dim)
        self.frozen.requires_grad_(False)
        self.down = nn.Linear(dim, 8)
        self.up = nn.Linear(8, dim)

    def forward(self, patches):
        return self.frozen(patches) + self.up(torch.relu(self.down(patches)))


def patches(n=256, dim=64):
    base = torch.randn(n, 4) @ torch.randn(4, dim)
    keep = (torch.rand(n, dim) > 0.3).float()
    return TensorDataset(base * keep, base)


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(7)
    model = Backbone()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.learning_rate)
    loader = DataLoader(patches(), batch_size=args.train_batch_size, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    global_step = 0
    while global_step < args.max_train_steps:
        for masked, full in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(masked), full)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()

            if accelerator.sync_gradients:
                global_step += 1
                accelerator.print(f"step {global_step} loss {loss.item():.4f}")

            if accelerator.sync_gradients and accelerator.is_main_process and global_step % args.checkpointing_steps == 0:
                save_path = os.path.join(args.project_dir, f"checkpoint-{global_step}")
                os.makedirs(save_path, exist_ok=True)
                accelerator.wait_for_everyone()
                unwrapped = accelerator.unwrap_model(model)
                wanted = [k for k, v in unwrapped.named_parameters() if v.requires_grad]
                state = {k: v for k, v in unwrapped.state_dict().items() if k in wanted}
                torch.save(state, os.path.join(save_path, "adapter.pt"))
                with open(os.path.join(save_path, "meta.json"), "w") as f:
                    json.dump({"step": global_step, "keys": wanted}, f)

            if global_step >= args.max_train_steps:
                break

    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        print(sorted(os.listdir(args.project_dir)))
        shutil.rmtree(args.project_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
