"""Instruction tuning of a very small language model; only answer tokens count."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset

VOCAB, LEN, IGNORE = 40, 24, -100


class Dialogues(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        plen = int(torch.randint(4, 18, (1,), generator=g))
        ids = torch.randint(3, VOCAB, (LEN,), generator=g)
        for t in range(plen, LEN):
            ids[t] = 3 + (ids[t - 1] - 3 + 5) % (VOCAB - 3)
        labels = ids.clone()
        labels[:plen] = IGNORE
        return {"ids": ids, "labels": labels}


class RecurrentLM(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, VOCAB)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


def answer_loss(acc, logits, labels):
    target = labels[:, 1:].reshape(-1)
    summed = F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), target, ignore_index=IGNORE, reduction="sum")
    n_tok = acc.reduce((target != IGNORE).sum(), reduction="sum")
    return summed * acc.num_processes / n_tok


def main():
    acc = Accelerator(cpu=True)
    set_seed(4)
    loader = DataLoader(Dialogues(384), batch_size=8, shuffle=True)
    model = RecurrentLM()
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    model, opt, loader = acc.prepare(model, opt, loader)
    for epoch in range(3):
        seen = torch.zeros(2)
        for batch in loader:
            logits = model(batch["ids"])
            loss = answer_loss(acc, logits, batch["labels"])
            acc.backward(loss)
            opt.step()
            opt.zero_grad()
            with torch.no_grad():
                keep = batch["labels"][:, 1:] != IGNORE
                hit = (logits[:, :-1].argmax(-1) == batch["labels"][:, 1:]) & keep
                seen += torch.tensor([hit.sum().item(), keep.sum().item()])
        seen = acc.reduce(seen, reduction="sum")
        acc.print(f"epoch {epoch} answer token acc {(seen[0] / seen[1]).item():.4f}")
    acc.end_training()


if __name__ == "__main__":
    main()
