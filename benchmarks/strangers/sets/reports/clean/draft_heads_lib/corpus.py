"""A chat corpus with very different answer lengths."""
import torch
from torch.utils.data import Dataset

VOCAB, MAX_LEN = 50, 40


class Chats(Dataset):
    def __init__(self, n=128, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.tokens = torch.zeros(n, MAX_LEN, dtype=torch.long)
        self.prompt = torch.randint(4, 9, (n,), generator=g)
        answer = torch.randint(8, 30, (n,), generator=g)
        answer[70:86:2] = 3           # a run of "yes." answers from one source
        self.total = self.prompt + answer
        for i in range(n):
            start = torch.randint(1, VOCAB, (1,), generator=g).item()
            steps = torch.arange(self.total[i].item())
            self.tokens[i, : self.total[i]] = (start + 3 * steps) % VOCAB

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i], self.prompt[i], self.total[i]
