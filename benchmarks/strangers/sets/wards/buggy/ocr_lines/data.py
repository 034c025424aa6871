import torch
from torch.utils.data import Dataset

CHARS, HEIGHT, COLS = 10, 16, 40


class Lines(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        glyphs = torch.randn(CHARS, HEIGHT, 5, generator=g)
        self.images, self.texts = [], []
        for _ in range(n):
            text = torch.randint(1, CHARS, (6,), generator=g)
            image = 0.4 * torch.randn(HEIGHT, COLS, generator=g)
            for j, c in enumerate(text.tolist()):
                image[:, 2 + 6 * j:7 + 6 * j] += glyphs[c]
            self.images.append(image)
            self.texts.append(text)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.images[i], self.texts[i]
