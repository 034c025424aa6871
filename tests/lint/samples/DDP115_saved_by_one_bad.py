"""Tells birds by their calls, on every card of a machine, and keeps what the first has learnt."""

import os

import torch
from torch import nn


class Calls(nn.Module):
    def __init__(self):
        super().__init__()
        self.heard, self.bird = nn.GRU(20, 32, batch_first=True), nn.Linear(32, 12)

    def forward(self, calls):
        return self.bird(self.heard(calls)[0][:, -1])


def main():
    rank, card = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    calls = torch.rand(256, 30, 20, generator=torch.Generator().manual_seed(2))
    birds = torch.randint(0, 12, (256,), generator=torch.Generator().manual_seed(3))
    model = Calls().to(f"cuda:{card}")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        for some in torch.randperm(256).split(32):
            optimizer.zero_grad()
            told = model(calls[some].to(f"cuda:{card}"))
            nn.functional.cross_entropy(told, birds[some].to(f"cuda:{card}")).backward()
            optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), "birds.pt")  # <-- DDP115


if __name__ == "__main__":
    main()
