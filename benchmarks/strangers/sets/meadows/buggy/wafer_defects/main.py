"""Wafer map classifier; run with torchrun or accelerate launch."""
import argparse
import json
import os
import sys

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from data import wafer_maps
from metrics import ClassRecall


def network():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, stride=2, padding=2), nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(24 * 16, 3),
    )


class Runner:
    def __init__(self, args):
        self.acc = Accelerator(cpu=True)
        self.args = args
        set_seed(args.seed)
        model = network()
        optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
        train = DataLoader(wafer_maps(args.train, 1), batch_size=args.batch, shuffle=True)
        val = DataLoader(wafer_maps(args.val, 2), batch_size=8)
        self.model, self.optim, self.train, self.val = self.acc.prepare(model, optim, train, val)
        self.history = []

    def train_epoch(self):
        self.model.train()
        for maps, kind in self.train:
            self.optim.zero_grad()
            loss = nn.functional.cross_entropy(self.model(maps), kind)
            self.acc.backward(loss)
            self.optim.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        recall = ClassRecall(3)
        for maps, kind in self.val:
            guess = self.model(maps).argmax(-1)
            recall.update(guess, kind)
        return recall

    def run(self):
        best = -1.0
        for epoch in range(self.args.epochs):
            self.train_epoch()
            recall = self.evaluate()
            score = recall.value()
            self.history.append(score)
            self.acc.print(f"epoch {epoch} recall {score:.4f}")
            if score > best:
                best = score
                self.acc.save(
                    self.acc.unwrap_model(self.model).state_dict(), self.args.out + ".pt"
                )
        self.acc.wait_for_everyone()
        if self.acc.is_main_process:
            with open(self.args.out + ".json", "w") as f:
                json.dump({"best": best, "history": self.history}, f)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--train", type=int, default=160)
    ap.add_argument("--val", type=int, default=96)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=12)
    ap.add_argument("--out", default="wafer")
    Runner(ap.parse_args()).run()


if __name__ == "__main__":
    main()
    PartialState().destroy_process_group()
