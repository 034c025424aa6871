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


def fit(codec, optimizer, loader, weight):
    for batch in loader:
        batch = batch.cuda()
        optimizer.zero_grad()
        out, commitment = codec(batch)
        loss = F.l1_loss(out, batch)
        if weight is not None:
            (weight * loss).backward(retain_graph=True)
        else:
            loss.backward(retain_graph=True)
        commitment.backward()  # <-- DDP311
        optimizer.step()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    codec = DistributedDataParallel(Codec().cuda())
    optimizer = torch.optim.Adam(codec.parameters(), lr=1e-3)
    fit(codec, optimizer, [torch.rand(8, 16)], None)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
