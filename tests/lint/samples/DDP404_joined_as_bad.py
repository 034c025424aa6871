import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.tensorboard import SummaryWriter


def meet(number, cards, address):
    torch.cuda.set_device(number % torch.cuda.device_count())
    dist.init_process_group("nccl", init_method=address, world_size=cards, rank=number)


def vocode(mels):
    cards = torch.cuda.device_count()
    if cards > 1:
        meet(args.rank, cards, args.address)
    net = torch.nn.Conv1d(80, 1, 7, padding=3).cuda()
    if cards > 1:
        net = DistributedDataParallel(net, device_ids=[args.rank])
    rate = torch.optim.Adam(net.parameters(), lr=1e-4)
    for step, (mel, wave) in enumerate(mels):
        loss = (net(mel.cuda()) - wave.cuda()).abs().mean()
        rate.zero_grad()
        loss.backward()
        rate.step()
        if args.weights and step % 1000 == 0:
            for name, weight in net.named_parameters():
                board.add_histogram(name, weight, step)  # <-- DDP404


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--rank", type=int, default=0)
    options.add_argument("--address", default="tcp://localhost:54321")
    options.add_argument("--weights", action="store_true")
    args = options.parse_args()
    if args.rank == 0:
        board = SummaryWriter("runs/vocoder")
    vocode(torch.load("/data/mels.pt", map_location="cpu"))
