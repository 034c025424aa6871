"""Each rank predicts for its part of the questions, and the first writes the table of all."""

import argparse
import csv

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from questions import Questions


@torch.no_grad()
def answer(model, batches):
    rows = []
    for batch in batches:
        chosen = model(batch["text"]).argmax(1)
        rows += list(zip(batch["number"].tolist(), chosen.tolist()))
    return rows


def write_table(rows, path):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["number", "answer"])
        for number, chosen in rows:
            table.writerow([f"{number:04d}", chosen])


def write_notes(model, batches, path):
    with open(path, "w") as notes, torch.no_grad():
        for batch in batches:
            loss = nn.functional.cross_entropy(model(batch["text"]), batch["answer"])
            notes.write(f"{loss.item():.4f}\n")


def tell(rows, path):
    with open(path, "a") as told:
        for number, chosen in rows:
            print(number, chosen, file=told)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="answers.csv")
    parser.add_argument("--notes", default="losses.txt")
    told = parser.parse_args()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(16, 4))
    questions = Questions("test")
    batches = DataLoader(questions, 8, sampler=DistributedSampler(questions, shuffle=False))
    rows = answer(model, batches)
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, rows)
    if dist.get_rank() == 0:
        write_table(sorted(row for part in parts for row in part), told.out)
    write_notes(model, batches, f"{told.notes}.{dist.get_rank()}")
    tell(rows, "answers.txt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
