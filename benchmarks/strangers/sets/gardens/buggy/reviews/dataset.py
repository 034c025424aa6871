import torch
from torch.utils.data import Dataset

from corpus import take_shard, write_reviews
from lexicon import Lexicon


class ReviewData(Dataset):
    def __init__(self, rows, lexicon):
        self.rows, self.lexicon = rows, lexicon

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        text, label = self.rows[k]
        return self.lexicon.encode(text), torch.tensor(label)


def load(n, seed, rank, world):
    rows = write_reviews(n, seed)
    rows = take_shard(rows, rank, world)
    lexicon = Lexicon(text for text, _ in rows)
    return ReviewData(rows, lexicon), lexicon
