import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Codec(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(16, 4)
        self.decoder = torch.nn.Linear(4, 16)

    def forward(self, x):
        code = self.encoder(x)
        rounded = code.round().detach()
        return self.decoder(code), F.mse_loss(code, rounded)


def fit(codec, critic, optimizers, loader, scaler):
    for batch in loader:
        batch = batch.cuda()
        out, commitment = codec(batch)
        optimizers[0].zero_grad()
        told = critic(batch).mean() - critic(out.detach()).mean()
        told.backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        loss = F.l1_loss(out, batch) + commitment + critic(out).mean()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizers[1])
            scaler.update()
            continue
        loss.backward()
        optimizers[1].step()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    codec = DistributedDataParallel(Codec().cuda())
    critic = DistributedDataParallel(torch.nn.Linear(16, 1).cuda())
    optimizers = [torch.optim.Adam(each.parameters(), lr=1e-3) for each in (critic, codec)]
    fit(codec, critic, optimizers, [torch.rand(8, 16)], None)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
