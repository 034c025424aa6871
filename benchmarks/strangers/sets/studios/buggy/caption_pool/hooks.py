import random

import torch

from text import BOS, EOS, WORDS


class Hook:
    def before_epoch(self, run):
        pass

    def after_epoch(self, run):
        pass


class LossLine(Hook):
    def before_epoch(self, run):
        run.losses = []

    def after_epoch(self, run):
        print(f"epoch {run.epoch}: loss {sum(run.losses) / len(run.losses):.3f} in {len(run.losses)} steps", flush=True)


class Preview(Hook):
    """Continue a few training captions, for the eye."""

    def __init__(self, k=3, extra=4):
        self.k, self.extra = k, extra

    @torch.no_grad()
    def after_epoch(self, run):
        lm = run.ddp.module.eval()
        for seq in random.sample(run.sequences, self.k):
            ids = seq[:4].tolist()
            for _ in range(self.extra):
                nxt = lm(torch.tensor([ids]))[0, -1].argmax().item()
                ids.append(nxt)
                if nxt == EOS:
                    break
            print("   ", " ".join(WORDS[i - 3] for i in ids if i > EOS and i != BOS), flush=True)
        lm.train()
