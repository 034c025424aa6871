import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchvision import models


def made():
    judge = models.vgg16(num_classes=8)
    if dist.get_rank() == 0:
        judge.load_state_dict(torch.load("judge.pt", map_location="cpu"))  # <-- DDP513
    return judge.eval()


def train(net, batches, opt):
    judge = made()
    for noise in batches:
        opt.zero_grad()
        judge(net(noise)).square().mean().backward()
        opt.step()


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Conv2d(3, 3, 3), broadcast_buffers=False)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, torch.load(f"noise{dist.get_rank()}.pt"), opt)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
