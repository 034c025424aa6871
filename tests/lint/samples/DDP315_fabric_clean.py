import lightning as L
import torch
from lightning.fabric.strategies import DDPStrategy


def main(loader, devices: int = 4, accumulate: int = 8):
    fabric = L.Fabric(accelerator="cuda", devices=devices, strategy=DDPStrategy())
    fabric.launch()
    model = torch.nn.Linear(8, 8)
    model = fabric.setup_module(model)
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer = fabric.setup_optimizers(optimizer)
    train(fabric, model, optimizer, accumulate, loader)


def train(fabric, model, optimizer, k, loader):
    for number, (inputs, targets) in enumerate(loader):
        is_accumulating = (number + 1) % k != 0
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            fabric.backward(loss / k)
        if not is_accumulating:
            optimizer.step()
            optimizer.zero_grad()
