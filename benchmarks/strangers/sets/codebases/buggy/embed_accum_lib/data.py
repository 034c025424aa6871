import torch
from torch.utils.data import Dataset


class TrainDatasetForEmbedding(Dataset):
    """A query names words of a topic; its passage is longer, about the same topic."""

    def __init__(self, args, seed=0):
        self.args, self.seed = args, seed
        g = torch.Generator().manual_seed(17)
        self.topics = torch.randint(1, 200, (args.topics, 8), generator=g)

    def __len__(self):
        return self.args.train_size

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 50021 + i)
        words = self.topics[i % self.args.topics]

        def text(n):
            known = words[torch.randint(0, len(words), (n,), generator=g)]
            noise = torch.randint(1, 200, (n,), generator=g)
            return torch.where(torch.rand(n, generator=g) < 0.7, known, noise)
        return text(self.args.query_max_len), text(self.args.passage_max_len)


class EmbedCollator:
    def __init__(self, args):
        self.args = args

    def __call__(self, features):
        query, passage = zip(*features)
        return {"query": torch.stack(query), "passage": torch.stack(passage)}
