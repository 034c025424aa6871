class Vocab(dict):
    @classmethod
    def from_sentences(cls, sents):
        seen = sorted({w for s in sents for w in s})
        return cls({"<pad>": 0, **{w: i + 1 for i, w in enumerate(seen)}})
