# style: main_worker(gpu, ngpus, args) with mp.spawn, global seed
# launch: spawn
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def toy_images(n):
    generator = torch.Generator().manual_seed(3)
    images = torch.rand(n, 1, 8, 8, generator=generator)
    return TensorDataset(images, (images.mean(dim=(1, 2, 3)) > 0.5).long())


def train(loader, model, criterion, optimizer, epoch, args):
    model.train()
    for i, (images, target) in enumerate(loader):
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % args.print_freq == 0 and args.rank == 0:
            print(f"Epoch: [{epoch}][{i}/{len(loader)}] Loss {loss.item():.4f}")


def main_worker(gpu, ngpus_per_node, args):
    args.rank = gpu
    dist.init_process_group(
        "gloo", init_method=args.dist_url, world_size=ngpus_per_node, rank=args.rank
    )
    if args.seed is not None:
        torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    model = nn.parallel.DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    train_dataset = toy_images(48)
    args.batch_size = args.batch_size // ngpus_per_node
    train_sampler = DistributedSampler(train_dataset)
    train_loader = DataLoader(
        train_dataset,
        batch_size=args.batch_size,
        shuffle=(train_sampler is None),
        sampler=train_sampler,
    )
    for epoch in range(args.epochs):
        if isinstance(train_sampler, DistributedSampler):
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("-b", "--batch-size", default=16, type=int)
    parser.add_argument("--lr", default=0.1, type=float)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("-p", "--print-freq", default=4, type=int)
    args = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    args.dist_url = f"file://{os.path.join(tempfile.mkdtemp(), 'store')}"
    mp.spawn(main_worker, nprocs=2, args=(2, args))


if __name__ == "__main__":
    main()
