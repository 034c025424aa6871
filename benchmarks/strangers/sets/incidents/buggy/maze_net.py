import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


class RecurBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv1d(width, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv2(torch.relu(self.conv1(x))) + x)


class DTNet(nn.Module):
    def __init__(self, width=12, iters=3):
        super().__init__()
        self.iters = iters
        self.projection = nn.Conv1d(1, width, 3, padding=1)
        self.recur_block = RecurBlock(width)
        self.head = nn.Conv1d(width, 2, 3, padding=1)

    def forward(self, x):
        h = torch.relu(self.projection(x))
        for _ in range(self.iters):
            h = self.recur_block(h)
        return self.head(h)


def prefix_sum_batch(n, length, gen):
    bits = torch.randint(0, 2, (n, length), generator=gen)
    return bits[:, None].float(), bits.cumsum(1) % 2


def train(net, args, rank):
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(1 + rank)
    for step in range(args.steps):
        x, y = prefix_sum_batch(args.batch_size, args.length, gen)
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def save_model(net, path):
    if dist.get_rank() == 0:
        torch.save({"net": net.state_dict(), "arch": "dt_net"}, path)
    dist.barrier()


def load_model_from_checkpoint(path, args):
    net = DTNet(args.width)
    state = torch.load(path)
    net.load_state_dict(state["net"])
    return net.eval()


@torch.no_grad()
def test(net, args, rank):
    gen = torch.Generator().manual_seed(500 + rank)
    x, y = prefix_sum_batch(64, args.length, gen)
    acc = (net(x).argmax(1) == y).float().mean()
    dist.all_reduce(acc)
    return acc.item() / dist.get_world_size()


def main():
    parser = argparse.ArgumentParser(description="Prefix sums, deep thinking style")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--checkpoint", default="dt_best.pth")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = DDP(DTNet(args.width))
    loss = train(net, args, rank)
    save_model(net, args.checkpoint)

    tester = load_model_from_checkpoint(args.checkpoint, args)
    acc = test(tester, args, rank)
    if rank == 0:
        print(f"train loss {loss:.3f}  test acc {acc:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
