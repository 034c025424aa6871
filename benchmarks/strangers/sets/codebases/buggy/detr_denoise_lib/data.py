import torch
from torch.utils.data import Dataset


class Pictures(Dataset):
    """Squares of two kinds on noise; some pictures (background only) have none."""

    def __init__(self, n, seed, size=16, empty=0.3):
        self.n, self.seed, self.size, self.empty = n, seed, size, empty

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        image = 0.1 * torch.randn(3, self.size, self.size, generator=g)
        count = 0 if torch.rand((), generator=g) < self.empty else int(torch.randint(1, 4, (), generator=g))
        labels = torch.randint(0, 2, (count,), generator=g)
        boxes = torch.rand(count, 4, generator=g) * 0.3 + torch.tensor([0.3, 0.3, 0.1, 0.1])
        for (cx, cy, w, h), label in zip((boxes * self.size).tolist(), labels.tolist()):
            image[label, int(cy - h / 2):int(cy + h / 2) + 1, int(cx - w / 2):int(cx + w / 2) + 1] += 1
        return image, {"labels": labels, "boxes": boxes, "image_id": i}


def collate_fn(batch):
    images, targets = zip(*batch)
    return torch.stack(images), list(targets)
