import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def meet(seat, cards, address):
    dist.init_process_group("nccl", init_method=address, world_size=cards, rank=seat)
    torch.cuda.set_device(seat)


def main(args):
    meet(args.seat, args.cards, args.address)
    net = torch.nn.Conv1d(80, 1, 7, padding=3).cuda()
    net = DistributedDataParallel(net, device_ids=[args.seat])
    if args.seat == 0:
        torch.save(net.module.state_dict(), "start.pt")
    dist.barrier()
    print(net)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--seat", type=int, default=0)
    options.add_argument("--cards", type=int, default=1)
    options.add_argument("--address", default="tcp://10.0.0.1:1234")
    main(options.parse_args())
