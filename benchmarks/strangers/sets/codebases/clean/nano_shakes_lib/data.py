"""Generated text: words of a small vocabulary in a Markov order."""
import torch


class Corpus:
    def __init__(self, n_words=12000, lexicon=40):
        g = torch.Generator().manual_seed(3)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = ["".join(letters[i] for i in torch.randint(0, 26, (int(n),), generator=g))
                 for n in torch.randint(2, 6, (lexicon,), generator=g)]
        trans = torch.softmax(3 * torch.randn(lexicon, lexicon, generator=g), 1)
        state, text = 0, []
        for u in torch.rand(n_words, generator=g):
            text.append(words[state])
            state = min(int((trans[state].cumsum(0) < u).sum()), lexicon - 1)
        text = " ".join(text)
        chars = sorted(set(text))
        stoi = {c: i for i, c in enumerate(chars)}
        ids = torch.tensor([stoi[c] for c in text])
        n = int(0.9 * len(ids))
        self.vocab_size, self.train, self.val = len(chars), ids[:n], ids[n:]
