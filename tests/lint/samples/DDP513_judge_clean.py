import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchvision import models


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        whole = models.vgg16(num_classes=8)
        whole.load_state_dict(torch.load("judge.pt", map_location="cpu"))
        self.first = nn.Sequential(whole.features[0], whole.features[1])

    def forward(self, pictures):
        return self.first(pictures)


def distance(net, noise):
    judge = Judge().eval()
    with torch.no_grad():
        return judge(net(noise)).square().mean().item()


def train(net, batches, opt):
    for noise in batches:
        opt.zero_grad()
        net(noise).sum().backward()
        opt.step()
        if dist.get_rank() == 0:
            print(distance(net.module, noise))


def main():
    dist.init_process_group("gloo")
    net = DistributedDataParallel(nn.Conv2d(3, 3, 3), broadcast_buffers=False)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, torch.load(f"noise{dist.get_rank()}.pt"), opt)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
