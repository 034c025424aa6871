import lightning as L
import torch
from jsonargparse import CLI


def train(fabric, model, optimizer, loader, steps):
    for number, (inputs, targets) in enumerate(loader):
        accumulates = (number + 1) % steps != 0
        with fabric.no_backward_sync(model, enabled=accumulates):
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            fabric.backward(loss / steps)
        if not accumulates:
            optimizer.step()
            optimizer.zero_grad()


def main(batch_size: int = 128, micro_batch_size: int = 4, devices: int = 4):
    fabric = L.Fabric(accelerator="cuda", devices=devices)
    fabric.launch()
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer = fabric.setup(model, optimizer)
    dataset = torch.utils.data.TensorDataset(torch.randn(512, 8), torch.randint(8, (512,)))
    loader = torch.utils.data.DataLoader(dataset, batch_size=micro_batch_size, shuffle=True)
    loader = fabric.setup_dataloaders(loader)
    train(fabric, model, optimizer, loader, batch_size // devices // micro_batch_size)


if __name__ == "__main__":
    CLI(main)
