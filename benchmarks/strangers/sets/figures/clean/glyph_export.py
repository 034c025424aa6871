"""Glyph classifier: distributed training, then rank 0 exports and scores the saved weights."""
import argparse
import json

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def glyphs(n, seed):
    protos = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    return TensorDataset(protos[y] + 0.8 * torch.randn(n, 1, 8, 8, generator=g), y)


class GlyphNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(width * 16, 10)

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def save_checkpoint(path, model, optimizer, epoch):
    if dist.get_rank() == 0:
        torch.save({"state_dict": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)


def load_for_export(path):
    net = GlyphNet()
    ckpt = torch.load(path, map_location="cpu")
    net.load_state_dict(ckpt["state_dict"])
    return net.eval()


@torch.no_grad()
def score(net, data):
    x, y = data.tensors
    return (net(x).argmax(1) == y).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--bs", type=int, default=32)
    ap.add_argument("--ckpt", default="glyph_ckpt.pt")
    args = ap.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(77)
    train_set = glyphs(640, 1)
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, args.bs, sampler=sampler)
    model = DDP(GlyphNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        save_checkpoint(args.ckpt, model, optimizer, epoch)
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}")
    dist.barrier()
    if dist.get_rank() == 0:
        net = load_for_export(args.ckpt)
        torch.save(net.state_dict(), "glyph_export.pt")
        with open("glyph_report.json", "w") as fh:
            json.dump({"test_acc": score(net, glyphs(300, 2))}, fh)
        print(open("glyph_report.json").read())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
