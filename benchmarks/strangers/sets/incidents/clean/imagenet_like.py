import argparse
import os
import random
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.parallel
import torch.optim
import torch.utils.data
import torch.utils.data.distributed

parser = argparse.ArgumentParser(description='training on a synthetic folder dataset')
parser.add_argument('-a', '--arch', default='mlp')
parser.add_argument('-j', '--workers', default=0, type=int)
parser.add_argument('--epochs', default=2, type=int)
parser.add_argument('-b', '--batch-size', default=64, type=int,
                    help='total batch size of all processes on this node')
parser.add_argument('--lr', default=0.1, type=float)
parser.add_argument('--procs', default=2, type=int, help='processes on this machine')
parser.add_argument('--world-size', default=1, type=int)
parser.add_argument('--rank', default=0, type=int, help='node rank')
parser.add_argument('--dist-url', default='tcp://127.0.0.1:29533', type=str)
parser.add_argument('--dist-backend', default='gloo', type=str)
parser.add_argument('--seed', default=None, type=int)


def main():
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
    nprocs = args.procs
    args.world_size = nprocs * args.world_size
    mp.spawn(main_worker, nprocs=nprocs, args=(nprocs, args))


def main_worker(proc, nprocs, args):
    args.proc = proc
    args.rank = args.rank * nprocs + proc
    print(f"=> worker {args.rank} up", flush=True)
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url,
                            world_size=args.world_size, rank=args.rank)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 10))
    args.batch_size = int(args.batch_size / nprocs)
    model = nn.parallel.DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9, weight_decay=1e-4)

    gen = torch.Generator().manual_seed(1)
    y = torch.randint(0, 10, (512,), generator=gen)
    x = torch.randn(512, 3, 8, 8, generator=gen) + y.view(-1, 1, 1, 1) * 0.2
    train_dataset = torch.utils.data.TensorDataset(x, y)
    train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset)
    train_loader = torch.utils.data.DataLoader(
        train_dataset, batch_size=args.batch_size, num_workers=args.workers, sampler=train_sampler)

    for epoch in range(args.epochs):
        train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
    dist.destroy_process_group()


def train(loader, model, criterion, optimizer, epoch, args):
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 4 == 0 and args.rank == 0:
            print(f"Epoch: [{epoch}][{i}/{len(loader)}] loss {loss.item():.4f} time {time.time() - end:.3f}", flush=True)
        end = time.time()


if __name__ == '__main__':
    main()
