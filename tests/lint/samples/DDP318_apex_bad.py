import argparse
import os

import torch
import torch.distributed as dist
from apex.parallel import DistributedDataParallel
from torch import nn


class Speech(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.norm = nn.BatchNorm1d(hidden)
        self.out = nn.Linear(hidden, 29)
        self.spare = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.out(self.norm(x))

    @staticmethod
    def packed(model, epoch):
        return {"hidden": model.hidden, "epoch": epoch, "weights": model.state_dict()}  # <-- DDP318


def main(args):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = DistributedDataParallel(Speech(64).cuda(), delay_allreduce=True)
    rate = torch.optim.SGD(net.parameters(), lr=0.1)
    main_rank = dist.get_rank() == 0
    for epoch in range(args.epochs):
        for step in range(100):
            if step % 4:
                net.disable_allreduce()
            else:
                net.enable_allreduce()
            net(torch.randn(8, 64).cuda()).logsumexp(1).mean().backward()
            if step % 4 == 0:
                rate.step()
                rate.zero_grad()
        if main_rank:
            net.eval()
            with torch.no_grad():
                print(net(torch.randn(8, 64).cuda()).argmax(1))
            net.train()
            torch.save(Speech.packed(net, epoch), f"epoch_{epoch}.pt")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=3)
    main(options.parse_args())
