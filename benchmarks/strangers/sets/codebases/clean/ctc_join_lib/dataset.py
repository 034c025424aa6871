import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import IterableDataset


class Dataset(IterableDataset):
    """Utterances of this rank, shuffled, sorted in a buffer and cut into batches of so many frames."""

    def __init__(self, conf, vocab, rank, world_size, sort_size=40):
        self.conf, self.vocab, self.rank, self.world_size, self.sort_size = conf, vocab, rank, world_size, sort_size
        self.epoch = 0
        self.voices = torch.randn(vocab, conf["input_dim"], generator=torch.Generator().manual_seed(5))

    def set_epoch(self, epoch):
        self.epoch = epoch

    def utterance(self, i):
        g = torch.Generator().manual_seed(1000 + i)
        length = 2 + (i * 7919) % 9 + (4 if i % self.world_size else 0)  # recordings of the second site are longer
        label = torch.randint(1, self.vocab, (length,), generator=g)
        feats = self.voices[label].repeat_interleave(4, 0)
        return feats + 0.3 * torch.randn(feats.shape, generator=g), label

    def __iter__(self):
        g = torch.Generator().manual_seed(self.epoch)
        order = torch.randperm(self.conf["utterances"], generator=g).tolist()
        mine = [i for i in order if i % self.world_size == self.rank]
        for k in range(0, len(mine), self.sort_size):
            batch, longest = [], 0
            for feats, label in sorted(map(self.utterance, mine[k:k + self.sort_size]), key=lambda u: len(u[0])):
                longest = max(longest, len(feats))
                if batch and longest * (len(batch) + 1) > self.conf["max_frames_in_batch"]:
                    yield self.padding(batch)
                    batch, longest = [], len(feats)
                batch.append((feats, label))
            yield self.padding(batch)

    @staticmethod
    def padding(batch):
        feats, labels = zip(*batch)
        return {"feats": pad_sequence(feats, batch_first=True), "feats_lengths": torch.tensor([len(f) for f in feats]),
                "target": pad_sequence(labels, batch_first=True), "target_lengths": torch.tensor([len(t) for t in labels])}
