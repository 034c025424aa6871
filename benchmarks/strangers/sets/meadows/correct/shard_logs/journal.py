import json
import os


class Journal:
    """One jsonl file per process, merged by the first one."""

    def __init__(self, folder, rank):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.rank = rank
        self.f = open(os.path.join(folder, f"part-{rank:03d}.jsonl"), "w")

    def write(self, **row):
        self.f.write(json.dumps({"rank": self.rank, **row}) + "\n")

    def close(self):
        self.f.flush()
        os.fsync(self.f.fileno())
        self.f.close()

    def merge(self):
        rows = []
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("part-"):
                with open(os.path.join(self.folder, name)) as f:
                    rows += [json.loads(line) for line in f]
        rows.sort(key=lambda r: (r["step"], r["rank"]))
        with open(os.path.join(self.folder, "all.json"), "w") as f:
            json.dump(rows, f)
        return rows
