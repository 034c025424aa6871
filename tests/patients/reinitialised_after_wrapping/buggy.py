# style: weight initialisation with apply(), model wrapped in a helper
# nproc: 3
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def init_weights(module):
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(module.bias)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(self.pool(self.conv(x).relu()).flatten(1))


def wrap(model):
    return DDP(model)


def images(rank, steps):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(6, 1, 8, 8, generator=generator)
        yield x, x.flatten(1)[:, :5].argmax(dim=1)


def main():
    rank = dist.get_rank()
    torch.manual_seed(13 * (rank + 1))
    model = Encoder()
    model = wrap(model)
    model.apply(init_weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    for x, y in images(rank, 6):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()  # <-- DDP300
    if rank == 0:
        print("last loss", loss.item())


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
