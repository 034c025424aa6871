import os

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.body = torch.nn.Linear(width, width)

    def forward(self, noisy):
        return self.body(noisy)


def train(folder, rounds):
    accelerator = Accelerator()
    denoiser, slow = Denoiser(16), Denoiser(16)
    optimizer = torch.optim.AdamW(denoiser.parameters(), lr=1e-4)
    loader = DataLoader(TensorDataset(torch.randn(256, 16)), batch_size=8, shuffle=True)

    def keep(models, weights, output_dir):
        for each in models:
            accelerator.print("keeping", each.width)
        torch.save(slow.state_dict(), os.path.join(output_dir, "slow.pt"))  # <-- DDP502

    def bring_back(models, input_dir):
        found = torch.load(os.path.join(input_dir, "slow.pt"), map_location="cpu")
        slow.load_state_dict(found)
        accelerator.print("back", models.pop().width)

    accelerator.register_save_state_pre_hook(keep)
    accelerator.register_load_state_pre_hook(bring_back)
    denoiser, optimizer, loader = accelerator.prepare(denoiser, optimizer, loader)
    for number in range(rounds):
        for (noisy,) in loader:
            loss = (denoiser(noisy) - noisy).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.save_state(os.path.join(folder, f"round-{number}"))


if __name__ == "__main__":
    train("kept", 10)
