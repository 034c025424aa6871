"""Fine-tune a small seq2seq re-scorer with accelerate, evaluating every few hundred updates."""
import math
from argparse import Namespace

import torch
import torch.nn as nn
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

CFG = Namespace(vocab=64, dim=32, length=10, lr=3e-3, epochs=2, bsz=8, eval_every=6, seed=13)


class Bar:
    """Tiny text progress bar, so that tqdm is not needed on the cluster image."""

    def __init__(self, total, disable=False, width=20):
        self.total, self.disable, self.width = total, disable, width
        self.n = 0
        self.note = ""

    def update(self, k=1):
        if self.disable:
            return
        self.n += k

    def set_postfix(self, **kw):
        self.note = " ".join(f"{k}={v}" for k, v in kw.items())

    def show(self):
        if self.disable:
            return
        full = int(self.width * self.n / self.total)
        print("[" + "#" * full + "." * (self.width - full) + f"] {self.n}/{self.total} {self.note}", flush=True)


class Rescorer(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        h, _ = self.enc(self.emb(tokens))
        return self.out(h)


def corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    start = torch.randint(0, CFG.vocab, (n, 1), generator=g)
    step = torch.randint(1, 4, (n, 1), generator=g)
    ids = (start + step * torch.arange(CFG.length + 1)) % CFG.vocab
    return TensorDataset(ids[:, :-1], ids[:, 1:])


def evaluate(acc, model, loader):
    model.eval()
    losses = []
    for src, tgt in loader:
        with torch.no_grad():
            logits = model(src)
        nll = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten(), reduction="none")
        losses.append(acc.gather_for_metrics(nll.view(len(src), -1).mean(1)))
    model.train()
    return math.exp(torch.cat(losses).mean().item())


def main():
    acc = Accelerator(cpu=True)
    torch.manual_seed(CFG.seed)
    model = Rescorer(CFG.vocab, CFG.dim)
    optim = torch.optim.AdamW(model.parameters(), lr=CFG.lr)
    train = DataLoader(corpus(128, 1), batch_size=CFG.bsz, shuffle=True)
    dev = DataLoader(corpus(50, 2), batch_size=16)
    model, optim, train, dev = acc.prepare(model, optim, train, dev)

    bar = Bar(CFG.epochs * len(train), disable=not acc.is_local_main_process)
    best = float("inf")
    for epoch in range(CFG.epochs):
        for src, tgt in train:
            logits = model(src)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt.flatten())
            acc.backward(loss)
            optim.step()
            optim.zero_grad()
            bar.update()
            if bar.n > 0 and bar.n % CFG.eval_every == 0:
                ppl = evaluate(acc, model, dev)
                best = min(best, ppl)
                bar.set_postfix(epoch=epoch, loss=f"{loss.item():.3f}", ppl=f"{ppl:.2f}", best=f"{best:.2f}")
                bar.show()
    acc.wait_for_everyone()
    acc.print(f"best dev perplexity {best:.2f}")
    acc.end_training()


if __name__ == "__main__":
    main()
