import torch
import torch.distributed as dist

from tagger.corpus import Corpus
from tagger.fit import fit
from tagger.model import Tagger

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    corpus = Corpus(dist.get_rank(), dist.get_world_size())
    fit(Tagger(len(corpus.vocab)), corpus)
    dist.barrier()
    dist.destroy_process_group()
