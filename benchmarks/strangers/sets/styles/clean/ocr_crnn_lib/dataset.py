"""Lines of three scanned books; every character is drawn as a fixed random glyph."""
import random

import torch
from torch.utils.data import DataLoader, Dataset

BOOKS = {
    "ledger": "0123456789.,-",
    "letters": "abcdefghijklmnopqrstuvwxyz '",
    "catalogue": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/",
}
GLYPH = {c: torch.rand(12, 6, generator=torch.Generator().manual_seed(ord(c))) for b in BOOKS.values() for c in b}


def page_list(lines_per_book=60, seed=2):
    rng = random.Random(seed)
    out = []
    for book, letters in BOOKS.items():
        for _ in range(lines_per_book):
            out.append((book, "".join(rng.choice(letters) for _ in range(rng.randint(3, 5)))))
    return out


class LineStore(Dataset):
    """Holds only what this process reads; the scans of a book live next to each other on disk."""

    def __init__(self, rank, world):
        pages = page_list()
        share = len(pages) // world
        self.lines = [text for _, text in pages[rank * share:(rank + 1) * share]]

    def texts(self):
        return list(self.lines)

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        text = self.lines[i]
        strip = torch.cat([GLYPH[c] for c in text] + [torch.zeros(12, 6)] * (5 - len(text)), dim=1)
        return strip.unsqueeze(0) + 0.05 * torch.randn(1, *strip.shape), text


def make_loader(store, converter, batch_size, seed):
    def collate(items):
        images, texts = zip(*items)
        flat, lengths = converter.encode(texts)
        return torch.stack(images), flat, lengths, texts

    return DataLoader(store, batch_size, shuffle=True, collate_fn=collate, drop_last=True,
                      generator=torch.Generator().manual_seed(seed))
