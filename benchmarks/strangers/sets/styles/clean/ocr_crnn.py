"""Text-line recognition (CRNN + CTC) on rendered code strips."""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from ocr_crnn_lib.converter import CTCConverter
from ocr_crnn_lib.dataset import LineStore, make_loader
from ocr_crnn_lib.engine import evaluate, train_epoch
from ocr_crnn_lib.model import CRNN


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch_size", type=int, default=8)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--manual_seed", type=int, default=1111)
    return p.parse_args()


def main():
    opt = parse()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(opt.manual_seed)

    store = LineStore(rank, world)
    converter = CTCConverter.from_lines(store)
    train_loader = make_loader(store, converter, opt.batch_size, seed=opt.manual_seed + rank)
    if rank == 0:
        print(f"{len(store)} lines on this process, {converter.num_classes} classes", flush=True)

    model = DDP(CRNN(converter.num_classes))
    torch.manual_seed(opt.manual_seed + 1 + rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    for epoch in range(opt.epochs):
        loss = train_epoch(model, train_loader, optimizer)
        exact = evaluate(model.module, train_loader, converter)
        if rank == 0:
            print(f"epoch {epoch} ctc {loss:.4f} exact {exact:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
