import torch


class ClassRecall:
    """Macro recall accumulated over batches."""

    def __init__(self, classes):
        self.hit = torch.zeros(classes)
        self.count = torch.zeros(classes)

    def update(self, guess, truth):
        for c in range(len(self.count)):
            pick = truth == c
            self.count[c] += pick.sum()
            self.hit[c] += (guess[pick] == c).sum()

    def value(self):
        return (self.hit / self.count.clamp(min=1)).mean().item()

    def total(self):
        return int(self.count.sum())
