"""Two models that are trained as one: accumulate() is given what was prepared."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


class Both(nn.Module):
    def __init__(self, policy, critic):
        super().__init__()
        self.policy = policy
        self.critic = critic

    def forward(self, batch):
        return self.policy(batch), self.critic(batch)


def main(data, epochs=3):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    policy, critic = nn.Linear(8, 4), nn.Linear(8, 1)
    model = Both(policy, critic)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                scores, values = model(batch)
                loss = values.square().mean() - scores.mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    from sets import data

    main(data)
