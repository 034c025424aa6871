"""Distils a model, and keeps it in the form of its library after each epoch."""

import argparse
from pathlib import Path

from accelerate import Accelerator
from torch.optim import AdamW
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from reviews import Reviews


class Distiller:
    def __init__(self, options):
        self.accelerator = Accelerator()
        self.tokenizer = AutoTokenizer.from_pretrained(options.model)
        student = AutoModelForSequenceClassification.from_pretrained(options.model)
        loader = DataLoader(Reviews(self.tokenizer), batch_size=16, shuffle=True)
        optimizer = AdamW(student.parameters(), lr=options.lr)
        self.student, self.optimizer, self.loader = self.accelerator.prepare(
            student, optimizer, loader
        )
        self.out = Path(options.out)

    def keep(self, epoch):
        self.accelerator.wait_for_everyone()
        folder = self.out / f"epoch-{epoch}"
        bare = self.accelerator.unwrap_model(self.student)
        main = self.accelerator.is_main_process
        bare.save_pretrained(folder, is_main_process=main)
        if main:
            self.tokenizer.save_pretrained(folder)

    def run(self, epochs):
        for epoch in range(epochs):
            for batch in self.loader:
                self.accelerator.backward(self.student(**batch).loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self.keep(epoch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="small")
    parser.add_argument("--out", default="distilled")
    parser.add_argument("--lr", type=float, default=3e-5)
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    Distiller(options).run(options.epochs)
