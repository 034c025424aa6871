import math

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def linear_schedule(optimizer, warmup, total):
    def f(step):
        return step / max(1, warmup) if step < warmup else max(0.0, (total - step) / max(1, total - warmup))
    return LambdaLR(optimizer, f)


def main(epochs=3, batch_size=8):
    accelerator = Accelerator(cpu=True)
    set_seed(1)
    x = torch.randn(256, 6)
    ds = TensorDataset(x, x.abs().sum(1, keepdim=True))
    loader = DataLoader(ds, batch_size=batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    max_train_steps = epochs * math.ceil(len(loader))
    scheduler = linear_schedule(optimizer, warmup=4, total=max_train_steps)
    for epoch in range(epochs):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch} loss {loss.item():.4f} lr {optimizer.param_groups[0]['lr']:.2e}")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
