# Exported from notebook "swap_codes.ipynb" (structure/texture codes).
# %% imports
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

# %% settings
SEED, BATCH, EPOCHS, LR = 21, 8, 2, 3e-3
W_REC, W_SWAP = 1.0, 0.5


# %% networks
class SwapAE(nn.Module):
    def __init__(self, width=24, structure=6, texture=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(16, width), nn.SiLU())
        self.to_structure = nn.Linear(width, structure)
        self.to_texture = nn.Linear(width, texture)
        self.generator = nn.Sequential(nn.Linear(structure + texture, width), nn.SiLU(), nn.Linear(width, 16))

    def encode(self, x):
        h = self.stem(x)
        return self.to_structure(h), self.to_texture(h)

    def decode(self, structure, texture):
        return self.generator(torch.cat([structure, texture], 1))

    def forward(self, x):
        structure, texture = self.encode(x)
        recon = self.decode(structure, texture)
        hybrid = self.decode(structure, texture.roll(1, 0))
        return recon, hybrid, structure, self.encode(hybrid)[0]


# %% data
def get_loader():
    g = torch.Generator().manual_seed(SEED)
    x = torch.randn(96, 5, generator=g) @ torch.randn(5, 16, generator=g)
    ds = TensorDataset(x)
    return DataLoader(ds, batch_size=BATCH, sampler=DistributedSampler(ds, seed=SEED))


# %% losses
def autoencoder_losses(net, x):
    structure, texture = net.module.encode(x)
    recon = net.module.decode(structure, texture)
    hybrid = net.module.decode(structure, texture.roll(1, 0))
    again = net.module.encode(hybrid)[0]
    rec = (recon - x).abs().mean()
    swap = nn.functional.mse_loss(again, structure.detach())
    return W_REC * rec + W_SWAP * swap


# %% training
def train():
    loader = get_loader()
    torch.manual_seed(SEED)
    net = DistributedDataParallel(SwapAE())
    optimizer = torch.optim.Adam(net.parameters(), lr=LR, betas=(0.0, 0.99))
    history = []
    for epoch in range(EPOCHS):
        loader.sampler.set_epoch(epoch)
        for (x,) in loader:
            loss = autoencoder_losses(net, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        history.append(mean.item() / dist.get_world_size())
    return history


# %% go
if __name__ == "__main__":
    dist.init_process_group("gloo")
    losses = train()
    if dist.get_rank() == 0:
        print("last loss per epoch:", ["%.4f" % v for v in losses], flush=True)
    dist.destroy_process_group()
