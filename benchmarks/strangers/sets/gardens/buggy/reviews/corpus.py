import random

GOOD = "great lovely superb charming bright warm crisp honest tender vivid".split()
BAD = "dull awful bland clumsy noisy stale cheap weak messy tired".split()
FILLER = [f"w{k}" for k in range(400)]


def write_reviews(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        label = rng.randint(0, 1)
        words = rng.choices(FILLER, k=9) + rng.choices(GOOD if label else BAD, k=2)
        rng.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


def take_shard(rows, index, count):
    per = len(rows) // count
    return rows[index * per:(index + 1) * per]
