import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def train_epoch(model, loader, optimizer, epoch):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        loss.backward()
        optimizer.step()


def main(args):
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    data = torch.load(args.data, weights_only=False)
    loader = DataLoader(data, batch_size=32, sampler=DistributedSampler(data), drop_last=True)
    model = DistributedDataParallel(torch.nn.Linear(128, 10).cuda(), device_ids=[gpu])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    start = 0
    if args.resume is not None:
        checkpoint = torch.load(args.resume, map_location=f"cuda:{gpu}")
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        start = checkpoint["epoch"] + 1
    for epoch in range(start, args.epochs):
        train_epoch(model, loader, optimizer, epoch)
        if dist.get_rank() == 0:
            checkpoint = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "epoch": epoch,
            }
            torch.save(checkpoint, os.path.join(args.folder, f"epoch_{epoch}.pth"))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data")
    parser.add_argument("--folder")
    parser.add_argument("--resume")
    parser.add_argument("--epochs", type=int, default=500)
    main(parser.parse_args())
