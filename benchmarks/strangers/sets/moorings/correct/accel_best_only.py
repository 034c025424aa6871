"""Soil moisture with accelerate: everyone takes part in the evaluation, the main process alone prints and writes."""
import os
import tempfile

import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def plots(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 8, generator=g)
    return TensorDataset(x, (x[:, 1] * 2 - x[:, 3] * x[:, 6]).unsqueeze(1))


def evaluate(accelerator, model, loader):
    model.eval()
    errors = []
    for x, y in loader:
        with torch.no_grad():
            out = model(x)
        out, y = accelerator.gather_for_metrics((out, y))
        errors.append((out - y).abs())
    model.train()
    errors = torch.cat(errors)
    accelerator.print(f"evaluated {len(errors)} plots")
    return errors.mean().item()


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train_loader = DataLoader(plots(160, 0), batch_size=16, shuffle=True)
    val_loader = DataLoader(plots(53, 1), batch_size=8)
    model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
    path = os.path.join(tempfile.gettempdir(), f"soil_{os.environ.get('MASTER_PORT', '0')}.pt")
    best, stale = float("inf"), 0
    for epoch in range(6):
        for x, y in train_loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        mae = evaluate(accelerator, model, val_loader)
        if mae < best - 1e-3:
            best, stale = mae, 0
            if accelerator.is_main_process:
                accelerator.save(accelerator.unwrap_model(model).state_dict(), path)
        else:
            stale += 1
        if stale == 2:
            break
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).load_state_dict(torch.load(path))
    accelerator.print(f"best mae {best:.4f}")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        os.remove(path)
    accelerator.end_training()


if __name__ == "__main__":
    main()
