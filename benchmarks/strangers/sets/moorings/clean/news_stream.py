"""Topic model on a stream of news, with accelerate (accelerate launch --multi_gpu --num_processes 2 news_stream.py, on CPU)."""
import torch
import torch.nn as nn
from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader, IterableDataset

TOPICS, VOCAB = 4, 120


class NewsStream(IterableDataset):
    """Articles as they come in; there is no length."""

    def __init__(self, articles, seed=0):
        self.articles, self.seed = articles, seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        for _ in range(self.articles):
            topic = int(torch.randint(0, TOPICS, (1,), generator=g))
            length = int(torch.randint(5, 40, (1,), generator=g))
            common = torch.randint(TOPICS * 20, VOCAB, (length,), generator=g)
            special = torch.randint(topic * 20, topic * 20 + 20, (length,), generator=g)
            pick = torch.rand(length, generator=g) < 0.4
            yield torch.where(pick, special, common) + 1, topic


def collate(batch):
    words, topics = zip(*batch)
    return {"words": nn.utils.rnn.pad_sequence(words, batch_first=True), "topic": torch.tensor(topics)}


class BagClassifier(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 1, dim, padding_idx=0)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, TOPICS))

    def forward(self, words):
        mask = (words > 0).unsqueeze(-1)
        return self.mlp((self.embed(words) * mask).sum(1) / mask.sum(1))


def main():
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(split_batches=True))
    torch.manual_seed(0)
    model = BagClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(NewsStream(320), batch_size=8, collate_fn=collate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    seen = hits = 0
    for epoch in range(2):
        for step, batch in enumerate(loader):
            logits = model(batch["words"])
            loss = nn.functional.cross_entropy(logits, batch["topic"])
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            hits += (logits.argmax(1) == batch["topic"]).sum().item()
            seen += len(logits)
        accelerator.print(f"epoch {epoch} steps {step + 1} running accuracy {hits / seen:.3f}")
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
