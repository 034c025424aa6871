"""Gathers what is predicted, then the batch's own texts: the padding stays in both."""

from collections import defaultdict

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn
from torch.utils.data import DataLoader


def evaluated(accelerator, model, loader):
    model.eval()
    found = defaultdict(list)
    with torch.no_grad():
        for batch in loader:
            scores = model(batch["better"]) - model(batch["worse"])
            scores = accelerator.gather(scores)  # <-- DDP208
            for name in batch:
                batch[name] = gather_object(batch[name])
            for number in range(len(scores)):
                found["text"].append(batch["text"][number])
                found["is right"].append(scores[number].item() > 0)
    model.train()
    return sum(found["is right"]) / len(found["is right"])


def main(train_set, valid_set, epochs=3):
    accelerator = Accelerator()
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    loaders = {"valid": DataLoader(valid_set, batch_size=16)}
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    loaders = {name: accelerator.prepare(loader) for name, loader in loaders.items()}
    for _ in range(epochs):
        for batch in train_loader:
            loss = nn.functional.softplus(model(batch["worse"]) - model(batch["better"])).mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        for name in loaders:
            accelerator.print(name, evaluated(accelerator, model, loaders[name]))


if __name__ == "__main__":
    from sets import train_set, valid_set

    main(train_set, valid_set)
