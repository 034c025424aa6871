from collections import Counter

import torch

PAD, UNK = 0, 1


class Vocabulary:
    def __init__(self, limit):
        self.limit = limit
        self.index = {"<pad>": PAD, "<unk>": UNK}

    def fit(self, texts):
        counts = Counter()
        for t in texts:
            counts.update(t.split())
        for word, _ in counts.most_common(self.limit - len(self.index)):
            self.index[word] = len(self.index)
        return self

    def encode(self, text):
        return [self.index.get(w, UNK) for w in text.split()]

    def __len__(self):
        return self.limit


class Batcher:
    def __init__(self, vocab):
        self.vocab = vocab

    def __call__(self, rows):
        ids = [torch.tensor(self.vocab.encode(t)) for t, _ in rows]
        x = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)
        return x, torch.tensor([y for _, y in rows])
