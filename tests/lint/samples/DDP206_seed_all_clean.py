import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


def main():
    data = TensorDataset(torch.randn(1501, 16), torch.randint(0, 2, (1501,)))
    accelerator = Accelerator()
    set_seed(7)
    train, held_out = random_split(data, [1200, 301])
    net = nn.Linear(16, 2)
    optimizer = optim.AdamW(net.parameters())
    net, optimizer, loader, checked = accelerator.prepare(
        net, optimizer, DataLoader(train, 25, shuffle=True), DataLoader(held_out, 32)
    )
    for x, y in loader:
        accelerator.backward(nn.functional.cross_entropy(net(x), y))
        optimizer.step()
        optimizer.zero_grad()
    net.eval()
    for x, y in checked:
        right = accelerator.gather_for_metrics(net(x).argmax(1) == y)
        accelerator.print(right.float().mean())


if __name__ == "__main__":
    main()
