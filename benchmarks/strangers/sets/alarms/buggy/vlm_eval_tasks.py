"""Evaluation harness: tasks are run one after another, every rank handles its slice of the questions."""
import json
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn

log = logging.getLogger("harness")
RANK = int(os.environ.get("RANK", 0))
WORLD = int(os.environ.get("WORLD_SIZE", 1))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Linear(6, 3)

    def answer(self, feats):
        return int(self.net(feats).argmax())


def load_task(name, n=9):
    g = torch.Generator().manual_seed(len(name))
    docs = [{"id": i, "x": torch.randn(6, generator=g).tolist(), "gold": i % 3} for i in range(n)]
    if name == "chartqa":
        docs[5].pop("gold")          # known hole in the public release
    return docs


def evaluate_task(model, name):
    docs = load_task(name)
    rows = []
    for doc in docs[RANK::WORLD]:
        pred = model.answer(torch.tensor(doc["x"]))
        rows.append((doc["id"], float(pred == doc["gold"])))
    gathered = [None] * WORLD
    dist.all_gather_object(gathered, rows)
    flat = [s for part in gathered for _, s in sorted(part)]
    return sum(flat) / len(flat)


def run(tasks):
    model = Scorer().eval()
    results = {}
    for name in tasks:
        try:
            with torch.no_grad():
                results[name] = evaluate_task(model, name)
        except Exception as e:
            log.error("task %s failed: %r", name, e)
            results[name] = None
    return results


def cli():
    logging.basicConfig(level=logging.INFO, format=f"[rank {RANK}] %(message)s")
    dist.init_process_group("gloo")
    results = run(["vqa", "chartqa", "docvqa-mini"])
    dist.barrier()
    if RANK == 0:
        print(json.dumps(results), flush=True)


if __name__ == "__main__":
    cli()
    dist.destroy_process_group()
