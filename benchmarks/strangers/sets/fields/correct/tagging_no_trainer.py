#!/usr/bin/env python
"""Sequence tagging with accelerate; checkpoints, logging and the best score are handled next to the main process."""
import json
import os
import shutil
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TAGS, VOCAB = 4, 30


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 24)
        self.rnn = nn.GRU(24, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, TAGS)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def sentences(n):
    ids = torch.randint(0, VOCAB, (n, 12))
    return TensorDataset(ids, (ids + ids.roll(1, 1)) % TAGS)


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(5)
    train, valid = sentences(320), sentences(101)
    model = Tagger()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    train_loader = DataLoader(train, batch_size=16, shuffle=True)
    valid_loader = DataLoader(valid, batch_size=16)
    model, opt, train_loader, valid_loader = accelerator.prepare(model, opt, train_loader, valid_loader)

    where = [tempfile.mkdtemp(prefix="tagging_") if accelerator.is_main_process else None]
    broadcast_object_list(where)
    out_dir, best = where[0], -1.0
    set_seed(5, device_specific=True)
    for epoch in range(3):
        model.train()
        for ids, tags in train_loader:
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        model.eval()
        right = total = 0
        for ids, tags in valid_loader:
            with torch.no_grad():
                guess = model(ids).argmax(-1)
            guess, tags = accelerator.gather_for_metrics((guess, tags))
            right += (guess == tags).sum().item()
            total += tags.numel()
        score = right / total
        if score > best:
            best = score
            accelerator.save_state(os.path.join(out_dir, "best"))
        if accelerator.is_main_process:
            with open(os.path.join(out_dir, "log.jsonl"), "a") as f:
                f.write(json.dumps({"epoch": epoch, "score": score}) + "\n")
        accelerator.print(f"epoch {epoch} score {score:.3f} on {total // 12} sentences")
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        shutil.rmtree(out_dir)
    accelerator.end_training()


if __name__ == "__main__":
    main()
