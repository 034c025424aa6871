import argparse

import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from tqdm.auto import tqdm


class PairDataset(Dataset):
    def __init__(self, n, seed, vocab=60, length=10):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(1, vocab, (n, length), generator=g)
        self.labels = (self.ids[:, :5].sum(1) > self.ids[:, 5:].sum(1)).long()

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class Classifier(nn.Module):
    def __init__(self, vocab=60, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 2)

    def forward(self, input_ids, labels=None):
        _, h = self.rnn(self.emb(input_ids))
        logits = self.out(h[-1])
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return loss, logits


def evaluate(accelerator, model, eval_loader):
    model.eval()
    preds, refs = [], []
    for batch in eval_loader:
        with torch.no_grad():
            _, logits = model(**batch)
        p, r = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
        preds.append(p)
        refs.append(r)
    model.train()
    return (torch.cat(preds) == torch.cat(refs)).float().mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--num_epochs", type=int, default=2)
    ap.add_argument("--eval_steps", type=int, default=10)
    ap.add_argument("--batch_size", type=int, default=16)
    ap.add_argument("--lr", type=float, default=2e-3)
    args = ap.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.manual_seed(13)
    train_loader = DataLoader(PairDataset(480, 0), batch_size=args.batch_size, shuffle=True)
    eval_loader = DataLoader(PairDataset(100, 1), batch_size=args.batch_size)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(
        model, optimizer, train_loader, eval_loader
    )

    total_steps = args.num_epochs * len(train_loader)
    progress_bar = tqdm(range(total_steps), disable=not accelerator.is_main_process)
    best, completed = 0.0, 0
    model.train()
    for epoch in range(args.num_epochs):
        for batch in train_loader:
            loss, _ = model(**batch)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            completed += 1

            if completed % args.eval_steps == 0:
                acc = evaluate(accelerator, model, eval_loader)
                best = max(best, acc)
                accelerator.print(f"step {completed} loss {loss.item():.3f} acc {acc:.3f}")
    accelerator.print("best", round(best, 3))
    accelerator.end_training()


if __name__ == "__main__":
    main()
