"""Rectangles, bars and an occasional dot on a small canvas."""
import torch
from torch.utils.data import Dataset

CLASSES = ("box", "bar", "dot")
FREQUENCY = torch.tensor([0.62, 0.37, 0.01])


class ShapesOnCanvas(Dataset):
    def __init__(self, n, size=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            k = int(torch.randint(1, 4, (1,), generator=g))
            labels = torch.multinomial(FREQUENCY, k, replacement=True, generator=g)
            boxes = torch.cat([0.2 + 0.6 * torch.rand(k, 2, generator=g), 0.1 + 0.2 * torch.rand(k, 2, generator=g)], 1)
            image = 0.1 * torch.randn(3, size, size, generator=g)
            for lab, (cx, cy, w, h) in zip(labels.tolist(), boxes.tolist()):
                x0, x1 = int((cx - w / 2) * size), int((cx + w / 2) * size) + 1
                y0, y1 = int((cy - h / 2) * size), int((cy + h / 2) * size) + 1
                image[lab, y0:y1, x0:x1] += 1.0
            self.items.append((image, {"labels": labels, "boxes": boxes}))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    images, targets = zip(*batch)
    return torch.stack(images), list(targets)
