"""Frame-level phoneme classifier with accelerate."""
import argparse
import os
import sys

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from phonemes import Frames


def model():
    return nn.Sequential(nn.Flatten(), nn.Linear(60, 48), nn.ReLU(), nn.Linear(48, 5))


def evaluate(acc, net, loader):
    net.eval()
    hits = seen = 0
    for x, y in loader:
        with torch.no_grad():
            guess = net(x).argmax(-1)
        guess, y = acc.gather_for_metrics((guess, y))
        hits += (guess == y).sum().item()
        seen += len(y)
    net.train()
    return hits / seen, seen


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--accumulate", type=int, default=2)
    ap.add_argument("--out", default="phoneme.pt")
    args = ap.parse_args()
    acc = Accelerator(cpu=True, gradient_accumulation_steps=args.accumulate)
    set_seed(2)
    net = model()
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    train = DataLoader(Frames(300, 1), batch_size=16, shuffle=True)
    val = DataLoader(Frames(101, 2), batch_size=16)
    net, opt, train, val = acc.prepare(net, opt, train, val)
    best = 0.0
    for epoch in range(args.epochs):
        for x, y in train:
            with acc.accumulate(net):
                loss = nn.functional.cross_entropy(net(x), y)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
        score, seen = evaluate(acc, net, val)
        acc.print(f"epoch {epoch}: accuracy {score:.3f} on {seen}")
        if score > best:
            best = score
            weights = acc.get_state_dict(net)
            if acc.is_main_process:
                torch.save(weights, args.out)
    acc.wait_for_everyone()


if __name__ == "__main__":
    main()
    PartialState().destroy_process_group()
