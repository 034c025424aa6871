"""A library that restores all that it has saved."""

import torch
from accelerate import Accelerator


def main(net, loader, folder, again):
    acc = Accelerator()
    optimizer = torch.optim.AdamW(net.parameters())
    net, optimizer, loader = acc.prepare(net, optimizer, loader)
    if again:
        acc.load_state(folder)
    for number, batch in enumerate(loader):
        acc.backward(net(batch).mean())
        optimizer.step()
        optimizer.zero_grad()
        if number % 100 == 99:
            acc.save_state(folder)


if __name__ == "__main__":
    main(torch.nn.Linear(3, 1), torch.utils.data.DataLoader([]), "state", True)
