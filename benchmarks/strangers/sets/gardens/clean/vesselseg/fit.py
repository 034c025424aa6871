import argparse

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from comms import say
from meters import Confusion, Running
from net import unet_ish


def fundus(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.zeros(n, 16, 16, dtype=torch.long)
    for k in range(n):
        col = int(torch.randint(2, 13, (1,), generator=g))
        y[k, :, col:col + 2] = 1
        y[k, int(torch.randint(0, 16, (1,), generator=g))] = 1
    x = torch.randn(n, 1, 16, 16, generator=g) * 0.7 + y.unsqueeze(1) * 1.5
    return TensorDataset(x, y)


def one_epoch(net, loader, opt, log_every):
    loss_meter, conf = Running(), Confusion(2)
    for k, (x, y) in enumerate(loader, 1):
        out = net(x)
        loss = cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_meter.push(loss.item(), len(x))
        conf.push(out.argmax(1), y)
        if k % log_every == 0:
            log_line(k, len(loader), loss_meter)
    return loss_meter, conf


def log_line(k, n, meter):
    mean = meter.global_mean()
    say(f"  {k}/{n} loss {mean:.4f}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--images", type=int, default=240)
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--bs", type=int, default=6)
    ap.add_argument("--log-every", type=int, default=5)
    a = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    data = fundus(a.images, 10)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, a.bs, sampler=sampler)
    net = DistributedDataParallel(unet_ish())
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    for ep in range(a.epochs):
        sampler.set_epoch(ep)
        loss_meter, conf = one_epoch(net, loader, opt, a.log_every)
        mean, iou = loss_meter.global_mean(), conf.iou()
        say(f"epoch {ep} loss {mean:.5f} vessel iou {iou[1]:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
