import os

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def prepare_file(path="toy_data.pt"):
    if not os.path.exists(path):
        g = torch.Generator().manual_seed(0)
        x = torch.randn(135, 5, generator=g)
        torch.save({"x": x, "y": (x[:, 0] > x[:, 1]).long()}, path)
    return torch.load(path)


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    with accelerator.main_process_first():
        blob = prepare_file()
    train = DataLoader(TensorDataset(blob["x"][:100], blob["y"][:100]), batch_size=10, shuffle=True)
    test = DataLoader(TensorDataset(blob["x"][100:], blob["y"][100:]), batch_size=8)
    model = nn.Linear(5, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.3)
    model, opt, train, test = accelerator.prepare(model, opt, train, test)
    for epoch in range(3):
        for x, y in train:
            with accelerator.accumulate(model):
                accelerator.backward(nn.functional.cross_entropy(model(x), y))
                opt.step()
                opt.zero_grad()
    model.eval()
    right = []
    for x, y in test:
        with torch.no_grad():
            right.append(accelerator.gather_for_metrics(model(x).argmax(1) == y))
    right = torch.cat(right)
    if accelerator.is_main_process:
        print(f"{len(right)} test samples, accuracy {right.float().mean().item():.3f}", flush=True)
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
