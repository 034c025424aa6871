import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing import Process
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, 64)
        self.outer = nn.Linear(64, width)

    def forward(self, x):
        return x + self.outer(torch.relu(self.inner(x)))


class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = Block(width), Block(width)

    def forward(self, x):
        return self.second(self.first(x))


def build_backbone(width):
    return Backbone(width)


class Denoiser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.backbone = build_backbone(width)

    def forward(self, noisy):
        return self.backbone(noisy)


class Runner:
    def __init__(self, opt):
        self.net = Denoiser(opt.width).to(opt.device)

    def train(self, opt, batches):
        net = DDP(self.net, device_ids=[opt.device])
        optimizer = torch.optim.AdamW(net.parameters(), lr=opt.lr)
        for step in range(opt.steps):
            for clean in batches:
                optimizer.zero_grad()
                clean = clean.to(opt.device)
                predicted = net(clean + torch.randn_like(clean))
                loss = nn.functional.mse_loss(predicted, clean)
                loss.backward()
                optimizer.step()
            if step % 1000 == 0 and opt.rank == 0:
                torch.save({"net": self.net.state_dict()}, f"denoiser_{step}.pt")


def work(opt):
    generator = torch.Generator().manual_seed(opt.rank)
    batches = [torch.randn(8, opt.width, generator=generator)]
    Runner(opt).train(opt, batches)


def start(rank, size, opt):
    opt.rank, opt.device = rank, rank
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=size)
    work(opt)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--lr", type=float, default=1e-4)
    opt = parser.parse_args()
    if opt.gpus > 1:
        processes = []
        for rank in range(opt.gpus):
            process = Process(target=start, args=(rank, opt.gpus, opt))
            process.start()
            processes.append(process)
        for process in processes:
            process.join()
    else:
        start(0, opt.gpus, opt)
