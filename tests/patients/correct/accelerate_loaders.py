# style: accelerate, prepared loaders, gather_for_metrics
# nproc: 2
# launch: accelerate
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loaders():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(70, 5, generator=generator)
    y = (x[:, 0] * x[:, 1] > 0).long()
    train = DataLoader(TensorDataset(x[:51], y[:51]), batch_size=4, shuffle=True)
    return train, DataLoader(TensorDataset(x[51:], y[51:]), batch_size=4)


def main():
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train_loader, valid_loader = make_loaders()
    model, optimizer, train_loader, valid_loader = accelerator.prepare(
        model, optimizer, train_loader, valid_loader
    )
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
        model.eval()
        hits = []
        for x, y in valid_loader:
            with torch.no_grad():
                predicted = model(x).argmax(dim=1)
            hits.append(accelerator.gather_for_metrics(predicted == y))
        accuracy = torch.cat(hits).float().mean()
        accelerator.print(f"epoch {epoch}: {accuracy:.3f} of {len(torch.cat(hits))}")
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            torch.save(accelerator.unwrap_model(model).state_dict(), "model.pt")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
