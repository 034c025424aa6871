import torch
import torch.distributed as dist

REGISTRY = {}


def register(name):
    def wrap(cls):
        REGISTRY[name] = cls
        return cls
    return wrap


class Evaluator:
    """compute() on a batch, merge() inside of a rank, aggregate() over the ranks."""

    def __init__(self):
        self.nll, self.tokens, self.hits = 0.0, 0, 0

    def compute(self, logits, labels):
        keep = labels != -100
        logp = logits.log_softmax(-1)[keep]
        target = labels[keep]
        self.nll += -logp.gather(1, target[:, None]).sum().item()
        self.hits += (logp.argmax(1) == target).sum().item()
        self.tokens += keep.sum().item()


@register("accuracy")
class Accuracy(Evaluator):
    def aggregate(self):
        t = torch.tensor([self.hits, self.tokens])
        dist.all_reduce(t)
        return (t[0] / t[1]).item()


@register("perplexity")
class Perplexity(Evaluator):
    def aggregate(self):
        ppl = torch.tensor(self.nll / self.tokens).exp()
        dist.all_reduce(ppl, op=dist.ReduceOp.AVG)
        return ppl.item()
