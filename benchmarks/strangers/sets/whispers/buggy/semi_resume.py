# semi-supervised training with a teacher; second call continues from checkpoint.pth
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", default=6, type=int)
parser.add_argument("--resume", default="checkpoint.pth")
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--lam", default=0.1, type=float)


def create_model():
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))


def blobs(seed, n):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    return torch.randn(n, 10, generator=g) + 2 * nn.functional.one_hot(y, 10), y


def save_checkpoint(path, model, teacher, optimizer, epoch, best_acc):
    torch.save({
        "epoch": epoch,
        "state_dict": model.state_dict(),
        "teacher": teacher.state_dict(),
        "optimizer": optimizer.state_dict(),
        "best_acc": best_acc,
    }, path)


@torch.no_grad()
def update_teacher(teacher, model, m=0.9):
    for t, s in zip(teacher.parameters(), model.parameters()):
        t.mul_(m).add_(s, alpha=1 - m)


def accuracy(net, data):
    with torch.no_grad():
        return (net(data[0]).argmax(1) == data[1]).float().mean().item()


def main(args, last_epoch):
    rank = dist.get_rank()
    model, teacher = create_model(), create_model()
    teacher.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    test = blobs(99, 300)
    start_epoch, best_acc = 0, 0.0
    if os.path.isfile(args.resume):
        checkpoint = torch.load(args.resume, map_location="cpu")
        start_epoch, best_acc = checkpoint["epoch"], checkpoint["best_acc"]
        model.load_state_dict(checkpoint["state_dict"], strict=False)
        teacher.load_state_dict(checkpoint["teacher"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        if rank == 0:
            print(f"==> resumed at epoch {start_epoch}, best accuracy {best_acc:.3f}", flush=True)
    dist.barrier()
    model = DDP(model)
    for epoch in range(start_epoch, last_epoch):
        for i in range(8):
            x, y = blobs(1000 * epoch + 10 * i + rank, 32)
            logits = model(x)
            with torch.no_grad():
                target = teacher(x + 0.1).softmax(1)
            loss = nn.functional.cross_entropy(logits, y) + args.lam * (logits.softmax(1) - target).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            update_teacher(teacher, model.module)
        acc = accuracy(model.module, test)
        best_acc = max(acc, best_acc)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} acc {acc:.3f}", flush=True)
            save_checkpoint(args.resume, model, teacher, optimizer, epoch + 1, best_acc)
        dist.barrier()


if __name__ == "__main__":
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    fresh = not os.path.isfile(args.resume)
    dist.barrier()
    if fresh:
        main(args, args.epochs // 2)
    main(args, args.epochs)
    dist.destroy_process_group()
